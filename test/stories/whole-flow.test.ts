import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'
import { createServedWorld, program, type ServedWorld, shareSandbox } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const ADDRESS = /http:\/\/\S+\/oauth\/authorize\S+/

/** Claims a domain as a signed-in user, with one process per step, and logs out. */
async function claimStepByStep(world: ServedWorld, domain: string): Promise<void> {
  const grants = await world.run(['grants', 'list', '--json'])
  expect(grants.code, grants.stderr).toBe(0)
  expect(JSON.parse(grants.stdout)).toMatchObject({ object: 'list', has_more: false })

  const imports = await world.run(['imports', 'list', '--limit', '3', '--format', 'jsonl'])
  const lines = imports.stdout.trim().split('\n')
  expect(lines).toHaveLength(3)
  const first = JSON.parse(lines[0] ?? '')
  // Compare only constant fields: the counts of a running import may have grown.
  const { id, created_at } = first
  const one = await world.run(['imports', 'get', id, '--json'])
  expect(JSON.parse(one.stdout)).toMatchObject({ id, created_at })

  const created = await world.run(['claims', 'create', domain, '--region', 'eu-west-1', '--json'])
  expect(created.code, created.stderr).toBe(0)
  const claim = JSON.parse(created.stdout)
  expect(claim).toMatchObject({ status: 'pending', region: 'eu-west-1', name: domain })
  expect((await world.run(['claims', 'list', '--fields', 'name'])).stdout).toBe(`name\n${domain}\n`)

  const missing = await world.run(['claims', 'check', domain, '--json'])
  expect(missing.code).toBe(8)
  expect(JSON.parse(missing.stdout)).toMatchObject({ verdict: 'fix', expected: claim.record.value })
  expect((await world.run(['claims', 'verify', domain])).code).toBe(8)

  const value = (await world.run(['claims', 'record', domain, '--format', 'value'])).stdout.trim()
  expect(value).toBe(claim.record.value)
  await world.control('PUT', `dns/${domain}/TXT`, { values: [value] })
  const ready = await world.run(['claims', 'check', domain, '--json'])
  expect(ready.code, ready.stderr).toBe(0)
  expect(JSON.parse(ready.stdout)).toMatchObject({ verdict: 'ready', ready: true, findings: [] })

  const verified = await world.run(['claims', 'verify', domain, '--wait', '--json'])
  expect(verified.code, verified.stderr).toBe(0)
  expect(JSON.parse(verified.stdout)).toMatchObject({ status: 'completed', domain_id: claim.domain_id })
  const watched = await world.run(['claims', 'watch', domain, '--format', 'jsonl'])
  expect(JSON.parse(watched.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
    event: 'done',
    claim: { status: 'completed' },
  })
  const got = await world.run(['claims', 'get', claim.domain_id, '--fields', 'status'])
  expect(got).toMatchObject({ code: 0, stdout: 'status\ncompleted\n' })

  expect((await world.run(['auth', 'token'])).stdout.trim().split('.')).toHaveLength(3)
  expect((await world.run(['logout'])).code).toBe(0)
  const after = await world.run(['grants', 'list'])
  expect(after.code).toBe(4)
  expect(after.stderr).toMatch(/^error: .*\nhint: .*mailclaim login/)
}

describe.runIf(needs('chromium'))('signing in with Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser.close())

  async function open(url: string): Promise<Page> {
    const page = await (await browser.newContext()).newPage()
    await page.goto(url)
    return page
  }

  test('a user approves in the browser that BROWSER opens over SSH, and reloads the page of success', async () => {
    const world = await createServedWorld([])
    const bin = join(world.home, 'openers')
    mkdirSync(bin)
    const file = join(world.home, 'opened')
    program(
      bin,
      'helper',
      `env > environment; printf '%s' "$*" > '${file}.new' && mv '${file}.new' '${file}'`,
    )
    const login = world.start(['login', '--store', 'file'], {
      terminal: true,
      env: { MAILCLAIM_STORE_PASSWORD: 'secret', BROWSER: `none:${bin}/helper`, SSH_CONNECTION: '1' },
    })
    const address = (await login.seen(ADDRESS))[0].trim()
    while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20))
    const page = await open(readFileSync(file, 'utf8'))
    await page.waitForURL(address)
    // The browser's environment must not contain mailclaim's variables, such as secrets: processes that it starts inherit them.
    const environment = join(world.home, 'environment')
    if (existsSync(environment)) expect(readFileSync(environment, 'utf8')).not.toContain('MAILCLAIM_')

    const redirect = new URL(new URL(address).searchParams.get('redirect_uri') ?? '')
    expect(redirect.hostname).toBe('127.0.0.1')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
    expect(new URL(page.url()).origin).toBe(redirect.origin)
    const ended = await login.ended
    expect(ended.code, ended.stderr).toBe(0)
    // The login has closed its callback listener.
    await expect(fetch(redirect)).rejects.toThrow()
    expect((await world.run(['auth', 'status'])).code).toBe(0)
  })
})

describe.runIf(needs('posix'))('signing in without a browser on this machine', () => {
  const serve = shareSandbox(['--auto-approve'])

  /** Returns the callback URL that a browser on another machine ends at, which can't reach the listener. */
  async function redirectOf(address: string): Promise<string> {
    const response = await fetch(address, { redirect: 'manual' })
    return response.headers.get('location') ?? expect.fail(`no redirect: ${response.status}`)
  }

  /** Returns the callback URL with another state, as one of another login has. */
  function ofAnother(address: string): string {
    const url = new URL(address)
    url.searchParams.set('state', 'x')
    return url.href
  }

  test('a login accepts the callback URL from a pipe after wrong input, and then a domain is claimed step by step', async () => {
    const world = serve()
    const login = world.start(['login', '--store', 'file', '--no-browser'], { stdin: 'open' })
    const right = await redirectOf((await login.seen(ADDRESS))[0])
    for (const line of ['yes', ofAnother(right)]) {
      login.type(`${line}\n`)
      await login.seen(/warning: ignored: /)
    }
    login.type(`  ${right}\n`)
    const ended = await login.ended
    expect(ended.code, ended.stderr).toBe(0)
    await claimStepByStep(world, 'pasted.example.com')
  })

  test.runIf(needs('tmux'))('a login accepts the callback URL typed in a terminal', async () => {
    const world = serve()
    const terminal = openTerminal(world, 'mailclaim login --store file --no-browser', { columns: 300 })
    const right = await redirectOf(ADDRESS.exec(await terminal.until(ADDRESS))?.[0] ?? '')
    for (const line of [ofAnother(right), right]) {
      terminal.type(line)
      terminal.keys('Enter')
      if (line !== right) await terminal.until(/warning: ignored: /)
    }
    expect(await terminal.exit()).toBe(0)
    expect(terminal.cursorIsShown()).toBe(true)
    expect((await world.run(['auth', 'status'])).code).toBe(0)
  })
})
