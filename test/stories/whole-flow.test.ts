import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'
import { createServedWorld, shareSandbox, writeScript } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const ADDRESS = /http:\/\/\S+\/oauth\/authorize\S+/

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

  test('login over SSH opens the browser that the variable BROWSER names, and succeeds after the approval', async () => {
    const world = await createServedWorld([])
    const bin = join(world.home, 'openers')
    mkdirSync(bin)
    const file = join(world.home, 'opened')
    writeScript(
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

  /** Returns the callback URL at which a browser on another machine ends, without reaching the login's listener. */
  async function redirectOf(address: string): Promise<string> {
    const response = await fetch(address, { redirect: 'manual' })
    return response.headers.get('location') ?? expect.fail(`no redirect: ${response.status}`)
  }

  /** Returns the callback URL with another `state`, as if it belonged to another login. */
  function ofAnother(address: string): string {
    const url = new URL(address)
    url.searchParams.set('state', 'x')
    return url.href
  }

  test('login reads the callback URL from stdin after wrong input, and the session works until logout', async () => {
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
    expect((await world.run(['grants', 'list'])).code).toBe(0)
    expect((await world.run(['logout'])).code).toBe(0)
    const after = await world.run(['grants', 'list'])
    expect(after.code).toBe(4)
    expect(after.stderr).toMatch(/^error: .*\nhint: .*mailclaim login/)
  })

  test.runIf(needs('tmux'))('login accepts the callback URL typed at a terminal', async () => {
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
