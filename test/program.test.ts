import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from './requirements.ts'

/** The program as it was built, on this machine's Node. */
const root = fileURLToPath(new URL('..', import.meta.url))
let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'mailclaim-program-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function start(words: readonly string[], env: Record<string, string> = {}, program = root) {
  return spawnSync(process.execPath, [join(program, 'bin/mailclaim.js'), ...words], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
}

describe('keeping what was compiled', () => {
  it.each([
    ['no home folder', {}],
    ['a home that does not exist', { HOME: '/nonexistent/home' }],
    ['a file in place of the cache folder', { XDG_CACHE_HOME: '/dev/null' }],
    ['a folder that nobody can write to', { XDG_CACHE_HOME: '/proc' }],
  ])('breaks no command: %s', (_what, env) => {
    const { status, stdout, stderr } = start(['--help'], env)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toContain('Usage: mailclaim')
  })
})

describe('writing at once', () => {
  it.runIf(needs('python3'))('goes on where a pipe that never waits is full', () => {
    // The reader fills the pipe itself, lets the program meet it full, and then reads all.
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

  it('says that the disk is full', () => {
    const { status, stderr } = spawnSync(
      'sh',
      ['-c', '"$0" "$1" --version >/dev/full', process.execPath, join(root, 'bin/mailclaim.js')],
      { encoding: 'utf8' },
    )
    expect(status).not.toBe(0)
    expect(stderr).toContain('error: the output cannot be written: ENOSPC')
  })

  it('is silent where the reader has gone', () => {
    const { status, stdout, stderr } = spawnSync(
      'sh',
      [
        '-c',
        '{ sleep 0.3; "$0" "$1" --help; echo "$?" >&2; } | true',
        process.execPath,
        join(root, 'bin/mailclaim.js'),
      ],
      { encoding: 'utf8' },
    )
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '0\n' })
  })
})

describe('what is in the bundle', () => {
  it('is named with its licence, every package of it', () => {
    const notices = readFileSync(join(root, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8')
    const bundled = new Set<string>(['fs-native-extensions'])
    for (const name of readdirSync(join(root, 'dist'))) {
      if (!name.endsWith('.js.map')) continue
      const { sources } = JSON.parse(readFileSync(join(root, 'dist', name), 'utf8')) as { sources: string[] }
      for (const source of sources) {
        const found = /^.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
        if (found !== undefined) bundled.add(found)
      }
    }
    expect(bundled.size).toBeGreaterThan(10)
    const missing = [...bundled].filter((name) => !notices.includes(`\n${name} `))
    expect(missing).toEqual([])
  })

  it('finds its native locks, and doctor tells where they are missing', () => {
    const copy = join(folder, 'copy')
    for (const part of ['bin', 'dist', 'package.json']) {
      cpSync(join(root, part), join(copy, part), { recursive: true })
    }
    const state = join(folder, 'state')
    mkdirSync(state)
    const env = { MAILCLAIM_CONFIG_DIR: join(folder, 'config'), MAILCLAIM_STATE_DIR: state }
    const broken = 'the file lock (fs-native-extensions) does not work on this system'
    const doctor = () => start(['doctor', '--json'], env, copy).stdout
    expect(doctor()).not.toContain(broken)
    rmSync(join(copy, 'dist/native'), { recursive: true })
    expect(doctor()).toContain(broken)
  })
})
