import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { keychainAccount } from '../../src/session/secret.ts'
import { needs } from '../requirements.ts'
import { createServedWorld } from '../stories/built-program.ts'
import {
  createProcessSession,
  endingOf,
  type Keyring,
  type ProcessSession,
  startKeyring,
} from './processes.ts'

const PROGRAM = fileURLToPath(new URL('../../bin/mailclaim.js', import.meta.url))
const run = promisify(execFile)

describe('`auth token` with a valid access token', () => {
  it.runIf(needs('strace'))(
    '`auth token` with a valid access token uses no keychain, lock or network, and starts no process',
    async () => {
      const world = await createProcessSession({ store: 'file' })
      const trace = join(world.home, 'trace')
      const calls = 'execve,open,openat,socket,connect,sendto,flock,fcntl,clone,fork,vfork'
      await run(
        'strace',
        ['-f', '-qq', '-e', `trace=${calls}`, '-o', trace, process.execPath, PROGRAM, 'auth', 'token'],
        {
          env: world.env,
        },
      )
      const lines = readFileSync(trace, 'utf8').split('\n')
      const opened = lines
        .flatMap((line) => /open(?:at)?\(.*?"([^"]+)"/.exec(line)?.[1] ?? [])
        // Skip Node's compile cache of the program itself.
        .filter((path) => !path.includes('/mailclaim/compiled/'))

      expect(opened.filter((path) => path.startsWith(world.home))).toEqual([
        join(world.home, 'config', 'config.json'),
        world.session.files.session,
      ])
      expect(opened.filter((path) => /keytar|keychain|fs-native|libsecret|\.node$/.test(path))).toEqual([])
      expect(lines.filter((line) => /\b(socket|connect|sendto)\(/.test(line))).toEqual([])
      expect(lines.filter((line) => /\bflock\(|SETLK/.test(line))).toEqual([])
      expect(lines.filter((line) => /\bexecve\(/.test(line))).toHaveLength(1)
      expect(await world.session.counts()).toMatchObject({ refreshes: 0 })
    },
  )
})

describe('concurrent logins', () => {
  it('three logins at the same time leave one session, which can be renewed', async () => {
    const world = await createServedWorld()
    const ended = await Promise.all([world.login(), world.login(), world.login()])
    expect(ended.map(({ code }) => code)).toEqual([0, 0, 0])
    const files = readdirSync(join(world.home, 'state', 'profiles', 'default')).sort()
    expect(files).toEqual(['lock', 'session.json'])
    for (let round = 0; round < 2; round++) expect((await world.run(['auth', 'refresh'])).code).toBe(0)
    expect(await world.control('GET', 'state')).toMatchObject({ refreshes: 2, reuse_detections: 0 })
  })
})

describe.runIf(needs('posix'))('a signal', () => {
  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    // SIGHUP is ignored in a program without a terminal.
    ['SIGHUP', 0],
  ] as const)(
    'after %s during a refresh, the program stores the new token and then exits %i',
    async (signal, code) => {
      const world = await createProcessSession({ store: 'file' })
      world.session.expire()
      await world.session.fault({ kind: 'delay', after_ms: 1_500 })
      const running = world.start(['auth', 'token', '--json'])
      while ((await world.session.counts()).refreshes === 0)
        await new Promise((resolve) => setTimeout(resolve, 20))
      running.child.kill(signal)
      const ended = await running.ended
      expect(ended.code).toBe(code)
      await world.session.clearFaults()
      expect(world.readFiles().generation).toBe(2)
      expect(readdirSync(world.session.files.directory).sort()).toEqual(['lock', 'session.json'])
      expect((await world.run(['auth', 'refresh', '--json'])).code).toBe(0)
      expect(await world.harm()).toEqual({ reuse: 0, revoked: 0 })
    },
  )
})

describe.runIf(needs('posix'))('a disk', () => {
  it.runIf(needs('bash'))('a refresh that cannot write to the disk sends no refresh token', async () => {
    const world = await createProcessSession({ store: 'file' })
    world.session.expire()
    // `ulimit -f 0` acts as a full disk: writing the first byte of a file fails.
    const { stderr, code } = await run(
      'bash',
      ['-c', 'ulimit -f 0; exec "$@"', '_', process.execPath, PROGRAM, 'auth', 'token', '--json'],
      {
        env: world.env,
      },
    ).then(
      () => ({ stderr: '', code: 0 }),
      (error: { stderr: string; code: number }) => error,
    )
    expect(endingOf({ code, stdout: '', stderr })).toBe('1 cannot_write')
    expect(JSON.parse(stderr).error.message).toContain('file too large')
    expect(await world.session.counts()).toMatchObject({ refreshes: 0 })
    world.readFiles()
    expect((await world.run(['auth', 'token'])).code).toBe(0)
  })
})

describe.runIf(needs('posix'))('secrets', () => {
  /** Returns the secrets of the session at this moment. */
  function secretsOf(world: ProcessSession): string[] {
    if (!existsSync(world.session.files.session)) return []
    const { refreshToken, access } = world.readFiles()
    return [refreshToken, access?.value].filter((secret) => secret !== undefined)
  }

  async function secretIn({ keychain }: Keyring, { session }: ProcessSession): Promise<string> {
    const account = keychainAccount(session.files)
    const request = { operation: 'get', service: 'mailclaim', account, timeoutMs: 15_000 } as const
    const answer = await keychain.call(request)
    return answer.ok ? String(answer.value).replace(/^.*?:/, '') : ''
  }

  it('the tokens of a session appear in no output, argument or environment of `auth refresh`, `auth status` and `logout`', async () => {
    const world = await createProcessSession({ store: 'file' })
    const secrets = secretsOf(world)
    const said: string[] = []
    const note = async (words: readonly string[], fault?: Record<string, unknown>) => {
      if (fault !== undefined) await world.session.fault(fault)
      const running = world.start([...words])
      said.push(...(await watchProcess(running.child.pid ?? 0, () => running.child.exitCode !== null)))
      const { stdout, stderr } = await running.ended
      said.push(stdout, stderr)
      await world.session.clearFaults()
      secrets.push(...secretsOf(world))
    }
    world.session.expire()
    // A service that quotes the request must not bring its secret into a message.
    const { refreshToken } = world.readFiles()
    await note(['auth', 'refresh', '--verbose'], {
      kind: 'status',
      status: 400,
      headers: { 'content-type': 'application/json' },
      body: { error: 'invalid_request', error_description: `refresh_token ${refreshToken} is odd` },
    })
    await note(['auth', 'refresh', '--verbose'], { kind: 'delay', before_ms: 300 })
    await note(['auth', 'status', '--online', '--verbose', '--json'])
    await note(['auth', 'refresh', '--verbose', '--json'], { kind: 'truncate' })
    await note(['auth', 'refresh', '--verbose', '--json'])
    await note(['logout', '--verbose', '--json'])

    expect(new Set(secrets).size).toBeGreaterThanOrEqual(4)
    const everything = said.join('\n')
    expect(everything).toContain('/oauth/token')
    for (const secret of secrets) expect(everything).not.toContain(secret)
  })

  it.runIf(needs('gnome-keyring'))(
    'a refresh token in the keychain is not in session.json, nor in a message, argument or environment of `auth token`',
    async () => {
      const keyring = await startKeyring({ state: 'unlocked' })
      const world = await createProcessSession({ store: 'keychain', keyring })
      const before = await secretIn(keyring, world)
      expect(before).not.toBe('')
      world.session.expire()
      const running = world.start(['auth', 'token', '--verbose'])
      const said = await watchProcess(running.child.pid ?? 0, () => running.child.exitCode !== null)
      const { code, stderr } = await running.ended
      expect(code).toBe(0)
      const after = await secretIn(keyring, world)
      expect(after).not.toBe(before)
      // Without having seen the helper process, the next checks would prove nothing.
      expect(said.some((text) => text.includes('keychain-helper'))).toBe(true)
      const everything = [...said, stderr, JSON.stringify(world.readFiles())].join('\n')
      for (const secret of [before, after]) expect(everything).not.toContain(secret)
    },
  )
})

/** Collects the arguments and environments of a process and its descendants, by polling until the process has ended. */
async function watchProcess(pid: number, ended: () => boolean): Promise<string[]> {
  const seen = new Set<string>()
  const look = (id: number) => {
    try {
      for (const file of ['cmdline', 'environ']) seen.add(readFileSync(`/proc/${id}/${file}`, 'utf8'))
      for (const task of readdirSync(`/proc/${id}/task`)) {
        const children = readFileSync(`/proc/${id}/task/${task}/children`, 'utf8')
        for (const child of children.split(' ')) if (child !== '') look(Number(child))
      }
    } catch {
      // The process ended during the poll.
    }
  }
  while (!ended()) {
    look(pid)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
  return [...seen]
}
