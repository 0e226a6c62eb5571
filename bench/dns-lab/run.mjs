// Starts the laboratory in its own network namespace, with port 53 and all addresses, but without the machine's network.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

if (process.platform !== 'linux') throw new Error('the laboratory needs the network namespaces of Linux')

const root = fileURLToPath(new URL('../..', import.meta.url))
const bundle = join(root, 'node_modules/.cache/dns-lab/main.cjs')
await build({
  absWorkingDir: root,
  entryPoints: ['bench/dns-lab/main.ts'],
  outfile: bundle,
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  logLevel: 'warning',
})
// Without root, a user namespace allows creating a network namespace.
const asRoot = process.getuid?.() === 0 ? [] : ['--map-root-user']
// With a process namespace, the servers end with the laboratory.
const namespaces = [...asRoot, '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
const child = spawn('unshare', [...namespaces, process.execPath, bundle, ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 130)
})
