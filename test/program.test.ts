import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { needs } from './requirements.ts'
import { createProcessSession } from './session/processes.ts'

/** Directory with bin/mailclaim.js and dist/. */
const root = fileURLToPath(new URL('..', import.meta.url))
let directory = ''

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'mailclaim-program-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function start(words: readonly string[], env: Record<string, string> = {}, program = root) {
  return spawnSync(process.execPath, [join(program, 'bin/mailclaim.js'), ...words], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
}

describe('a start', () => {
  /** Runs mailclaim, and returns the bytes of code that it loaded, its modules of Node, and the number of `Intl` objects. */
  function loaded(
    words: readonly string[],
    stdin: 'ignore' | 'pipe' = 'ignore',
    env: NodeJS.ProcessEnv = {},
  ) {
    const [spy, list] = [join(directory, 'spy.cjs'), join(directory, 'loaded.json')]
    writeFileSync(
      spy,
      `let intl = 0
      for (const name of Object.getOwnPropertyNames(Intl))
        if (typeof Intl[name] === 'function' && Intl[name].prototype)
          Intl[name] = new Proxy(Intl[name], {
            construct: (...all) => (intl++, Reflect.construct(...all)),
            apply: (...all) => (intl++, Reflect.apply(...all)),
          })
      process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(list)}, JSON.stringify({
        intl,
        bytes: Object.keys(require.cache).slice(1).reduce((sum, path) => sum + require('node:fs').statSync(path).size, 0),
        modules: process.moduleLoadList,
      })))`,
    )
    const args = ['--require', spy, join(root, 'bin/mailclaim.js'), ...words]
    spawnSync(process.execPath, args, { stdio: [stdin, 'pipe', 'pipe'], env })
    return JSON.parse(readFileSync(list, 'utf8')) as { bytes: number; modules: string[]; intl: number }
  }

  it.each([
    ['--version', 115],
    ['--help', 115],
    ['imports lst', 115],
    ['claims check --help', 140],
    ['auth token', 127],
  ])('mailclaim %s loads less than %i kB of code, and creates no Intl object', async (line, most) => {
    const { env } = await createProcessSession({ store: 'file' })
    const { bytes, intl } = loaded(line.split(' '), 'ignore', env)
    expect(intl).toBe(0)
    expect(bytes / 1000).toBeLessThan(most)
  })

  it.each(['ignore', 'pipe'] as const)(
    'without a terminal, --version, --help, auth token and a mistyped command load none of the modules stream, net, tty and crypto (stdin: %s)',
    async (stdin) => {
      const { env } = await createProcessSession({ store: 'file' })
      for (const line of ['--version', '--help', 'imports lst', 'auth token']) {
        const { modules } = loaded(line.split(' '), stdin, env)
        expect(modules.filter((name) => /^NativeModule (stream|net|tty|crypto)$/.test(name))).toEqual([])
      }
    },
  )
})

