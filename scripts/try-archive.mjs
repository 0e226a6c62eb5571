// Tries this machine's archive in archives/ as users get it: installs it with install.sh or install.ps1 below a directory with a space in
// its name, starts it without another Node in PATH, runs the demo with the archive's own Node, and removes it.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beginScript } from './begin.mjs'

beginScript()
const root = join(import.meta.dirname, '..')
const archives = join(root, 'archives')
if (!existsSync(join(archives, 'SHA256SUMS')))
  throw new Error('archives/ has no archive: run npm run archive')
const isWindows = process.platform === 'win32'
const work = mkdtempSync(join(tmpdir(), 'mailclaim archive '))
const prefix = join(work, 'prefix')
const environment = { ...process.env, PREFIX: prefix, VERSION: '', INSTALL_FROM: archives }
// A newer PowerShell sets PSModulePath for its child processes; Windows PowerShell 5.1 can't load the modules it names.
delete environment.PSModulePath

function run(program, words, more) {
  execFileSync(program, words, { env: { ...environment, ...more }, cwd: work, stdio: 'inherit' })
}
const installer = isWindows
  ? ['powershell', '-NoProfile', '-ExecutionPolicy', 'Bypass', '-File', join(root, 'install.ps1')]
  : ['sh', join(root, 'install.sh')]
const install = (...words) => run(installer[0], [...installer.slice(1), ...words])

try {
  install()
  const library = join(prefix, 'lib', 'mailclaim')
  const installed = join(library, readdirSync(library)[0])
  const launcher = join(prefix, 'bin', 'mailclaim')
  if (isWindows) run(process.env.COMSPEC, ['/d', '/c', `${launcher}.cmd`, '--version'], { PATH: '' })
  else run(launcher, ['--version'], { PATH: '/usr/bin:/bin' })
  const node = join(installed, 'node', isWindows ? 'node.exe' : 'node')
  run(node, [join(root, 'scripts', 'demo.mjs'), join(installed, 'bin', 'mailclaim.js')])
  install(isWindows ? '-Uninstall' : '--uninstall')
  if (existsSync(prefix)) throw new Error(`left behind: ${readdirSync(prefix)}`)
} finally {
  rmSync(work, { recursive: true, force: true, maxRetries: 5 })
}
