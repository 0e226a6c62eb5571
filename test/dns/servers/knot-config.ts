/**
 * Returns the first lines of a Knot configuration, before keys and zones.
 *
 * @param listen addresses with their ports, `127.0.0.1@53`
 * @param directory an existing directory for Knot's files
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