describe.runIf(needs('posix'))('the compile cache', () => {
  it.each([
    ['no home directory', {}],
    ['a home directory that does not exist', { HOME: '/nonexistent/home' }],
    ['a file instead of the cache directory', { XDG_CACHE_HOME: '/dev/null' }],
    ['a directory that nobody can write to', { XDG_CACHE_HOME: '/proc' }],
  ])('mailclaim --help succeeds, with or without a compile cache (%s)', (_what, env) => {
    const { status, stdout, stderr } = start(['--help'], env)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain('Usage: mailclaim')
  })

  const ours = process.getuid?.() ?? -1
  const NOBODY = 65534

  /** Returns the compile cache directory that bin/mailclaim.js chooses, on a version of Node that has a compile cache. */
  function compileCache(env: Record<string, string>, user = ours): string | undefined {
    let chosen: string | undefined
    const shim = readFileSync(join(root, 'bin/mailclaim.js'), 'utf8')
    runInNewContext(shim, {
      require: () => ({ main: async () => 0 }),
      process: {
        argv: [],
        env,
        platform: 'linux',
        versions: { node: '24.0.0' },
        exit: () => {},
        getuid: () => user,
        getBuiltinModule: (name: string) =>
          name === 'node:module'
            ? { enableCompileCache: (directory: string) => (chosen = directory) }
            : process.getBuiltinModule(name),
      },
    })
    return chosen
  }

  /** Creates a home directory that others can enter, with a cache directory of the current user. */
  function createCache() {
    const home = mkdtempSync(join(realpathSync(directory), 'home-'))
    chmodSync(directory, 0o755)
    chmodSync(home, 0o755)
    const cache = join(home, '.cache')
    const mailclaim = join(cache, 'mailclaim')
    const compiled = join(mailclaim, 'compiled')
    return { home, cache, mailclaim, compiled, chosen: (user?: number) => compileCache({ HOME: home }, user) }
  }

  it("compiled code is cached in mailclaim's directory below the cache directory, which is created if missing", () => {
    const { cache, compiled, chosen } = createCache()
    expect(chosen()).toBe(compiled)
    expect([cache, compiled].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700])
    expect(chosen()).toBe(compiled)
  })

  it('the compile cache is used if the user made the cache directory a symbolic link to another directory', () => {
    const { home, cache, chosen } = createCache()
    mkdirSync(join(home, 'elsewhere'))
    symlinkSync(join(home, 'elsewhere'), cache)
    expect(chosen()).toBe(join(home, 'elsewhere/mailclaim/compiled'))
  })

  it('compiled code is cached in a group-writable directory if others cannot enter its parent', () => {
    const { home, cache, compiled, chosen } = createCache()
    mkdirSync(cache)
    chmodSync(cache, 0o775)
    chmodSync(home, 0o700)
    expect(chosen()).toBe(compiled)
  })

  it('compiled code is cached in mailclaim/compiled below a cache directory that is sticky, such as /tmp', () => {
    const { home } = createCache()
    chmodSync(home, 0o1777)
    expect(compileCache({ XDG_CACHE_HOME: home })).toBe(join(home, 'mailclaim/compiled'))
  })

  it.each(['home', 'cache', 'mailclaim', 'compiled'] as const)(
    'compiled code is not cached if other users can write to the %s directory',
    (which) => {
      for (const mode of [0o777, 0o775, 0o757]) {
        const created = createCache()
        mkdirSync(created.compiled, { recursive: true, mode: 0o755 })
        chmodSync(created[which], mode)
        expect(created.chosen()).toBeUndefined()
      }
    },
  )

  it('compiled code is not cached directly in a sticky directory, in which others can create files', () => {
    const { compiled, chosen } = createCache()
    mkdirSync(compiled, { recursive: true })
    chmodSync(compiled, 0o1777)
    expect(chosen()).toBeUndefined()
  })

  it("compiled code is not cached in another user's home directory, and nothing is created there", () => {
    // Runs as another user, or as root with the environment of a user.
    const { home, chosen } = createCache()
    if (ours === 0) chownSync(home, NOBODY, NOBODY)
    expect(chosen(ours === 0 ? 0 : NOBODY)).toBeUndefined()
    expect(readdirSync(home)).toEqual([])
  })

  it.runIf(needs('root')).each(['cache', 'mailclaim', 'compiled'] as const)(
    'compiled code is not cached if another user owns the %s directory, or the target of a link in its place',
    (which) => {
      for (const plant of ['directory', 'link'] as const) {
        const created = createCache()
        mkdirSync(created.compiled, { recursive: true, mode: 0o755 })
        if (plant === 'directory') chownSync(created[which], NOBODY, NOBODY)
        else {
          const theirs = join(created.home, 'theirs')
          renameSync(created[which], theirs)
          chownSync(theirs, NOBODY, NOBODY)
          symlinkSync(theirs, created[which])
        }
        expect(created.chosen()).toBeUndefined()
      }
    },
  )
})

