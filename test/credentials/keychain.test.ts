import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Context, KeychainRequest } from '../../src/context.ts'
import { createKeychain } from '../../src/credentials/keychain-process.ts'
import { needs } from '../requirements.ts'
import { createProcessSession, endingOf, keychainIn, startKeyring } from '../session/processes.ts'
import { interruptGroup } from '../stories/built-program.ts'

const request = (
  operation: KeychainRequest['operation'],
  account = 'default https://api.example.com 0123456789ab',
  secret?: string,
): KeychainRequest => ({
  operation,
  service: 'mailclaim',
  account,
  timeoutMs: 15_000,
  ...(secret !== undefined && { secret }),
})

/** Creates a keychain whose helper process runs the given script. */
function scriptedKeychain(script: string): { keychain: Context['keychain']; directory: string } {
  const directory = mkdtempSync(join(tmpdir(), 'mailclaim-helper-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const path = join(directory, 'helper.mjs')
  writeFileSync(path, script.replaceAll('$DIR', directory))
  return { keychain: createKeychain(path, { ONLY: 'this' }), directory }
}

async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 100; tries++) {
    try {
      process.kill(pid, 0)
    } catch {
      return true
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}

describe('the helper process of the keychain', () => {
  it('a keychain helper that does not answer in time is killed, even if it ignores SIGTERM', async () => {
    const { keychain, directory } = scriptedKeychain(`
      import { writeFileSync } from 'node:fs'
      process.on('SIGTERM', () => {})
      writeFileSync('$DIR/pid', String(process.pid))
      for (;;) {}
    `)
    const answer = await keychain.call({ ...request('get'), timeoutMs: 700 })
    expect(answer).toEqual({ ok: false, reason: 'timeout', detail: '0.7 s' })
    expect(await isGone(Number(readFileSync(join(directory, 'pid'), 'utf8')))).toBe(true)
  })

  it('the keychain helper runs in a process group of its own', async () => {
    const { keychain } = scriptedKeychain(`
      import { execFileSync } from 'node:child_process'
      const group = execFileSync('ps', ['-o', 'pgid=', '-p', String(process.pid)], { encoding: 'utf8' })
      process.once('message', () => process.send({ ok: true, value: Number(group) === process.pid }))
    `)
    expect(await keychain.call(request('get'))).toEqual({ ok: true, value: true })
  })

  it('the answer of a keychain helper arrives even if the helper is killed right after sending it', async () => {
    const { keychain } = scriptedKeychain(`
      process.once('message', () => process.send({ ok: true, value: 'x' }, () => process.kill(process.pid, 'SIGKILL')))
    `)
    const answers = await Promise.all(Array.from({ length: 12 }, () => keychain.call(request('get'))))
    expect(answers).toEqual(Array(12).fill({ ok: true, value: 'x' }))
  })

  it.each([
    ['ends without an answer', 'process.exit(7)', 'exit code 7'],
    ['crashes in native code', "process.kill(process.pid, 'SIGSEGV')", 'SIGSEGV'],
  ])('a keychain helper that %s is reported as crashed', async (_what, script, detail) => {
    const { keychain } = scriptedKeychain(script)
    expect(await keychain.call(request('get'))).toEqual({ ok: false, reason: 'crashed', detail })
  })

  it('the keychain helper gets the secret over its IPC channel, and not in its arguments or environment', async () => {
    const { keychain } = scriptedKeychain(`
      process.once('message', (request) => process.send({ ok: true, value: JSON.stringify({
        secret: request.secret, argv: process.argv.slice(2), execArgv: process.execArgv, env: process.env,
      }) }))
    `)
    const answer = await keychain.call(request('set', 'a', 'the-secret'))
    const seen = JSON.parse(answer.ok ? String(answer.value) : '{}')
    expect(seen.secret).toBe('the-secret')
    expect(seen.argv).toEqual([])
    expect(seen.execArgv).toEqual([])
    expect(seen.env.ONLY).toBe('this')
    expect(JSON.stringify({ ...seen, secret: '' })).not.toContain('the-secret')
  })
})

describe('the built helper process', () => {
  it('the built keychain helper distinguishes a missing keytar addon (no_addon) from one that does not load (no_module)', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mailclaim-helper-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const script = join(directory, 'keychain-helper.js')
    cpSync(fileURLToPath(new URL('../../dist/keychain-helper.js', import.meta.url)), script)
    const keychain = createKeychain(script, {})
    const machine = `${process.platform}-${process.arch}`
    expect(await keychain.call(request('get'))).toEqual({ ok: false, reason: 'no_addon', detail: machine })
    mkdirSync(join(directory, 'native', machine), { recursive: true })
    writeFileSync(join(directory, 'native', machine, 'keytar.node'), 'no library')
    expect(await keychain.call(request('get'))).toMatchObject({ ok: false, reason: 'no_module' })
  })
})

/** Creates a session that needs a renewal, and then puts its keychain into another state. */
async function createOutdatedSession(state: 'locked' | 'prompting') {
  const open = await startKeyring({ state: 'unlocked' })
  const world = await createProcessSession({ store: 'keychain', keyring: open })
  world.session.expire()
  await open.stop()
  return { world, keyring: await startKeyring({ state, home: open.home }) }
}

describe.runIf(needs('gnome-keyring'))('the program with a keychain', () => {
  it('`auth token`, `auth status` and `logout` report `store_unavailable` with a locked keychain', async () => {
    const { world, keyring: locked } = await createOutdatedSession('locked')
    const inIt = { env: locked.env }
    const token = await world.run(['auth', 'token', '--json'], inIt)
    expect(endingOf(token)).toBe('4 store_unavailable')
    expect(JSON.parse(token.stderr).error.hint).toMatch(/unlock it/)
    const status = await world.run(['auth', 'status', '--json'], inIt)
    expect(JSON.parse(status.stdout).state).toBe('store_unavailable')
    expect(
      endingOf(await world.run(['auth', 'token', '--json'], { env: { DBUS_SESSION_BUS_ADDRESS: '' } })),
    ).toBe('4 store_unavailable')
    expect(endingOf(await world.run(['logout', '--json', '--quiet'], inIt))).toBe('4 store_unavailable')
    expect(await world.session.counts()).toMatchObject({ refreshes: 0 })
  })

  it('a mailclaim process that is killed while the keychain prompts for its password leaves no helper process behind', async () => {
    const { world, keyring: prompting } = await createOutdatedSession('prompting')
    const running = world.start(['auth', 'token'], { env: prompting.env })
    const helper = await childOf(running.child.pid ?? 0)
    running.child.kill('SIGKILL')
    await running.ended
    expect(await isGone(helper)).toBe(true)
  })
})

describe.runIf(needs('gnome-keyring'))('Ctrl-C', () => {
  it('Ctrl-C while the keychain prompts for its password ends the keychain helper process, and the program with exit 130', async () => {
    const { world, keyring: prompting } = await createOutdatedSession('prompting')
    const running = world.start(['auth', 'token', '--json'], { env: prompting.env, group: true })
    const helper = await childOf(running.child.pid ?? 0)
    interruptGroup(running)
    expect((await running.ended).code).toBe(130)
    expect(await isGone(helper)).toBe(true)
  })

  it('Ctrl-C while a new token is being stored takes effect only after the keychain has stored the token', async () => {
    const keyring = await startKeyring({ state: 'unlocked' })
    const world = await createProcessSession({ store: 'keychain', keyring })
    world.session.expire()
    const running = world.start(['auth', 'token', '--json'], { group: true })
    const pid = running.child.pid ?? 0
    const reading = await childOf(pid)
    await childOf(pid, [reading])
    interruptGroup(running)
    const ended = await running.ended
    expect(endingOf(ended)).toBe('130 interrupted')
    expect(ended.stderr).not.toContain('keychain')
    expect(world.readFiles().refreshToken).toBeUndefined()
    expect(await world.run(['auth', 'refresh'])).toMatchObject({ code: 0 })
    expect(await world.harm()).toEqual({ reuse: 0, revoked: 0 })
  })
})

/** Reads a file of a process in /proc; empty if the process has ended. */
function readProcFile(pid: string | number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** Whether a process leads a process group, as the helper does: the terminal's Ctrl-C doesn't reach it. */
function leadsItsGroup(pid: number): boolean {
  const [, , group] = readProcFile(pid, 'stat')
    .replace(/^.*\) /, '')
    .split(' ')
  return Number(group) === pid
}

/** Waits until a process starts a helper that isn't in `known`. @returns the helper's process id */
async function childOf(pid: number, known: readonly number[] = []): Promise<number> {
  const end = performance.now() + 10_000
  while (performance.now() < end) {
    const children = readProcFile(pid, `task/${pid}/children`).trim().split(' ').map(Number)
    const found = children.find((child) => child > 0 && !known.includes(child) && leadsItsGroup(child))
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  throw new Error(`process ${pid} started no helper in 10 s`)
}

describe.runIf(needs('gnome-keyring'))('a real keychain', () => {
  it('gnome-keyring stores, returns and deletes a secret', async () => {
    const { keychain } = await startKeyring({ state: 'unlocked' })
    expect(await keychain.call(request('get'))).toEqual({ ok: true, value: null })
    expect(await keychain.call(request('set', 'a', 'näïve "secret" ✓'))).toEqual({ ok: true, value: true })
    expect(await keychain.call(request('get', 'a'))).toEqual({ ok: true, value: 'näïve "secret" ✓' })
    expect(await keychain.call(request('get', 'b'))).toEqual({ ok: true, value: null })
    expect(await keychain.call(request('delete', 'a'))).toEqual({ ok: true, value: true })
    expect(await keychain.call(request('delete', 'a'))).toEqual({ ok: true, value: false })
  })

  it('a locked gnome-keyring replies to reading or deleting a stored secret as if the secret were missing', async () => {
    const open = await startKeyring({ state: 'unlocked' })
    await open.keychain.call(request('set', 'a', 'secret'))
    await open.stop()
    const { keychain } = await startKeyring({ state: 'locked', home: open.home })
    expect(await keychain.call(request('get', 'a'))).toEqual({ ok: true, value: null })
    expect(await keychain.call(request('delete', 'a'))).toEqual({ ok: true, value: false })
    expect(await keychain.call(request('set', 'a', 'other'))).toMatchObject({ ok: false, reason: 'locked' })
  })

  it('with a D-Bus session bus without a Secret Service, a keychain call fails with the reason `no_keychain`', async () => {
    const { keychain } = await startKeyring({ state: 'absent' })
    expect(await keychain.call(request('get'))).toMatchObject({ ok: false, reason: 'no_keychain' })
    expect(await keychain.call(request('set', 'a', 'b'))).toMatchObject({ ok: false, reason: 'no_keychain' })
  })

  it.each([
    ['a missing D-Bus address', {}],
    ['an empty D-Bus address', { DBUS_SESSION_BUS_ADDRESS: '' }],
    ['an invalid D-Bus address', { DBUS_SESSION_BUS_ADDRESS: 'nonsense' }],
    ['the address of an ended D-Bus', { DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent/bus' }],
  ])('with %s, a keychain call fails with the reason `no_keychain`', async (_name, env) => {
    expect(await keychainIn(env).call(request('get'))).toMatchObject({ ok: false, reason: 'no_keychain' })
  })
})
