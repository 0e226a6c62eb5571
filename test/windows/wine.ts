import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, onTestFinished } from 'vitest'
import { WINE } from '../requirements.ts'
import { type Ended, PROGRAM } from '../stories/built-program.ts'

const SERVER = '/usr/lib/wine/wineserver64'
const LIBRARIES = '/usr/lib/x86_64-linux-gnu/wine/x86_64-windows'

const windowsNode = () => process.env['MAILCLAIM_TEST_WINDOWS_NODE'] ?? ''

/** Returns the Windows path of a file of this machine. Wine's drive Z: is the root directory. */
export const windowsPath = (path: string) => `Z:${path.replaceAll('/', '\\')}`

/** A Windows registry with only the keys that Node needs: creating Wine's default one takes ten seconds and 700 MB. */
const REGISTRY = {
  system: String.raw`
[Software\\Microsoft\\Cryptography\\Defaults\\Provider\\Microsoft Strong Cryptographic Provider] 1
"Image Path"="rsaenh.dll"
"Type"=dword:00000001

[Software\\Microsoft\\Cryptography\\Defaults\\Provider\\Microsoft Enhanced RSA and AES Cryptographic Provider] 1
"Image Path"="rsaenh.dll"
"Type"=dword:00000018

[Software\\Microsoft\\Cryptography\\Defaults\\Provider Types\\Type 001] 1
"Name"="Microsoft Strong Cryptographic Provider"

[Software\\Microsoft\\Cryptography\\Defaults\\Provider Types\\Type 024] 1
"Name"="Microsoft Enhanced RSA and AES Cryptographic Provider"

[System\\CurrentControlSet\\Control\\Session Manager\\Environment] 1
"ComSpec"="C:\\windows\\system32\\cmd.exe"
"PATH"="C:\\windows\\system32"
`,
  user: String.raw`
[Software\\Wine] 1
"Version"="win10"
`,
}

/**
 * Script that Node preloads to replace features that Wine lacks: TCP keep-alive, and `taskkill /T`. A copy of Node named
 * `taskkill.exe` finds the process tree in the output of Wine's debugger: hexadecimal ids, indented by depth.
 */
const LACKING = `
require('node:net').Socket.prototype.setKeepAlive = function () { return this }
const path = require('node:path')
if (path.basename(process.execPath).toLowerCase() === 'taskkill.exe') {
  const line = process.argv.slice(1).map((word) => path.basename(word)).join(' ')
  const [, id] = /^PID ([0-9]+) T F$/.exec(line) ?? process.exit(1)
  const tree = require('node:child_process').execFileSync('winedbg', ['--command', 'info proc'], { encoding: 'utf8' })
  let depth
  for (const line of tree.split('\\n')) {
    const [, hex, indent] = /^.([0-9a-f]{8}) .{9}(.*?)'/.exec(line) ?? ['', '', '']
    if (parseInt(hex, 16) === Number(id)) depth = indent.length
    else if (depth === undefined || indent.length <= depth) { depth = undefined; continue }
    process.kill(parseInt(hex, 16))
    // Wait after the first kill: a program under test that doesn't wait for the whole tree exits now and leaves processes.
    if (indent.length === depth) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
  }
  process.exit(0)
}
`

/** A running Windows program. */
export interface WindowsProcess {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  /** Returns the output so far: all of stdout, then all of stderr. */
  written(): string
}

export interface Wine {
  readonly home: string
  readonly env: Record<string, string>
  /** Windows path of Node for Windows. */
  readonly node: string
  /** Starts a Windows program; `node` stands for Node for Windows. */
  start(commandLine: readonly string[]): WindowsProcess
  /** Runs the built program, and resolves when it has exited. */
  mailclaim(...words: readonly string[]): Promise<Ended>
}

/**
 * Starts Wine for all tests of a file; call this at the top of the file. Windows programs use this machine's loopback and files.
 *
 * @returns a function that creates a world for a test, with its own home directory
 */
export function shareWine(): () => Wine {
  let prefix = ''
  const environment = () => ({
    HOME: prefix,
    WINEPREFIX: prefix,
    WINEARCH: 'win64',
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree=;mshtml=;taskkill.exe=n',
    NODE_OPTIONS: `--require ${windowsPath(join(prefix, 'lacking.cjs')).replaceAll('\\', '/')}`,
  })
  beforeAll(() => {
    prefix = mkdtempSync(join(tmpdir(), 'mailclaim-wine-'))
    mkdirSync(join(prefix, 'drive_c', 'windows', 'temp'), { recursive: true })
    const system = join(prefix, 'drive_c', 'windows', 'system32')
    mkdirSync(system, { recursive: true })
    for (const name of readdirSync(LIBRARIES))
      if (name !== 'taskkill.exe') symlinkSync(join(LIBRARIES, name), join(system, name))
    symlinkSync(windowsNode(), join(system, 'taskkill.exe'))
    for (const [name, text] of Object.entries(REGISTRY))
      writeFileSync(join(prefix, `${name}.reg`), `WINE REGISTRY Version 2\n\n#arch=win64\n${text}`)
    // Stop Wine from updating the prefix, which would create the default registry.
    writeFileSync(join(prefix, '.update-timestamp'), 'disable\n')
    writeFileSync(join(prefix, 'lacking.cjs'), LACKING)
    // `--persistent` keeps the server running between programs, until `--kill`.
    execFileSync(SERVER, ['--persistent'], { env: environment(), stdio: 'ignore' })
    return () => {
      execFileSync(SERVER, ['--kill', '--wait'], { env: environment(), stdio: 'ignore' })
      rmSync(prefix, { recursive: true, force: true, maxRetries: 5 })
    }
  })
  return () => createWine(environment())
}

function createWine(environment: Record<string, string>): Wine {
  const home = mkdtempSync(join(tmpdir(), 'mailclaim-windows-'))
  const running = new Set<ChildProcess>()
  onTestFinished(() => {
    for (const child of running) child.kill('SIGKILL')
    running.clear()
    rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  })
  const env: Record<string, string> = {
    ...environment,
    MAILCLAIM_CONFIG_DIR: windowsPath(join(home, 'config')),
    MAILCLAIM_STATE_DIR: windowsPath(join(home, 'state')),
  }
  let started = 0
  const start: Wine['start'] = ([program = '', ...words]) => {
    // Redirect output to files, because Node for Windows can't write to a Linux pipe.
    const paths = ['stdout', 'stderr'].map((name) => join(home, `${started}.${name}`))
    started++
    const outputs = paths.map((path) => openSync(path, 'w'))
    const child = spawn(WINE, [program === 'node' ? windowsNode() : program, ...words], {
      env,
      cwd: home,
      stdio: ['ignore', ...outputs],
    })
    for (const output of outputs) closeSync(output)
    running.add(child)
    const read = () => paths.map((path) => readFileSync(path, 'utf8'))
    const ended = once(child, 'exit').then(([code, signal]): Ended => {
      if (!running.delete(child)) throw new Error('the test has ended')
      const [stdout = '', stderr = ''] = read()
      return { code: signal ?? code, stdout, stderr }
    })
    // Avoid an unhandled rejection for programs that the test doesn't wait for.
    ended.catch(() => {})
    return { child, ended, written: () => read().join('') }
  }
  return {
    home,
    env,
    node: windowsPath(windowsNode()),
    start,
    mailclaim: (...words) => start(['node', PROGRAM, ...words]).ended,
  }
}
