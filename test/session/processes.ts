import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import type { Context } from '../../src/context.ts'
import { createKeychain } from '../../src/credentials/keychain-process.ts'
import type { Session } from '../../src/session/session-file.ts'
import { createWorld, type Ended, type World } from '../stories/built-program.ts'
import { createSandboxSession, type SandboxSession } from './sandbox-session.ts'

const HELPER = fileURLToPath(new URL('../../dist/keychain-helper.js', import.meta.url))

/** A session that processes of the built program share, with a sandbox in the test's process. */
export interface ProcessSession extends World {
  readonly session: SandboxSession
  /** Counts of reused refresh tokens and of revoked grants; both must stay 0. */
  harm(): Promise<{ reuse: number; revoked: number }>
  /** Reads the session from the disk. @throws if the file is torn */
  readFiles(): Session
}

export interface ProcessWorldOptions {
  readonly store: 'keychain' | 'file'
  /** Keychain to use; its environment is passed to the processes. */
  readonly keyring?: Keyring
}

export async function createProcessSession({ store, keyring }: ProcessWorldOptions): Promise<ProcessSession> {
  const world = createWorld()
  Object.assign(world.env, keyring?.env)
  const directories = { config: join(world.home, 'config'), state: join(world.home, 'state') }
  const keychain = keyring?.keychain
  const session = await createSandboxSession(keychain === undefined ? {} : { keychain }, {
    directories,
    clock: realClock,
  })
  await session.signIn(store)
  Object.assign(world.env, {
    MAILCLAIM_BASE_URL: session.base.href.replace(/\/$/, ''),
    MAILCLAIM_CLIENT_ID: session.clientId,
  })
  return {
    ...world,
    session,
    async harm() {
      const { reuse_detections, grants_revoked } = await session.counts()
      return { reuse: reuse_detections, revoked: grants_revoked }
    },
    readFiles: () => session.session(),
  }
}

/** Real clocks, which the processes also see. */
export const realClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
  alarm: () => () => {},
}

/** Returns exit code and error code of a process on one line, for tallies. */
export function endingOf({ code, stderr }: Ended): string {
  const error = /^\{"error":.*\}$/m.exec(stderr)?.[0]
  const parsed = error === undefined ? undefined : (JSON.parse(error) as { error: { code: string } })
  return parsed === undefined ? String(code) : `${code} ${parsed.error.code}`
}

/** Counts equal strings. */
export function countEach(things: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const thing of things) counts[thing] = (counts[thing] ?? 0) + 1
  return counts
}

/** Returns a pseudorandom generator (xorshift32) of numbers in [0, 1) for a seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 0x1_0000_0000
  }
}

export interface Keyring {
  readonly env: Record<string, string>
  /** Calls the keyring from the test's process through the built helper, as the program does. */
  readonly keychain: Context['keychain']
}

export interface KeyringOptions {
  /** `prompting`: locked, with an unlock prompt that is never answered. `absent`: a bus without a Secret Service. */
  readonly state: 'unlocked' | 'locked' | 'prompting' | 'absent'
  /** Home directory of an earlier keyring, to find the items of that keyring again. */
  readonly home?: string
}

/** Starts a private D-Bus session with a gnome-keyring; both end with the test. */
export async function startKeyring({
  state,
  home: given,
}: KeyringOptions): Promise<Keyring & { home: string; stop(): Promise<void> }> {
  const home = given ?? mkdtempSync(join(tmpdir(), 'mailclaim-keyring-'))
  const runtime = mkdtempSync(join(tmpdir(), 'mailclaim-runtime-'))
  const start = {
    unlocked: 'printf %s test-only | gnome-keyring-daemon --unlock --components=secrets >/dev/null',
    locked: 'gnome-keyring-daemon --start --components=secrets >/dev/null',
    prompting: 'gnome-keyring-daemon --start --components=secrets >/dev/null',
    absent: ':',
  }[state]
  const config =
    state === 'prompting' || state === 'absent' ? ['--config-file', busConfig(runtime, state)] : []
  const bus = spawn(
    'dbus-run-session',
    [...config, '--', 'bash', '-ec', `${start}; echo "bus $DBUS_SESSION_BUS_ADDRESS"; cat >/dev/null`],
    {
      env: { PATH: process.env['PATH'] ?? '', HOME: home, XDG_RUNTIME_DIR: runtime },
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  const ended = new Promise<void>((resolve) => bus.once('exit', () => resolve()))
  const stop = async () => {
    bus.stdin.end()
    await ended
  }
  onTestFinished(async () => {
    await stop()
    rmSync(runtime, { recursive: true, force: true })
    rmSync(home, { recursive: true, force: true })
  })
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: bus.stdout }).on('line', (line) => {
      if (line.startsWith('bus ')) resolve(line.slice(4))
    })
    void ended.then(() => reject(new Error('the D-Bus session ended before it was ready')))
  })
  const env = { DBUS_SESSION_BUS_ADDRESS: address, XDG_RUNTIME_DIR: runtime, HOME: home }
  return { env, keychain: keychainIn(env), home, stop }
}

/** Returns the keychain of an environment, through the built program's helper process. */
export function keychainIn(env: Record<string, string>): Context['keychain'] {
  return createKeychain(HELPER, { PATH: process.env['PATH'] ?? '', ...env })
}

/**
 * Writes the configuration of a bus that activates no services except, for `prompting`, a program that waits in place of the unlock
 * prompt.
 *
 * @returns its path
 */
function busConfig(runtime: string, state: 'prompting' | 'absent'): string {
  const services = join(runtime, 'services')
  const path = join(runtime, 'bus.conf')
  mkdirSync(services)
  if (state === 'prompting') {
    writeFileSync(
      join(services, 'org.gnome.keyring.SystemPrompter.service'),
      '[D-BUS Service]\nName=org.gnome.keyring.SystemPrompter\nExec=/bin/sleep 10\n',
    )
  }
  writeFileSync(
    path,
    `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><servicedir>${services}</servicedir>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>`,
  )
  return path
}
