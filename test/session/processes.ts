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

/** A session that real processes of the built program share, on a sandbox in the process of the test. */
export interface ProcessSession extends World {
  readonly session: SandboxSession
  /** How often the service saw a rotated token, and how many grants it revoked: both have to stay 0. */
  harm(): Promise<{ reuse: number; revoked: number }>
  /** The session as it is on the disk. @throws if it is torn. */
  readFiles(): Session
}

export interface ProcessWorldOptions {
  readonly store: 'keychain' | 'file'
  /** The environment in which a keychain is found. */
  readonly keyring?: Keyring
}

export async function createProcessSession({ store, keyring }: ProcessWorldOptions): Promise<ProcessSession> {
  const world = createWorld()
  Object.assign(world.env, keyring?.env)
  const directories: Context['directories'] = {
    config: join(world.home, 'config'),
    state: join(world.home, 'state'),
  }
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
    readFiles() {
      return session.session()
    },
  }
}

/** The clocks of this machine, as the processes see them. */
export const realClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
  alarm: () => () => {},
}

/** What a process of the program said and how it ended, on one line: for tallies. */
export function endingOf({ code, stderr }: Ended): string {
  const error = /^\{"error":.*\}$/m.exec(stderr)?.[0]
  const parsed = error === undefined ? undefined : (JSON.parse(error) as { error: { code: string } })
  return parsed === undefined ? String(code) : `${code} ${parsed.error.code}`
}

/** Counts equal things. */
export function countEach(things: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const thing of things) counts[thing] = (counts[thing] ?? 0) + 1
  return counts
}

/** Numbers in [0, 1) that are the same for the same seed (xorshift32). */
export function seeded(seed: number): () => number {
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
  /** Calls it from this process as the program does. */
  readonly keychain: Context['keychain']
}

export interface KeyringOptions {
  /** `prompting`: locked, with a prompt that nobody ever answers. `absent`: a bus on which nothing is a keychain. */
  readonly state: 'unlocked' | 'locked' | 'prompting' | 'absent'
  /** The home and the runtime directory of an earlier keyring, to find its items again. */
  readonly home?: string
}

/** Starts a D-Bus session of its own with a gnome-keyring in it; both end with the test. */
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

/** The keychain of an environment, through the helper process of the built program. */
export function keychainIn(env: Record<string, string>): Context['keychain'] {
  return createKeychain(HELPER, { PATH: process.env['PATH'] ?? '', ...env })
}

/** A bus that starts nothing by itself except, on request, a program that replaces the unlock prompt and waits. */
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
