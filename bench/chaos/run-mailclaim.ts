import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll } from 'vitest'
import { createWorld, type Ended, type OnEnd, type Running } from '../../test/stories/built-program.ts'
import { clientCount } from './options.ts'
import { TokenService } from './token-service.ts'

/** Result of one run of the program. */
export interface Run extends Ended {
  /** Whether the process had to be killed because it didn't end within `HANGS_AFTER_MS`. */
  readonly hung: boolean
  /** Error that the run reported as JSON on stderr, as with `--json`; undefined for none. */
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string } | undefined
}

/** Milliseconds after which a running process is killed and reported as hung; longer than any answer takes to come. */
const HANGS_AFTER_MS = 90_000

/** A signed-in home directory with its own service; both can be reset to the moment of the sign-in. */
export interface Client {
  readonly service: TokenService
  readonly state: string
  readonly home: string
  /**
   * Resets home and service to the moment of the sign-in, with an expired access token; with `nothing`, the home has no session.
   */
  rewind(to?: 'nothing'): void
  start(words: readonly string[], env?: Readonly<Record<string, string>>): Running
  /** Waits for a process to end, and kills it if it hangs. */
  end(running: Running): Promise<Run>
  run(words: readonly string[], env?: Readonly<Record<string, string>>): Promise<Run>
  /** Signs in with `mailclaim login`; the harness plays the browser. */
  login(env?: Readonly<Record<string, string>>): Promise<Run>
  /** Returns the refresh tokens that the service still accepts and that are in a file of the state or config directory. */
  tokensOnDisk(): string[]
}

/** Scopes that each sign-in requests. */
const SCOPE = 'emails:send domains:write'

/**
 * Registers hooks that create clients before the tests and remove them afterward. Must be called outside of tests: at the top of a
 * file or of a `describe`.
 *
 * @returns the clients, an array filled before the tests begin; and a function that registers clean-up of shared resources
 */
export function shareClients(): { clients: readonly Client[]; onEnd: OnEnd } {
  const ends: (() => void)[] = []
  const onEnd = (end: () => void) => void ends.push(end)
  const clients: Client[] = []
  beforeAll(async () => {
    clients.push(...(await Promise.all(Array.from({ length: clientCount }, () => createClient(onEnd)))))
  })
  afterAll(() => {
    for (const end of ends) end()
  })
  return { clients, onEnd }
}

/** Creates a signed-in client with its own service. @param onEnd registers the clean-up of home and service */
async function createClient(onEnd: OnEnd): Promise<Client> {
  const world = createWorld(onEnd)
  const service = await TokenService.start()
  onEnd(() => service.stop())
  Object.assign(world.env, {
    MAILCLAIM_BASE_URL: service.base,
    MAILCLAIM_CLIENT_ID: 'chaos',
    MAILCLAIM_STORE: 'file',
    // Disable io_uring, by which libuv can bypass the libc functions that the shim replaces.
    UV_USE_IO_URING: '0',
    NODE_DISABLE_COMPILE_CACHE: '1',
  })
  const state = join(world.home, 'state')
  const signedIn = join(world.home, 'signed-in')
  const directories = ['state', 'config']

  async function end(running: Running): Promise<Run> {
    let hung = false
    const watchdog = setTimeout(() => {
      hung = true
      running.child.kill('SIGKILL')
    }, HANGS_AFTER_MS)
    const ended = await running.ended
    clearTimeout(watchdog)
    const line = /^\{"error":.*\}$/m.exec(ended.stderr)?.[0]
    const error = line === undefined ? undefined : (JSON.parse(line) as { error: Run['error'] }).error
    return { ...ended, hung, error }
  }

  const start = (words: readonly string[], env?: Readonly<Record<string, string>>) =>
    world.start(words, env === undefined ? {} : { env })

  const client: Client = {
    service,
    state,
    home: world.home,
    rewind(to) {
      service.rewind(memory)
      for (const directory of directories) {
        const copy = join(signedIn, directory)
        rmSync(join(world.home, directory), { recursive: true, force: true })
        if (to !== 'nothing' && existsSync(copy))
          cpSync(copy, join(world.home, directory), { recursive: true })
      }
    },
    start,
    end,
    run: (words, env) => end(start(words, env)),
    async login(env) {
      const scopes = SCOPE.split(' ').flatMap((scope) => ['--scope', scope])
      const running = start(['login', '--json', '--no-browser', '--timeout', '10', ...scopes], env)
      running.seen(/http:\/\/\S+\/oauth\/authorize\S+/).then(
        ([url]) => approve(url),
        () => {}, // The command ended before it asked for an approval.
      )
      return end(running)
    },
    tokensOnDisk() {
      const texts = directories
        .map((directory) => join(world.home, directory))
        .filter((directory) => existsSync(directory))
        .flatMap((directory) => readdirSync(directory, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
      return service.liveRefreshTokens().filter((token) => texts.some((text) => text.includes(token)))
    },
  }

  const first = await client.login()
  if (first.code !== 0) throw new Error(`the first sign-in ended with ${first.code}: ${first.stderr}`)
  for (const directory of directories)
    if (existsSync(join(world.home, directory)))
      cpSync(join(world.home, directory), join(signedIn, directory), { recursive: true })
  const memory = service.remember()
  return client
}

/** Follows the authorization URL and the redirect as a browser does; reloads if there is no response. */
async function approve(url: string): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      const answer = await fetch(url, { redirect: 'manual', headers: { connection: 'close' } })
      await fetch(answer.headers.get('location') ?? '', { headers: { connection: 'close' } })
      return
    } catch {
      await sleep(100)
    }
  }
}

/**
 * Processes each item with one of the clients, as many items at once as there are clients. @returns results in the order of items
 */
export async function inParallel<T, R>(
  clients: readonly Client[],
  items: readonly T[],
  work: (client: Client, item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  let next = 0
  await Promise.all(
    clients.map(async (client) => {
      for (let index = next++; index < items.length; index = next++)
        results[index] = await work(client, items[index] as T)
    }),
  )
  return results
}
