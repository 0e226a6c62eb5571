import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'
import { createServedWorld, program, type Running, type ServedWorld, shareSandbox } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const ADDRESS = /http:\/\/\S+\/oauth\/authorize\S+/

/** From the signed-in person to the domain that is theirs, each step a process of its own. */
async function claimStepByStep(world: ServedWorld, domain: string): Promise<void> {
  const grants = await world.run(['grants', 'list', '--json'])
  expect(grants.code, grants.stderr).toBe(0)
  expect(JSON.parse(grants.stdout)).toMatchObject({ object: 'list', has_more: false })

  const imports = await world.run(['imports', 'list', '--limit', '3', '--format', 'jsonl'])
  expect(imports.code, imports.stderr).toBe(0)
  const [first, ...rest] = imports.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string })
  expect(rest).toHaveLength(2)
  expect(imports.stderr).toContain(`imports list --limit 3 --format jsonl --after ${rest[1]?.id}`)
  const one = await world.run(['imports', 'get', first?.id ?? '', '--json'])
  expect(JSON.parse(one.stdout)).toEqual(first)

  const created = await world.run(['claims', 'create', domain, '--region', 'eu-west-1', '--json'])
  expect(created.code, created.stderr).toBe(0)
  const claim = JSON.parse(created.stdout) as { status: string; record: { value: string }; domain_id: string }
  expect(claim).toMatchObject({ status: 'pending', region: 'eu-west-1', name: domain })
  expect((await world.run(['claims', 'list', '--fields', 'name'])).stdout).toBe(`name\n${domain}\n`)

  const missing = await world.run(['claims', 'check', domain, '--json'])
  expect(missing.code).toBe(8)
  expect(JSON.parse(missing.stdout)).toMatchObject({
    verdict: 'fix',
    ready: false,
    expected: claim.record.value,
  })
  const tooEarly = await world.run(['claims', 'verify', domain])
  expect(tooEarly).toMatchObject({ code: 8, stdout: '' })

  const value = (await world.run(['claims', 'record', domain, '--format', 'value'])).stdout.trim()
  expect(value).toBe(claim.record.value)
  await world.control('PUT', `dns/${domain}/TXT`, { values: [value] })

  const ready = await world.run(['claims', 'check', domain, '--json'])
  expect(ready.code, ready.stderr).toBe(0)
  expect(JSON.parse(ready.stdout)).toMatchObject({ verdict: 'ready', ready: true, findings: [] })

  const verified = await world.run(['claims', 'verify', domain, '--wait', '--interval', '1', '--json'])
  expect(verified.code, verified.stderr).toBe(0)
  expect(JSON.parse(verified.stdout)).toMatchObject({ status: 'completed', domain_id: claim.domain_id })
  expect(verified.stderr).toBe('')

  const followed = await world.run(['claims', 'watch', domain])
  expect(followed.stderr).toMatch(/new DKIM/)
  expect(followed.stderr).toMatch(/can't be reused/)

  const got = await world.run(['claims', 'get', claim.domain_id, '--fields', 'status'])
  expect(got).toMatchObject({ code: 0, stdout: 'status\ncompleted\n' })
  const watched = await world.run(['claims', 'watch', domain, '--format', 'jsonl'])
  expect(watched.code).toBe(0)
  expect(JSON.parse(watched.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
    event: 'done',
    claim: { status: 'completed' },
  })
  // What is completed already is not asked for again.
  expect((await world.run(['claims', 'verify', domain])).code).toBe(0)

  const token = (await world.run(['auth', 'token'])).stdout.trim()
  expect(token.split('.')).toHaveLength(3)
  const out = await world.run(['logout'])
  expect(out.code).toBe(0)
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

  /** Stands in for the system's opener: keeps its arguments and its environment. */
  function fakeOpener(world: ServedWorld, browser = 'firefox-esr.desktop') {
    const bin = join(world.home, 'openers')
    mkdirSync(bin)
    const file = join(world.home, 'opened')
    const environment = join(world.home, 'environment')
    program(bin, 'xdg-settings', `echo ${browser}`)
    program(
      bin,
      'xdg-open',
      `env > '${environment}'; printf '%s' "$*" > '${file}.new' && mv '${file}.new' '${file}'`,
    )
    world.env['PATH'] = `${bin}:${world.env['PATH']}`
    return { file, environment }
  }

  async function openedAddress(running: Running, file: string): Promise<URL> {
    let over = false
    void running.ended.then(() => {
      over = true
    })
    while (!existsSync(file)) {
      if (over) throw new Error(`ended before the browser was opened: ${(await running.ended).stderr}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return new URL(readFileSync(file, 'utf8'))
  }

  test('a user signs in with Chromium and claims a domain', async () => {
    const world = await createServedWorld([])
    const { file } = fakeOpener(world)
    const login = world.start(['login', '--store', 'file'])
    const opened = await openedAddress(login, file)
    const address = new URL((await login.seen(ADDRESS))[0])

    // Whoever follows the address at once finds a listener.
    const redirect = new URL(address.searchParams.get('redirect_uri') ?? '')
    expect(redirect.hostname).toBe('127.0.0.1')
    await new Promise<void>((resolve, reject) => {
      const socket = connect(Number(redirect.port), redirect.hostname, () => resolve(void socket.destroy()))
      socket.on('error', reject)
    })
    expect(address.searchParams.get('code_challenge_method')).toBe('S256')

    const page = await open(opened.href)
    await page.waitForURL(address.href)
    expect(await page.textContent('body')).toContain('mailclaim')
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
    expect(new URL(page.url()).origin).toBe(redirect.origin)
    const ended = await login.ended
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stderr).toContain(`Signed in at ${world.service.base_url}`)
    // The listener is gone with it.
    await expect(fetch(redirect)).rejects.toThrow()

    await claimStepByStep(world, 'road.example.com')
  })

  test('a sign-in with Chromium leaves nothing that another user of the machine could see', async () => {
    const world = await createServedWorld(['--auto-approve'])
    const { file, environment } = fakeOpener(world)
    const login = world.start(['login', '--store', 'file'], { env: { MAILCLAIM_API_KEY: 're_of_the_team' } })
    const opened = await openedAddress(login, file)
    const address = new URL((await login.seen(ADDRESS))[0])

    // The arguments of every process can be read, and what a browser inherits stays in it.
    for (const name of ['state', 'code_challenge']) {
      expect(opened.href).not.toContain(address.searchParams.get(name))
    }
    expect(readFileSync(environment, 'utf8')).not.toMatch(/MAILCLAIM_|re_of_the_team/)
    const path = fileURLToPath(opened)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)

    const page = await open(opened.href)
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
    expect((await login.ended).code).toBe(0)
    expect(existsSync(path)).toBe(false)
  })

  test('an interrupted sign-in removes the page for the browser', async () => {
    const world = await createServedWorld([])
    const { file } = fakeOpener(world)
    const login = world.start(['login', '--store', 'file'])
    const path = fileURLToPath(await openedAddress(login, file))
    expect(existsSync(path)).toBe(true)
    login.child.kill('SIGINT')
    expect((await login.ended).code).toBe(130)
    expect(existsSync(path)).toBe(false)
  })

  test.each([
    ['in a snap', 'firefox_firefox.desktop', {}],
    ['beside WSL', 'firefox.desktop', { WSL_DISTRO_NAME: 'Debian' }],
  ])('a browser %s, which cannot read our files, gets the address', async (_where, browserEntry, env) => {
    const world = await createServedWorld([])
    const { file } = fakeOpener(world, browserEntry)
    const login = world.start(['login', '--store', 'file'], { env })
    const opened = await openedAddress(login, file)
    expect(opened.href).toBe((await login.seen(ADDRESS))[0])
    login.child.kill('SIGINT')
    await login.ended
  })

  test('Deny ends a sign-in with exit 4, and the page says so', async () => {
    const world = await createServedWorld([])
    const login = world.start(['login', '--store', 'file', '--no-browser'])
    const [address] = await login.seen(ADDRESS)
    const page = await open(address)
    await page.getByRole('button', { name: 'Deny' }).click()
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    expect(await page.textContent('main, body')).toContain('access was denied')
    const ended = await login.ended
    expect(ended.code).toBe(4)
    expect(ended.stderr).toMatch(/\nerror: access was denied in the browser.*\nhint: /)
    expect((await world.run(['auth', 'status'])).code).toBe(4)
  })

  test('if the browser cannot be opened, the printed address works', async () => {
    const world = await createServedWorld([])
    const bin = join(world.home, 'openers')
    mkdirSync(bin)
    program(bin, 'xdg-open', 'exit 3')
    world.env['PATH'] = `${bin}:${world.env['PATH']}`
    const login = world.start(['login', '--store', 'file'])
    const [address] = await login.seen(ADDRESS)
    const page = await open(address)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('heading', { name: 'You are signed in' }).waitFor()
    expect((await login.ended).code).toBe(0)
  })
})

describe.runIf(needs('posix'))('signing in with a pasted address', () => {
  const serve = shareSandbox()

  /** Where the browser of another machine ends: the listener is not reached from there. */
  async function redirectOf(address: string): Promise<string> {
    const response = await fetch(address, { redirect: 'manual' })
    const location = response.headers.get('location')
    if (location === null) throw new Error(`no redirect: ${response.status}`)
    return location
  }

  /** Lines that are no answer to this login, each with the reason that the program gives. */
  function wrongLines(right: string): readonly (readonly [string, string])[] {
    const changed = (change: (query: URLSearchParams) => void) => {
      const url = new URL(right)
      change(url.searchParams)
      return url.href
    }
    return [
      ['yes', 'paste the whole address'],
      ['http://127.0.0.1/callback', 'paste the whole address'],
      [changed((query) => query.set('state', 'x')), 'its state does not match'],
      [changed((query) => query.delete('code')), 'it has no code'],
      [changed((query) => query.set('iss', 'https://evil.example')), 'another issuer'],
      [changed((query) => query.append('code', 'second')), 'more than one "code"'],
    ]
  }

  test('a login accepts an address pasted through a pipe after wrong lines', async () => {
    const world = serve()
    const login = world.start(['login', '--store', 'file', '--no-browser'], { stdin: 'open' })
    const [address] = await login.seen(ADDRESS)
    const right = await redirectOf(address)
    for (const [line, reason] of wrongLines(right)) {
      login.type(`${line}\n`)
      await login.seen(new RegExp(`an answer was ignored: .*${reason}`))
    }
    login.type(`  ${right}\n`)
    const ended = await login.ended
    expect(ended.code, ended.stderr).toBe(0)
    expect(ended.stdout).toMatch(
      /^profile\tkind\tbase_url\tscope\tstore\ndefault\toauth\thttp[^\n]+\tfile\n$/,
    )
    await claimStepByStep(world, 'pasted.example.com')
  })

  test.runIf(needs('tmux'))(
    'a login accepts an address pasted into a terminal after wrong lines',
    async () => {
      const world = serve()
      const terminal = openTerminal(world, 'mailclaim login --store file --no-browser', { columns: 300 })
      const screen = await terminal.until(/Waiting for your approval/)
      const right = await redirectOf(ADDRESS.exec(screen)?.[0] ?? '')
      for (const [line, reason] of wrongLines(right).slice(0, 3)) {
        terminal.type(line)
        terminal.keys('Enter')
        await terminal.until(new RegExp(`ignored: .*${reason}`))
      }
      terminal.type(right)
      terminal.keys('Enter')
      expect(await terminal.exit()).toBe(0)
      expect(terminal.screen()).toContain('Signed in at')
      expect(terminal.cursorIsShown()).toBe(true)
      expect((await world.run(['auth', 'status'])).code).toBe(0)
    },
  )

  test('a login still listens after its stdin has ended', async () => {
    const world = serve()
    const login = world.start(['login', '--store', 'file', '--no-browser'], { stdin: '' })
    const [address] = await login.seen(ADDRESS)
    await fetch(address)
    expect((await login.ended).code).toBe(0)
  })

  test('a login without an answer ends with exit 4 when the time is over', async () => {
    const world = serve()
    const ended = await world.run(['login', '--store', 'file', '--no-browser', '--timeout', '1'])
    expect(ended.code).toBe(4)
    expect(ended.stderr).toMatch(
      /error: timed out after 1 second waiting for approval in the browser\nhint: /,
    )
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends a waiting login with exit %i, and closes the listener', async (signal, code) => {
    const world = serve()
    const login = world.start(['login', '--store', 'file', '--no-browser'], { stdin: 'open' })
    const [address] = await login.seen(ADDRESS)
    await login.seen(/Waiting/)
    login.child.kill(signal)
    expect((await login.ended).code).toBe(code)
    await expect(fetch(new URL(address).searchParams.get('redirect_uri') ?? '')).rejects.toThrow()
  })
})
