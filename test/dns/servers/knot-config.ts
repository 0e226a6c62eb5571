/**
 * What every configuration of Knot begins with; keys and zones follow.
 *
 * @param listen addresses with their ports, `127.0.0.1@53`
 * @param directory where it keeps its files; it has to exist
 */
export function knotBasics(listen: readonly string[], directory: string): string[] {
  return [
    'server:',
    `    listen: [${listen.join(', ')}]`,
    `    rundir: ${directory}`,
    `    pidfile: ${directory}/pid`,
    '    udp-workers: 1',
    '    tcp-workers: 1',
    '    background-workers: 1',
    'database:',
    `    storage: ${directory}`,
    'log:',
    '  - target: stderr',
    '    any: warning',
  ]
}
