import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { needs, which } from './requirements.ts'
import { writeScript } from './stories/built-program.ts'

const INSTALL = fileURLToPath(new URL('../install.sh', import.meta.url))
const TARGET = `${process.platform}-${process.arch}`

/** Creates a home directory and a release server. With the shell `busybox`, all programs in PATH are busybox's. */
async function createMachine(shell: string) {
  const home = mkdtempSync(join(tmpdir(), 'mailclaim-install-'))
  const [release, fakes] = [join(home, 'release'), join(home, 'fakes')]
  const prefix = join(home, 'a prefix')
  for (const directory of [release, fakes]) mkdirSync(directory)
  // Install busybox's programs alone: no curl, no shasum, no ldd.
  if (shell === 'busybox') execFileSync(shell, ['--install', '-s', fakes])
  const env = {
    PATH: shell === 'busybox' ? fakes : `${fakes}:${process.env['PATH']}`,
    HOME: home,
    PREFIX: prefix,
    INSTALL_FROM: '',
  }
  let answer = (_name: string, _response: ServerResponse): boolean => false
  const server = createServer(({ url = '' }, response) => {
    const name = basename(url)
    if (answer(name, response)) return
    const file = join(release, name)
    if (existsSync(file)) response.end(readFileSync(file))
    else response.writeHead(404).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
    rmSync(home, { recursive: true, force: true })
  })
  env.INSTALL_FROM = `http://127.0.0.1:${(server.address() as AddressInfo).port}/release`

  /** Starts the installer with the script on stdin, as `curl | sh` does. */
  function start(words: readonly string[] = [], more: Readonly<Record<string, string>> = {}) {
    const line = [...(shell === 'busybox' ? ['sh'] : []), '-s', '--', ...words]
    const child = spawn(which(shell) ?? shell, line, { env: { ...env, ...more }, cwd: home, detached: true })
    child.stdin.on('error', () => {}).end(readFileSync(INSTALL))
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (text) => (stdout += text))
    child.stderr.on('data', (text) => (stderr += text))
    const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((done) =>
      child.once('close', (code) => done({ code, stdout, stderr })),
    )
    return { child, ended }
  }

  return {
    ...{ home, prefix, release, fakes, start },
    link: join(prefix, 'bin/mailclaim'),
    run: (words?: readonly string[], more?: Readonly<Record<string, string>>) => start(words, more).ended,
    files: () => readdirSync(home, { recursive: true, encoding: 'utf8' }).toSorted(),
    version: () => execFileSync(join(prefix, 'bin/mailclaim'), { encoding: 'utf8' }).trim(),
    answerWith: (another: typeof answer) => {
      answer = another
    },
  }
}
type Machine = Awaited<ReturnType<typeof createMachine>>

/** Publishes an archive whose program prints the version or runs `script`, and a SHA256SUMS with this archive and one for Plan 9. */
function publish({ home, release }: Machine, version: string, script = `echo '${version}'`): string {
  const name = `mailclaim-${version}-${TARGET}`
  mkdirSync(join(home, name))
  writeScript(join(home, name), 'mailclaim', script)
  const archive = join(release, `${name}.tar.gz`)
  execFileSync('tar', ['-czf', archive, '-C', home, name])
  rmSync(join(home, name), { recursive: true })
  const checksum = createHash('sha256').update(readFileSync(archive)).digest('hex')
  const other = `${'0'.repeat(64)}  mailclaim-${version}-plan9-x64.tar.gz\n`
  writeFileSync(join(release, 'SHA256SUMS'), `${other}${checksum}  ${basename(archive)}\n`)
  return archive
}