describe.runIf(needs('posix', 'python3'))('a terminal that hangs up', () => {
  it.each([
    ['login at a prompt', ['login'], 'service:'],
    ['sandbox while it serves requests', ['sandbox', '--port', '0'], 'http://'],
  ])('mailclaim %s ends when its terminal hangs up', (_what, words, shown) => {
    // The Python script plays the terminal: it closes the terminal once the text is shown, and prints mailclaim's exit code.
    const script = `
      import os, pty, sys
      child, terminal = pty.fork()
      if child == 0: os.execv(sys.argv[2], sys.argv[2:])
      seen = b''
      while sys.argv[1].encode() not in seen: seen += os.read(terminal, 4096)
      os.close(terminal)
      print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))`
    const program = [process.execPath, join(root, 'bin/mailclaim.js'), ...words]
    const unindented = script.replaceAll('\n      ', '\n')
    const home = mkdtempSync(join(tmpdir(), 'mailclaim-'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    const env = { HOME: home, TERM: 'xterm', NODE_COMPILE_CACHE: home }
    const { stdout, stderr } = spawnSync('python3', ['-c', unindented, shown, ...program], {
      encoding: 'utf8',
      env: { ...env, MAILCLAIM_STATE_DIR: home, MAILCLAIM_CONFIG_DIR: home, PATH: process.env['PATH'] },
      timeout: 20_000,
    })
    expect(stderr).toBe('')
    // mailclaim sees either SIGHUP or the end of its input first.
    expect(['130\n', '143\n']).toContain(stdout)
  })
})

describe.runIf(needs('posix'))('writing at once', () => {
  it.runIf(needs('python3'))('mailclaim waits for a full non-blocking pipe and loses no output', () => {
    // The Python script fills a non-blocking pipe, starts mailclaim with the pipe as stdout, and reads only then.
    const script = `
      import fcntl, os, subprocess, sys, threading, time
      ours, theirs = os.pipe()
      fcntl.fcntl(theirs, fcntl.F_SETFL, fcntl.fcntl(theirs, fcntl.F_GETFL) | os.O_NONBLOCK)
      filled = 0
      try:
          while True: filled += os.write(theirs, b'x' * 4096)
      except BlockingIOError: pass
      child = subprocess.Popen(sys.argv[1:], stdout=theirs)
      os.close(theirs)
      time.sleep(0.5)
      data = b''
      while piece := os.read(ours, 65536): data += piece
      print(child.wait(), data[filled:].decode())`
    const program = [process.execPath, join(root, 'bin/mailclaim.js'), 'completion', 'bash']
    const unindented = script.replaceAll('\n      ', '\n')
    const { stdout, stderr } = spawnSync('python3', ['-c', unindented, ...program], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(stdout).toBe(`0 ${start(['completion', 'bash']).stdout}\n`)
  })

  it('mailclaim fails with an error message if stdout is full (ENOSPC)', () => {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', '"$0" "$1" --version >/dev/full', process.execPath, join(root, 'bin/mailclaim.js')],
      { encoding: 'utf8' },
    )
    expect(status).not.toBe(0)
    expect(stderr).toContain('error: the output cannot be written: ENOSPC')
  })
})

it('doctor reports missing file locks if dist/native is deleted from the built mailclaim', () => {
  const copy = join(directory, 'copy')
  for (const part of ['bin', 'dist', 'package.json']) {
    cpSync(join(root, part), join(copy, part), { recursive: true })
  }
  const state = join(directory, 'state')
  mkdirSync(state)
  const env = { MAILCLAIM_CONFIG_DIR: join(directory, 'config'), MAILCLAIM_STATE_DIR: state }
  const broken = `mailclaim comes without file locks for this machine (${process.platform}-${process.arch})`
  const doctor = () => start(['doctor', '--json'], env, copy).stdout
  expect(doctor()).not.toContain(broken)
  rmSync(join(copy, 'dist/native'), { recursive: true })
  expect(doctor()).toContain(broken)
})
