import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { profileFiles } from '../../src/session/session-file.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { expireAccessToken, sessionIn } from '../session/sandbox-session.ts'
import { PROGRAM } from '../stories/built-program.ts'
import { shareWine, windowsPath } from './wine.ts'

const DEMO = fileURLToPath(new URL('../../scripts/demo.mjs', import.meta.url))

describe.runIf(needs('wine'))('the built program on Windows, in Wine', () => {
  const wine = shareWine()

  /** Creates a world with a sandbox in this process, and a signed-in profile. */
  async function createSession(store: 'file' | 'keychain') {
    const world = wine()
    const sandbox = await sandboxForTest({ autoApprove: true })
    const { baseUrl, clientId, dns } = sandbox
    Object.assign(world.env, {
      MAILCLAIM_BASE_URL: baseUrl,
      MAILCLAIM_CLIENT_ID: clientId,
      MAILCLAIM_RESOLVER: dns,
      MAILCLAIM_AUTHORITATIVE_PORT: dns.split(':')[1] ?? '',
    })
    const login = world.start(['node', PROGRAM, 'login', '--no-browser', '--store', store])
    await expect.poll(login.written).toMatch(/\/oauth\/authorize\?\S+\s/)
    await fetch(/http:\/\/\S+\/oauth\/authorize\?\S+/.exec(login.written())?.[0] ?? '')
    const { code, stderr } = await login.ended
    expect(code, stderr).toBe(0)
    const directories = { config: join(world.home, 'config'), state: join(world.home, 'state') }
    const files = profileFiles({ directories }, 'default')
    const state = async () => (await fetch(`${baseUrl}/_sandbox/state`)).json()
    const fault = (body: unknown) =>
      fetch(`${baseUrl}/_sandbox/faults`, { method: 'POST', body: JSON.stringify(body) })
    return { ...world, files, state, fault, session: () => sessionIn(files) }
  }

  test('on Windows, scripts/demo.mjs runs from sign-in to a completed claim', async () => {
    const { code, stdout, stderr } = await wine().start(['node', DEMO]).ended
    expect(code, stdout + stderr).toBe(0)
    expect(stdout).toContain('The claim is completed')
  })

  test('of ten concurrent processes with a session in the Windows Credential Manager, one renews it, and all print the same access token', async () => {
    const world = await createSession('keychain')
    expect(world.session()).toMatchObject({ store: 'keychain', generation: 1 })
    expect(world.session().refreshToken).toBeUndefined()
    expireAccessToken(world.files)
    const ended = await Promise.all(Array.from({ length: 10 }, () => world.mailclaim('auth', 'token')))
    expect(ended.filter(({ code }) => code !== 0)).toEqual([])
    expect(new Set(ended.map(({ stdout }) => stdout)).size).toBe(1)
    expect(await world.state()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
    expect(world.session()).toMatchObject({ store: 'keychain', generation: 2 })
    expect(world.session().refreshToken).toBeUndefined()
    expect((await world.mailclaim('logout')).code).toBe(0)
    expect(readdirSync(world.files.directory)).toEqual(['lock'])
  })

  test('on Windows, a refresh token is not sent again after the process that sent it was killed', async () => {
    const world = await createSession('file')
    expireAccessToken(world.files)
    await world.fault({ kind: 'delay', after_ms: 20_000, path: '/oauth/token' })
    const running = world.start(['node', PROGRAM, 'auth', 'token'])
    await expect.poll(() => world.state()).toMatchObject({ refreshes: 1 })
    running.child.kill('SIGKILL')
    await running.ended
    const { code, stderr } = await world.mailclaim('auth', 'token', '--json')
    expect([code, JSON.parse(stderr).error.code]).toEqual([4, 'refresh_interrupted'])
    expect(await world.state()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  test('on Windows, a token renewed while another program holds the session file open is stored by the first `auth token` after that program closes the file', async () => {
    const world = await createSession('file')
    expireAccessToken(world.files)
    // cmd opens a redirected file without FILE_SHARE_DELETE, so that no process can replace the file.
    writeFileSync(
      join(world.home, 'hold.cjs'),
      `const { existsSync, writeFileSync } = require('node:fs')
      writeFileSync('held', '')
      setInterval(() => existsSync('released') && process.exit(), 20)`,
    )
    const holder = world.start(['cmd', '/c', `${world.node} hold.cjs < ${windowsPath(world.files.session)}`])
    await expect.poll(() => existsSync(join(world.home, 'held'))).toBe(true)
    const first = await world.mailclaim('auth', 'token')
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('another program holds it open') })
    expect(await world.mailclaim('auth', 'token')).toMatchObject({ code: 0, stdout: first.stdout })
    expect(world.session().generation).toBe(1)
    writeFileSync(join(world.home, 'released'), '')
    await holder.ended
    expect(await world.mailclaim('auth', 'token')).toMatchObject({
      code: 0,
      stdout: first.stdout,
      stderr: '',
    })
    expect(world.session().generation).toBe(2)
    expect(await world.state()).toMatchObject({ refreshes: 1, reuse_detections: 0 })
  })

  test('on Windows, Ctrl-C ends all processes that the --publish command has started', async () => {
    const world = await createSession('file')
    const hook = join(world.home, 'hook.cjs')
    writeFileSync(
      hook,
      `const [, script, deeper] = process.argv
      if (!deeper) require('node:child_process').spawn(process.execPath, [script, 'deeper'])
      require('node:fs').writeFileSync('running' + (deeper ?? ''), process.env.MAILCLAIM_RECORD_NAME)
      setInterval(() => {}, 1000)`,
    )
    const publish = `${world.node} ${windowsPath(hook)}`
    const running = world.start(['node', PROGRAM, 'claim', 'example.com', '--publish', publish])
    await expect.poll(() => existsSync(join(world.home, 'runningdeeper'))).toBe(true)
    expect(readFileSync(join(world.home, 'running'), 'utf8')).toBe('example.com')
    running.child.kill('SIGINT')
    const { code, stderr } = await running.ended
    expect(code, stderr).toBe(130)
    await expect.poll(() => processesWith(windowsPath(hook))).toEqual([])
  })

  test('on Windows, the `set` lines that the sandbox prints work in cmd, and PowerShell lines have the same values', async () => {
    const world = wine()
    const sandbox = world.start(['node', PROGRAM, 'sandbox', '--format', 'table'])
    await expect.poll(sandbox.written).toContain('Press Ctrl-C')
    const lines = (prefix: string) => sandbox.written().match(new RegExp(`(?<=^  )${prefix}.*`, 'gm')) ?? []
    const pasted = lines('set ')
    expect(pasted).toHaveLength(4)
    expect(lines('\\$env:').map((line) => line.replace(/^.env:(\w+) = "(.*)"$/, 'set "$1=$2"'))).toEqual(
      pasted,
    )
    const [key] = lines('sandbox_key_')
    const list = `${world.node} ${windowsPath(PROGRAM)} claims create example.com --json`
    const script = ['@echo off', ...pasted, `set "MAILCLAIM_API_KEY=${key}"`, list]
    writeFileSync(join(world.home, 'paste.cmd'), script.join('\r\n'))
    const { stdout, stderr } = await world.start(['cmd', '/c', 'paste.cmd']).ended
    expect(stdout, stderr).toContain('"status":"pending"')
    sandbox.child.kill('SIGINT')
    expect((await sandbox.ended).code).toBe(130)
  })
})

/** Lists the ids of this machine's processes whose arguments contain the text. */
function processesWith(word: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((id) => {
      try {
        return readFileSync(`/proc/${id}/cmdline`, 'utf8').includes(word)
      } catch {
        // The process has exited since the directory was read.
        return false
      }
    })
}