describe.runIf(needs('posix'))('install.sh', () => {
  test.runIf(needs('dash', 'curl'))(
    'install.sh fails with the advice to install again if another installation completes meanwhile',
    async () => {
      const machine = await createMachine('dash')
      const { home, fakes, run, version } = machine
      publish(machine, '1.0.0')
      await run()
      // Run a second installer completely at the moment when the first one calls `ln`.
      writeFileSync(join(home, 'install.sh'), readFileSync(INSTALL))
      writeScript(
        fakes,
        'ln',
        `[ -e '${home}/once' ] || { : >'${home}/once'; sh '${home}/install.sh' >&2; }\nexec /bin/ln "$@"`,
      )
      publish(machine, '1.1.0')
      const ended = await run()
      expect(ended).toMatchObject({ code: 1, stdout: '' })
      expect(ended.stderr).toMatch(/error: another installation has removed this one: install again\n$/)
      expect(await run()).toMatchObject({ code: 0 })
      expect(version()).toBe('1.1.0')
    },
  )

  describe.each(['bash', 'dash', 'busybox'] as const)('in %s', (shell) => {
    describe.runIf(needs(shell, 'curl'))('with a server', () => {
      test('install.sh installs and updates mailclaim, and removes it with --uninstall', async () => {
        const machine = await createMachine(shell)
        const { home, link, run, version } = machine
        publish(machine, '1.0.0')
        const first = await run()
        expect(first).toMatchObject({ code: 0, stderr: '' })
        expect(first.stdout).toContain(`mailclaim 1.0.0 is installed: ${link}`)
        expect(first.stdout).toContain(`export PATH="${join(link, '..')}:$PATH"`)
        expect(version()).toBe('1.0.0')

        for (const newer of ['1.1.0', '1.2.0']) {
          publish(
            machine,
            newer,
            `case $1 in config) echo 'Settings are in X' >&2 ;; *) echo ${newer} ;; esac`,
          )
          // The bin directory is in PATH, so the installer must not print how to add it.
          const told = await run([], { PATH: `${join(link, '..')}:${machine.fakes}:${process.env['PATH']}` })
          expect(told).toMatchObject({ code: 0, stdout: `mailclaim ${newer} is installed: ${link}\n` })
          expect(version()).toBe(newer)
        }
        // An update keeps the previous version, which may still be running, and removes older ones.
        expect(
          readdirSync(join(machine.prefix, 'lib/mailclaim'))
            .map((name) => name.slice(0, 5))
            .toSorted(),
        ).toEqual(['1.1.0', '1.2.0'])
        expect(await run([], { VERSION: 'v1.0.0' })).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/^error: VERSION="1\.0\.0": \S+ has no archive for .*\n$/),
        })

        const removed = await run(['--uninstall'])
        expect(removed).toMatchObject({ code: 0, stderr: '' })
        expect(removed.stdout).toMatch(/`mailclaim logout --all` would have removed.*Settings are in X/s)
        expect(readdirSync(home)).not.toContain('a prefix')
        expect(await run(['--uninstall'])).toMatchObject({ code: 1 })
      })

      test.each<[string, (machine: Machine) => unknown, RegExp]>([
        [
          'a wrong checksum',
          (m) => writeFileSync(publish(m, '2.0.0'), 'else'),
          /the checksum of mailclaim-2\.0\.0-\S+ is wrong/,
        ],
        ['a missing archive', (m) => rmSync(publish(m, '2.0.0')), /can't get http\S+: .*404/],
        ['a download that breaks off', breakOff, /can't get http\S+\.gz|checksum .* is wrong/],
        [
          'no archive for the machine',
          (m) =>
            writeFileSync(
              join(m.release, 'SHA256SUMS'),
              `${'0'.repeat(64)}  mailclaim-2.0.0-plan9-x64.zip\n`,
            ),
          /has no archive for \w+-\w+/,
        ],
        [
          'a sign-in page instead of SHA256SUMS',
          (m) => writeFileSync(join(m.release, 'SHA256SUMS'), '<!DOCTYPE html>\n'),
          /SHA256SUMS isn't a list of checksums/,
        ],
        ['a full disk', fillDisk, /can't get http\S+SHA256SUMS: curl: \(23\)/],
        ['no such address', (m) => rmSync(m.release, { recursive: true }), /can't get http\S+SHA256SUMS: /],
        [
          'an unknown machine',
          (m) => fake(m, 'uname', 'test "$1" = -s && echo Linux || echo riscv64'),
          /no archive for Linux on riscv64: with Node/,
        ],
        [
          'an unknown system',
          (m) => fake(m, 'uname', 'test "$1" = -s && echo Plan9 || echo x86_64'),
          /no archive for Plan9 on x86_64: with Node/,
        ],
        [
          'musl',
          (m) => {
            fake(m, 'uname', 'test "$1" = -s && echo Linux || echo x86_64')
            fake(m, 'ldd', 'echo "musl libc (x86_64)" >&2; exit 1')
          },
          /no archive for Linux with musl on \S+: with Node/,
        ],
        [
          'a program that does not start',
          (m) => publish(m, '2.0.0', 'echo GLIBC_2.28 not found >&2; exit 1'),
          /doesn't start on this machine: GLIBC_2.28 not found/,
        ],
        [
          'a file that is no archive',
          (m) => writeFileSync(join(m.release, 'SHA256SUMS'), noArchive(m)),
          /can't unpack mailclaim-2\.0\.0-/,
        ],
      ])(
        'install.sh prints a one-line error for %s, leaves no new files, and keeps the installed version',
        async (_what, damage, said) => {
          const machine = await createMachine(shell)
          publish(machine, '1.0.0')
          await machine.run()
          damage(machine)
          const before = machine.files()
          const { code, stdout, stderr } = await machine.run()
          expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
          expect(stderr).toMatch(new RegExp(`^error: [^\n]*(${said.source})[^\n]*\n$`))
          expect(machine.files()).toEqual(before)
          expect(machine.version()).toBe('1.0.0')
        },
      )

      test('Ctrl-C while install.sh downloads leaves no new files', async () => {
        const machine = await createMachine(shell)
        publish(machine, '1.0.0')
        const before = machine.files()
        const asked = new Promise<void>((done) =>
          machine.answerWith((name, response) => {
            if (!name.endsWith('.gz')) return false
            response.write('half of it')
            done()
            return true
          }),
        )
        const { child, ended } = machine.start()
        await asked
        process.kill(-(child.pid ?? 0), 'SIGINT')
        expect((await ended).code).toBe(130)
        expect(machine.files()).toEqual(before)
      })
    })
  })

  test('install.sh fails if the prefix is a file, or has a mailclaim that install.sh did not install', async () => {
    const machine = await createMachine('sh')
    const { home, link, release, run } = machine
    publish(machine, '1.0.0')
    const occupied = await run([], { PREFIX: join(release, 'SHA256SUMS') })
    expect(occupied.stderr).toMatch(
      /^error: can't write to \S+\/SHA256SUMS: choose another directory with PREFIX\n$/,
    )
    expect(await run([], { INSTALL_FROM: release })).toMatchObject({ code: 0 })
    symlinkSync(home, join(home, 'here'))
    for (const spelling of [`${machine.prefix}/`, './a prefix', join(home, 'here/a prefix')])
      expect(await run([], { INSTALL_FROM: release, PREFIX: spelling })).toMatchObject({ code: 0 })
    expect(machine.version()).toBe('1.0.0')

    const other = join(home, 'other')
    mkdirSync(join(other, 'bin'), { recursive: true })
    writeScript(join(other, 'bin'), 'mailclaim', 'echo npm')
    for (const words of [[], ['--uninstall']]) {
      const { code, stderr } = await run(words, { PREFIX: other })
      expect({ code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: .* isn't from this/),
      })
    }
    expect(readdirSync(other, { recursive: true })).toHaveLength(2)
    expect(existsSync(link)).toBe(true)
  })

  test.runIf(needs('busybox')).each<[string, Readonly<Record<string, string>>, RegExp]>([
    ['VERSION has no version', { VERSION: 'the newest' }, /VERSION="the newest" isn't a version/],
    [
      'VERSION has an unknown version',
      { VERSION: '9', INSTALL_FROM: '/no' },
      /VERSION="9": can't get \/no\/SHA/,
    ],
    ['HOME is not set', { HOME: '', PREFIX: '' }, /HOME isn't set: choose a directory with PREFIX/],
    ['no program can download', {}, /install curl or wget/],
  ])('install.sh reports in one line that %s', async (_what, env, said) => {
    const { fakes, files, run } = await createMachine('busybox')
    rmSync(join(fakes, 'wget'))
    const before = files()
    const { code, stderr } = await run([], env)
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(said) })
    expect(stderr).toMatch(/^error: [^\n]*\n$/)
    expect(files()).toEqual(before)
  })

  test('an install.sh that was cut off before its last line creates no files', async () => {
    const machine = await createMachine('sh')
    const text = readFileSync(INSTALL, 'utf8')
    const half = join(machine.home, 'half.sh')
    writeFileSync(half, text.slice(0, text.lastIndexOf('main')))
    const before = machine.files()
    execFileSync('sh', [half], { env: { HOME: machine.home, PREFIX: machine.prefix } })
    expect(machine.files()).toEqual(before)
  })
})

/** Publishes a version whose download breaks off in the middle of the archive. */
function breakOff(machine: Machine): void {
  publish(machine, '2.0.0')
  machine.answerWith((name, response) => {
    if (!name.endsWith('.gz')) return false
    response.writeHead(200, { 'content-length': 1e6 }).write('half of it')
    setImmediate(() => response.destroy())
    return true
  })
}

/** Puts a script in the PATH before the machine's program of that name. */
function fake({ fakes }: Machine, name: string, script: string): void {
  rmSync(join(fakes, name), { force: true })
  writeFileSync(join(fakes, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(fakes, name), 0o755)
}

/** Makes every write of curl to a file fail, as on a full disk. */
function fillDisk(machine: Machine): void {
  fake(machine, 'curl', `trap '' XFSZ; ulimit -f 0; exec ${which('curl')} "$@"`)
}

function noArchive({ release }: Machine): string {
  const name = `mailclaim-2.0.0-${TARGET}.tar.gz`
  writeFileSync(join(release, name), 'text')
  return `${createHash('sha256').update('text').digest('hex')}  ${name}\n`
}

test('install.ps1 is ASCII only, because PowerShell versions read other encodings differently', () => {
  expect(readFileSync(new URL('../install.ps1', import.meta.url), 'latin1')).toMatch(/^[\n -~]*$/)
})

test.runIf(needs('shellcheck'))('shellcheck reports nothing about the shell scripts', () => {
  const root = fileURLToPath(new URL('..', import.meta.url))
  execFileSync('shellcheck', ['install.sh', 'action/install.sh', 'action/claim.sh', '.ci/run'], { cwd: root })
})
