import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { createServedWorld, createWorld, type ServedWorld, shareSandbox } from './built-program.ts'
import { openTerminal, steady, type Terminal, type TerminalOptions } from './terminal.ts'

const WIDTHS = [40, 80, 200] as const
const SGR = /\x1b\[[\d;]*m/g

describe.runIf(needs('tmux'))('on a terminal', () => {
  // Verification takes its time here, so that a test can look while it runs.
  const serve = shareSandbox()

  function signedIn(): ServedWorld {
    const world = serve()
    world.env['MAILCLAIM_API_KEY'] = world.service.api_key
    return world
  }

  /** What a command leaves on the screen, and its exit code. */
  async function screenOf(world: ServedWorld, line: string, options: TerminalOptions) {
    // A slow moment of the machine must not widen the column of milliseconds.
    for (let attempt = 0; attempt < 10; attempt++) {
      const terminal = openTerminal(world, line, { rows: 100, ...options })
      const code = await terminal.exit()
      if (!/^(?:ms|ns\d\.|127\.).* \d{3,}$/m.test(terminal.screen())) return { terminal, code }
    }
    throw new Error(`${line} took 100 ms or more for a query, 10 times`)
  }

  async function recordValue(world: ServedWorld, domain: string): Promise<string> {
    const { claims } = (await world.control('GET', 'state')) as {
      claims: { name: string; record: { value: string } }[]
    }
    return claims.findLast((claim) => claim.name === domain)?.record.value ?? ''
  }

  function still(screen: string, value: string): string {
    return steady(screen, { [value]: 'sandbox-domain-verification=VTokenTokenTokenTokenTokenToken' })
      .replace(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/g, '⠋')
      .replace(/\d+ (minutes|hours) ago/g, 'N $1 ago')
      .replace(/^(⠋ (?:Seen in DNS|Completed) ).*/gm, '$1 N seconds')
      .replace(/^(Serial|ms)( +)\d+$/gm, '$1$2N')
      .replace(
        /^((?:ns\d|127|Resolver|Name server).*?)( +\d+)?( +)(\d+|ms)$/gm,
        (_all, start, serial, _gap, ms) => {
          return `${start}${serial === undefined ? '' : ' N'} ${ms === 'ms' ? 'ms' : 'N'}`
        },
      )
  }

  test.each(WIDTHS)('the help of the program fits %i columns', async (columns) => {
    const { terminal, code } = await screenOf(signedIn(), 'mailclaim --help', { columns, rows: 200 })
    expect(code).toBe(0)
    await expect(`${terminal.screen()}\n`).toMatchFileSnapshot(`screens/help-${columns}.txt`)
  })

  test('a table has its full width on a terminal that reports a width of 0', async () => {
    // As serial lines and some containers do.
    const line = 'stty cols 0; mailclaim imports list --limit 2'
    const { terminal, code } = await screenOf(signedIn(), line, { columns: 120 })
    expect(code).toBe(0)
    expect(terminal.screen()).toMatch(
      /^Id +Status +Total +Created +Updated +Skipped +Failed +Created at +Completed at\n[\da-f-]{36} +\w+ +\d+ +\d+ +\S/,
    )
  })

  test.each(WIDTHS)(
    'claims create, list and check fit %i columns, with the record missing and there',
    async (columns) => {
      const world = signedIn()
      const domain = `w${String(columns).padStart(3, '0')}.example`
      const screens: string[] = []
      const show = async (line: string, expected: number) => {
        const { terminal, code } = await screenOf(world, line, { columns })
        expect(code).toBe(expected)
        expect(terminal.cursorIsShown()).toBe(true)
        screens.push(`$ ${line}\n${still(terminal.screen(), await recordValue(world, domain))}\n`)
      }
      await show(`mailclaim claims create ${domain}`, 0)
      await show('mailclaim claims list --fields name,status,domain_id', 0)
      await show(`mailclaim claims check ${domain}`, 8)
      await world.control('POST', `claims/${domain}/publish`, {})
      await show(`mailclaim claims check ${domain}`, 0)
      await expect(screens.join('\n')).toMatchFileSnapshot(`screens/claims-${columns}.txt`)
    },
  )

  test.each(WIDTHS)('lists of imports and grants fit %i columns', async (columns) => {
    const world = signedIn()
    const { data } = JSON.parse((await world.run(['imports', 'list', '--json'])).stdout) as {
      data: { id: string }[]
    }
    const ids = Object.fromEntries(data.map(({ id }) => [id, '00000000-0000-0000-0000-000000000000']))
    const screens: string[] = []
    for (const line of [
      `mailclaim imports list --limit 2 --after ${data[8]?.id}`,
      'mailclaim grants list --state active',
    ]) {
      const { terminal, code } = await screenOf(world, line, { columns })
      expect(code).toBe(0)
      // An id is never cut, however narrow the window is.
      expect(terminal.screen()).toMatch(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/)
      screens.push(`$ ${line}\n${still(steady(terminal.screen(), ids), '')}\n`)
    }
    await expect(screens.join('\n')).toMatchFileSnapshot(`screens/lists-${columns}.txt`)
  })

  test.each(WIDTHS)('the checklist of a claim fits %i columns from start to end', async (columns) => {
    const world = signedIn()
    const domain = `c${String(columns).padStart(3, '0')}.example`
    const terminal = openTerminal(world, `mailclaim claim ${domain}`, { columns, rows: 60 })
    const waiting = await terminal.until(/next check in \d+ second[\s\S]*isn't in\s+DNS\s+yet[\s\S]*ns2\./)
    expect(terminal.cursorIsShown()).toBe(false)
    const value = await recordValue(world, domain)
    await world.control('POST', `claims/${domain}/publish`, {})
    const watching = await terminal.until(/Completed[\s\S]*TXT record accepted/)
    expect(await terminal.exit()).toBe(0)
    expect(terminal.cursorIsShown()).toBe(true)
    // Redrawn a dozen times a second, and nothing of it is left but the last drawing.
    for (const step of ['Claim ', 'TXT record ', 'Seen in DNS', 'Verification', 'Completed'])
      expect(
        terminal
          .screen()
          .split('\n')
          .filter((line) => line.startsWith(`✔ ${step}`)),
        step,
      ).toHaveLength(1)
    expect(terminal.screen()).not.toMatch(/[○⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
    expect(terminal.screen().replaceAll('\n', '').split(value), 'the record once').toHaveLength(2)
    await expect(
      [waiting, watching, terminal.screen()].map((screen) => `${still(screen, value)}\n`).join('\n────\n\n'),
    ).toMatchFileSnapshot(`screens/claim-${columns}.txt`)
  })

  test('a window resized while the checklist is drawn shows no leftover lines', async () => {
    const world = signedIn()
    const terminal = openTerminal(world, 'mailclaim claim narrow.example', { columns: 120, rows: 40 })
    await terminal.until(/isn't in\s+DNS\s+yet/)
    for (const columns of [60, 30, 100]) {
      terminal.resize(columns, 40)
      // Three pictures later.
      for (const frame of ['⠋', '⠹', '⠦']) await terminal.until(new RegExp(`${frame} Seen in DNS`))
      const lines = terminal.screen().split('\n')
      for (const step of ['✔ Claim', '○ Verification', '○ Completed'])
        expect(
          lines.filter((line) => line.startsWith(step)),
          terminal.screen(),
        ).toHaveLength(1)
    }
    terminal.keys('C-c')
    expect(await terminal.exit()).toBe(130)
  })

  test('output uses only the 16 colors of the terminal, which are readable on dark and light', async () => {
    const world = signedIn()
    await world.run(['claims', 'create', 'color.example'])
    for (const line of [
      'mailclaim claims check color.example',
      'mailclaim imports list --status completed',
      'mailclaim --help',
    ]) {
      const colored = await screenOf(world, line, {})
      const plain = await screenOf(world, line, { env: { NO_COLOR: '1' } })
      const off = await screenOf(world, `${line} --no-color`, {})
      const codes = colored.terminal.colors().match(SGR) ?? []
      expect(codes.length, line).toBeGreaterThan(3)
      for (const code of codes) expect(code).toMatch(/^\x1b\[(?:0|1|2|4|22|24|3[0-79]|9[0-7]|49|;)*m$/)
      for (const { terminal } of [plain, off]) expect(terminal.colors()).toBe(terminal.screen())
      const words = ({ terminal }: typeof plain) => still(terminal.screen(), '').replace(/[\d\s]+/g, ' ')
      expect(words(colored)).toBe(words(plain))
    }
  })

  test('the progress bar of an import disappears at its end', async () => {
    const world = await createServedWorld(['--auto-approve'])
    world.env['MAILCLAIM_API_KEY'] = world.service.api_key
    const { data } = JSON.parse((await world.run(['imports', 'list', '--json'])).stdout) as {
      data: { id: string; status: string }[]
    }
    const id = data.find(({ status }) => status !== 'completed' && status !== 'failed')?.id
    const terminal = openTerminal(world, `mailclaim imports watch ${id} --interval 1`)
    await terminal.until(/ [█░]{10,} +\d+% +\d+\/\d+/)
    expect(terminal.cursorIsShown()).toBe(false)
    await world.control('POST', 'clock', { advance_seconds: 15 })
    await terminal.until(/[█░]{10,} .*left +\d+(\.\d)?\/s/)
    await world.control('POST', 'clock', { advance_seconds: 3600 })
    expect(await terminal.exit()).toBe(0)
    expect(terminal.cursorIsShown()).toBe(true)
    expect(terminal.screen()).not.toMatch(/[█░%]/)
    expect(terminal.screen()).toMatch(
      /^Watching import [0-9a-f-]{36}\nId +[0-9a-f-]{36}\nStatus +completed\n/,
    )
  })

  describe('questions', () => {
    test('the first run explains itself, asks for what is missing, and remembers it', async () => {
      const world = serve()
      const { base_url, client_id } = world.service
      delete world.env['MAILCLAIM_BASE_URL']
      delete world.env['MAILCLAIM_CLIENT_ID']
      const bare = await screenOf(world, 'mailclaim', { rows: 200 })
      expect(bare.terminal.screen()).toMatch(/mailclaim sandbox/)

      const terminal = openTerminal(world, 'mailclaim login --store file --no-browser', { columns: 400 })
      await terminal.until(/Base URL of the service: *$/m)
      expect(terminal.screen()).toMatch(/^Nothing is configured yet\. .*mailclaim sandbox/)
      terminal.type('http://mail.example')
      terminal.keys('Enter')
      await terminal.until(/not encrypted/)
      terminal.keys('C-u')
      terminal.type(base_url)
      terminal.keys('Enter')
      await terminal.until(/OAuth client id: *$/m)
      terminal.type(client_id)
      terminal.keys('Enter')
      const screen = await terminal.until(/Waiting for your approval/)
      const answer = await fetch(/http:\S+authorize\S+/.exec(screen)?.[0] ?? '', { redirect: 'manual' })
      // The same keyboard that answered the questions pastes the address.
      terminal.type(answer.headers.get('location') ?? '')
      terminal.keys('Enter')
      expect(await terminal.exit()).toBe(0)
      expect(terminal.cursorIsShown()).toBe(true)
      expect((await world.run(['config', 'get', 'base-url'])).stdout.trim()).toBe(base_url)
      expect((await world.run(['grants', 'list'])).code).toBe(0)
    })

    test('a missing claim is asked for, but not with --no-input or without a terminal', async () => {
      const world = signedIn()
      for (const name of ['one.example', 'two.example']) await world.run(['claims', 'create', name])
      const terminal = openTerminal(world, 'mailclaim claims record')
      await terminal.until(/❯ two\.example +pending\n +one\.example +pending/)
      terminal.keys('Down')
      await terminal.until(/❯ one\.example/)
      terminal.keys('Enter')
      expect(await terminal.exit()).toBe(0)
      expect(terminal.cursorIsShown()).toBe(true)
      expect(terminal.screen()).toMatch(/✔ Which claim\? one\.example/)
      expect(terminal.screen()).toContain(await recordValue(world, 'one.example'))

      const mute = openTerminal(world, 'mailclaim claims record --no-input')
      expect(await mute.exit()).toBe(2)
      expect(mute.screen()).toMatch(/^error: which claim\?.*\nhint: .*mailclaim claims list/)
      expect((await world.run(['claims', 'record'])).code).toBe(2)
    })

    test.each([
      ['login --client-id c', /Base URL of the service:/, {}],
      ['login --with-api-key --store file', /API key:/, { MAILCLAIM_BASE_URL: 'http://127.0.0.1:1' }],
    ])('the end of the input (Ctrl-D) at a question of %s counts as Ctrl-C', async (words, question, env) => {
      const terminal = openTerminal(createWorld(), `mailclaim ${words} && echo went on`, { env })
      await terminal.until(question)
      terminal.keys('C-d')
      expect(await terminal.exit()).toBe(130)
      expect(terminal.screen()).toContain('error: interrupted')
      expect(terminal.screen()).not.toContain('went on')
    })

    test('claim without a domain asks for it', async () => {
      const world = signedIn()
      const terminal = openTerminal(world, 'mailclaim claim')
      await terminal.until(/Domain to claim: *$/m)
      terminal.type('asked.example')
      terminal.keys('Enter')
      await terminal.until(/✔ Claim +asked\.example, a new claim/)
      terminal.keys('C-c')
      expect(await terminal.exit()).toBe(130)
    })

    test('a typed API key is not shown', async () => {
      const world = serve()
      const terminal = openTerminal(world, 'mailclaim login --with-api-key --store file')
      await terminal.until(/API key:/)
      terminal.type(world.service.api_key)
      terminal.keys('Enter')
      expect(await terminal.exit()).toBe(0)
      expect(terminal.screen()).not.toContain(world.service.api_key.slice(0, 16))
      expect((await world.run(['auth', 'token'])).stdout.trim()).toBe(world.service.api_key)
    })
  })

  const points: readonly {
    at: string
    line: string
    before?: (world: ServedWorld) => Promise<unknown>
    shows: RegExp
    leaves?: string
  }[] = [
    {
      at: 'the claim is being created',
      line: 'mailclaim claim i1.example',
      before: (world) =>
        world.control('POST', 'faults', {
          kind: 'delay',
          before_ms: 600_000,
          method: 'POST',
          path: '/domains/claim',
          count: 1,
        }),
      shows: /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Claim/,
      leaves: 'hint: nothing is lost; to continue, run the same command again',
    },
    {
      at: 'DNS is waited for',
      line: 'mailclaim claim i2.example',
      shows: /isn't in\s+DNS\s+yet/,
      leaves: 'hint: nothing is lost; to continue, run the same command again',
    },
    {
      at: 'the claim is being followed',
      line: 'mailclaim claim blocked.i3.example --through-blocked',
      before: async (world) => {
        await world.run(['claims', 'create', 'blocked.i3.example'])
        await world.control('POST', 'claims/blocked.i3.example/publish', {})
      },
      shows: /waiting until it lifts/,
    },
    {
      at: 'claims watch waits',
      line: 'mailclaim claims watch i4.example',
      before: (world) => world.run(['claims', 'create', 'i4.example']),
      shows: /i4\.example: pending/,
    },
    {
      at: 'claims check waits',
      line: 'mailclaim claims check i5.example --wait',
      before: (world) => world.run(['claims', 'create', 'i5.example']),
      shows: /next check in/,
    },
    {
      at: 'a claim is picked',
      line: 'mailclaim claims get',
      before: (world) => world.run(['claims', 'create', 'i6.example']),
      shows: /Which claim\?/,
    },
    { at: 'a domain is typed', line: 'mailclaim claim', shows: /Domain to claim:/ },
    { at: 'an API key is typed', line: 'mailclaim login --with-api-key --store file', shows: /API key:/ },
    {
      at: 'a login waits',
      line: 'mailclaim login --store file --no-browser',
      shows: /Waiting for your approval/,
    },
    {
      at: 'a list is awaited',
      line: 'mailclaim imports list',
      before: (world) =>
        world.control('POST', 'faults', {
          kind: 'delay',
          before_ms: 600_000,
          path: '/contacts/imports',
          count: 1,
        }),
      shows: /^$/,
    },
    {
      at: 'the sandbox runs',
      line: 'mailclaim sandbox',
      shows: /Press Ctrl-C/,
      leaves: 'Press Ctrl-C to end it.',
    },
  ]

  test.each(points)(
    'Ctrl-C while $at is exit 130, and the cursor is visible',
    async ({ line, before, shows, leaves = 'error: interrupted' }) => {
      const world = signedIn()
      await before?.(world)
      const terminal: Terminal = openTerminal(world, line, { columns: 100 })
      await terminal.until(shows)
      if (shows.source === '^$') await requestsArrived(world, '/contacts/imports')
      terminal.keys('C-c')
      expect(await terminal.exit()).toBe(130)
      expect(terminal.cursorIsShown()).toBe(true)
      expect(terminal.screen()).not.toMatch(/this is a bug|\n +at /)
      expect(terminal.screen()).toContain(leaves)
      await world.control('DELETE', 'faults')
    },
  )

  test('an answer that arrives together with Enter leaves the hint on the screen', async () => {
    const world = serve()
    await world.login()
    await world.control('POST', 'faults', { kind: 'drop', path: '/oauth/token', count: 1 })
    await world.run(['auth', 'refresh'])
    const terminal = openTerminal(world, 'mailclaim auth refresh', { columns: 100 })
    await terminal.until(/Send it once more/)
    terminal.type('n\r')
    expect(await terminal.exit()).toBe(4)
    expect(terminal.screen()).toContain('hint: sign in again')
  })

  async function requestsArrived(world: ServedWorld, path: string): Promise<void> {
    await expect
      .poll(async () => JSON.stringify(await world.control('GET', 'faults')), { timeout: 20_000 })
      .toMatch(new RegExp(`"path":"${path}"[^}]*.*"struck":1`))
  }
})
