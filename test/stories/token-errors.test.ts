import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ClientOptions, control, createClient } from '../hardening/in-process-client.ts'
import { needs } from '../requirements.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'

/** A client in this process at a sandbox of its own, which approves every login. */
async function serve(options: ClientOptions = {}) {
  const sandbox = await sandboxForTest({ autoApprove: true })
  const client = createClient(sandbox, options)
  return {
    ...client,
    control: (path: string, body: object) => control(sandbox, 'POST', path, body),
    // Longer than any pause that passes at once: the browser is waited for.
    login: (...words: string[]) => client.run(['login', '--timeout', '3600', ...words]),
  }
}
type World = Awaited<ReturnType<typeof serve>>

/** The errors of the token endpoint (interface, section 7.1), with what a person is told of the cause. */
const ERRORS: readonly {
  error: string
  status: number
  login: readonly [number, RegExp]
  refresh: readonly [number, RegExp]
  /** Whether the session is over after it. */
  over?: true
}[] = [
  { error: 'invalid_request', status: 400, login: [6, /invalid_request/], refresh: [6, /invalid_request/] },
  { error: 'invalid_scope', status: 400, login: [6, /scope/], refresh: [6, /scope/] },
  {
    error: 'invalid_grant',
    status: 400,
    login: [4, /code|sign-in/],
    refresh: [4, /session|sign in|over/i],
    over: true,
  },
  { error: 'invalid_client', status: 401, login: [3, /client/], refresh: [3, /client/] },
  { error: 'unauthorized_client', status: 400, login: [3, /client/], refresh: [3, /client/] },
]

const fault = (world: World, error: string, status: number) =>
  world.control('faults', {
    kind: 'status',
    path: '/oauth/token',
    status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ error, error_description: 'Because \u001b[31mof the moon.' }),
    count: 1,
  })

/** One error with its next step, clean for a terminal. */
function expectCause(stderr: string, message: RegExp): void {
  const lines = stderr.trimEnd().split('\n')
  const at = lines.findIndex((line) => line.startsWith('error: '))
  expect(at, stderr).toBeGreaterThanOrEqual(0)
  expect(lines[at]).toMatch(message)
  expect(lines[at + 1], stderr).toMatch(/^hint: /)
  expect(stderr).not.toContain('\u001b')
}

describe('the token endpoint refuses', () => {
  test.each(ERRORS)(
    'a login that is refused with $error names the cause',
    async ({ error, status, login: [code, message] }) => {
      const world = await serve()
      await fault(world, error, status)
      const ended = await world.login()
      expect(ended.code, ended.stderr).toBe(code)
      expectCause(ended.stderr, message)
      expect((await world.run(['auth', 'token'])).code).toBe(4)
    },
  )

  test.each(ERRORS)(
    'a refresh that is refused with $error names the cause',
    async ({ error, status, refresh: [code, message], over }) => {
      const world = await serve()
      expect((await world.login()).code).toBe(0)
      await fault(world, error, status)
      const ended = await world.run(['auth', 'refresh'])
      expect(ended.code, ended.stderr).toBe(code)
      expectCause(ended.stderr, message)
      // What refused before it worked on the token leaves it as good as it was.
      expect((await world.run(['auth', 'refresh'])).code).toBe(over ? 4 : 0)
    },
  )
})

describe('the sandbox refuses for real', () => {
  const clients = {
    unknown: '00000000-0000-4000-8000-000000000000',
    disabled: '4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c002',
    codeOnly: '4f1c7b52-6f0e-4a53-9d2b-5c0a1de5c003',
  }

  test('the sandbox refuses a client that may not refresh', async () => {
    const world = await serve({ clientId: clients.codeOnly })
    expect((await world.login()).code).toBe(0)
    const ended = await world.run(['auth', 'refresh'])
    expect(ended.code, ended.stderr).toBe(3)
    expectCause(ended.stderr, /client/)
  })

  test('the sandbox refuses a scope beyond the grant', async () => {
    const world = await serve()
    await world.login('--scope', 'contacts:read')
    const ended = await world.run(['auth', 'token', '--scope', 'emails:send'])
    expect(ended.code, ended.stderr).toBe(6)
    expectCause(ended.stderr, /scope/)
    expect((await world.run(['auth', 'refresh'])).code).toBe(0)
  })

  test('the sandbox refuses a revoked grant', async () => {
    const world = await serve()
    await world.login()
    await world.control('grants/all/revoke', {})
    const ended = await world.run(['auth', 'refresh'])
    expect(ended.code, ended.stderr).toBe(4)
    expectCause(ended.stderr, /./)
    expect(ended.stderr).toMatch(/mailclaim login/)
  })

  test('a login with an unknown client, which the page does not redirect, ends at its timeout', async () => {
    const world = await serve({ clientId: clients.unknown })
    const ended = await world.login('--timeout', '1')
    expect(ended.code).toBe(4)
    expectCause(ended.stderr, /timed out after .* waiting for approval/)
  })
})

test.runIf(needs('posix'))('no token is ever printed or in a file that others can read', async () => {
  const world = await serve()
  const ended = await world.login('--verbose')
  const token = (await world.run(['auth', 'token'])).stdout.trim()
  expect(token.length).toBeGreaterThan(20)
  expect(ended.stdout + ended.stderr).not.toContain(token)
  const status = await world.run(['auth', 'status', '--json'])
  expect(status.stdout).not.toContain(token)
  const { state } = world.context.directories
  const holding = readdirSync(state, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .filter((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').includes(token))
  expect(holding.map((entry) => statSync(join(entry.parentPath, entry.name)).mode & 0o777)).toEqual([0o600])
})
