import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { createWorld, type ServedWorld, shareSandbox } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const WIDTHS = [60, 80, 200] as const
const flat = (screen: string) => screen.replace(/\s+/g, ' ')

describe.runIf(needs('tmux'))('on a terminal', () => {
  const serve = shareSandbox(['--auto-approve'])

  function signedIn(): ServedWorld {
    const world = serve()
    world.env['MAILCLAIM_API_KEY'] = world.service.api_key
    return world
  }

  test.each(WIDTHS)(
    'the lines of help, lists, records and checks fit a terminal of %i columns, unless they have a command, an id or a value',
    async (columns) => {
      const world = signedIn()
      const domain = `w${columns}.example`
      const screens: string[] = []
      for (const [line, expected] of [
        ['mailclaim --help', 0],
        [`mailclaim claims create ${domain}`, 0],
        ['mailclaim imports list --limit 3', 0],
        ['mailclaim grants list --state active', 0],
        ['mailclaim claims list', 0],
        [`mailclaim claims check ${domain}`, 8],
      ] as const) {
        const terminal = openTerminal(world, line, { columns, rows: 200 })
        expect(await terminal.exit(), line).toBe(expected)
        expect(terminal.cursorIsShown()).toBe(true)
        // Only a command to paste, a value or an id may be longer than the terminal is wide.
        for (const row of terminal.lines())
          if (row.length > columns)
            expect(row).toMatch(/^(hint: |\s+(→|mailclaim) |.*=\S+$|Id|\s*[\da-f-]{36})/)
        screens.push(terminal.lines().join('\n'))
      }
      expect(screens.join('\n')).toMatch(/\b[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\b/)
      expect(screens.at(-1)).toMatch(/Add a TXT record|add a TXT record/)
    },
  )

  test('the table of imports list keeps its optional columns on a terminal that reports 0 columns', async () => {
    // Serial consoles and some containers report 0 columns.
    const terminal = openTerminal(signedIn(), 'stty cols 0; mailclaim imports list --limit 2', {
      columns: 120,
    })
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen()).toMatch(/^Id +Status +Total +Created +Updated +Skipped +Failed +Created at/)
  })

  test.each(WIDTHS)(
    'mailclaim claim on a terminal of %i columns animates the current step, and leaves a line for each completed step',
    async (columns) => {
      const world = signedIn()
      const domain = `c${columns}.example`
      const terminal = openTerminal(world, `mailclaim claim ${domain}`, { columns, rows: 60 })
      const waiting = await terminal.until(/⠋|⠙|⠹|⠸|⠼|⠴|⠦|⠧|⠇|⠏/)
      expect(flat(waiting)).toContain(`✔ Claim: ${domain}, a new claim Add this TXT record to DNS:`)
      await terminal.until(/checking\s+every/)
      expect(terminal.cursorIsShown()).toBe(false)
      await world.publish([domain])
      expect(await terminal.exit()).toBe(0)
      expect(terminal.cursorIsShown()).toBe(true)
      const ended = terminal.screen()
      expect(ended).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
      expect(ended.match(/^✔ /gm)?.length).toBeGreaterThan(2)
      expect(ended.match(/^Value/gm), 'the record once').toHaveLength(1)
      // The value is shown in full where users copy it: in the record, and in the hint to add it.
      expect(ended.match(/sandbox-domain-verification=\w{32}$/gm)).toHaveLength(2)
      expect(flat(ended)).toContain(`TXT values there: none hint: add a TXT record in the zone ${domain}`)
    },
  )

  test('imports list uses only the 16 colors of the terminal, and none with NO_COLOR or --no-color', async () => {
    const world = signedIn()
    const line = 'mailclaim imports list --status completed'
    const screenOf = async (typed: string, env = {}) => {
      const terminal = openTerminal(world, typed, { env, rows: 100 })
      expect(await terminal.exit()).toBe(0)
      return terminal
    }
    const codes = (await screenOf(line)).colors().match(/\x1b\[[\d;]*m/g) ?? []
    expect(codes.length).toBeGreaterThan(3)
    for (const code of codes) expect(code).toMatch(/^\x1b\[(?:0|1|2|4|22|24|3[0-79]|9[0-7]|49|;)*m$/)
    for (const terminal of [await screenOf(line, { NO_COLOR: '1' }), await screenOf(`${line} --no-color`)])
      expect(terminal.colors()).toBe(terminal.screen())
  })

  test('login --with-api-key stores the base URL and API key typed at its prompts, and does not show the key', async () => {
    const world = serve()
    const { base_url, api_key } = world.service
    delete world.env['MAILCLAIM_BASE_URL']
    const terminal = openTerminal(world, 'mailclaim login --with-api-key --store file', { columns: 120 })
    await terminal.until(/Base URL of the service: *$/m)
    terminal.type('http://mail.example')
    terminal.keys('Enter')
    await terminal.until(/not encrypted/)
    terminal.keys('C-u')
    terminal.type(base_url)
    terminal.keys('Enter')
    await terminal.until(/API key:/)
    terminal.type(api_key)
    terminal.keys('Enter')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen()).not.toContain(api_key.slice(0, 16))
    expect((await world.run(['config', 'get', 'base-url'])).stdout.trim()).toBe(base_url)
    expect((await world.run(['auth', 'token'])).stdout.trim()).toBe(api_key)
  })

  test('mailclaim claims get without a domain lets the user pick a known claim, or exits 2 with --no-input', async () => {
    const world = signedIn()
    for (const name of ['one.example', 'two.example']) await world.run(['claims', 'create', name])
    const terminal = openTerminal(world, 'mailclaim claims get')
    await terminal.until(/❯ two\.example/)
    terminal.keys('Down')
    await terminal.until(/❯ one\.example/)
    terminal.keys('Enter')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen()).toMatch(/Domain +one\.example/)
    const mute = openTerminal(world, 'mailclaim claims get --no-input')
    expect(await mute.exit()).toBe(2)
    expect(mute.screen()).toMatch(/^error: /)
  })

  test('Ctrl-D at a prompt of mailclaim login ends the command with exit 130', async () => {
    const terminal = openTerminal(createWorld(), 'mailclaim login && echo went on')
    await terminal.until(/Base URL of the service:/)
    terminal.keys('C-d')
    expect(await terminal.exit()).toBe(130)
    expect(terminal.screen()).not.toContain('went on')
  })

  test('mailclaim claim for twelve completed domains leaves only their table and a summary on the terminal', async () => {
    const world = signedIn()
    const domains = Array.from({ length: 12 }, (_, n) => `done${n}.example`)
    await world.run(['claims', 'create', ...domains])
    await world.publish(domains)
    expect((await world.run(['claims', 'verify', ...domains, '--wait', '--json'])).code).toBe(0)
    const terminal = openTerminal(world, `mailclaim claim ${domains.join(' ')}`)
    expect(await terminal.exit()).toBe(0)
    expect(terminal.cursorIsShown()).toBe(true)
    expect(terminal.screen()).toMatch(
      /^Domain +Status[^\n]*\n(done\d+\.example +completed[^\n]*\n){12}domains: 12 /,
    )
  })

  test.each<[at: string, line: string, shows: RegExp]>([
    ['claim waits for DNS', 'mailclaim claim i2.example', /checking\s+every/],
    ['claims watch waits', 'mailclaim claims watch i4.example', /waiting for the TXT/],
    ['claims get prompts for a claim', 'mailclaim claims get', /Which claim\?/],
    ['claim prompts for a domain', 'mailclaim claim', /Domain to claim:/],
    ['login waits for approval', 'mailclaim login --store file --no-browser', /Waiting for your approval/],
    ['the sandbox runs', 'mailclaim sandbox', /Ctrl-C/],
  ])('Ctrl-C while %s exits 130 and leaves the cursor visible', async (_at, line, shows) => {
    const world = signedIn()
    await world.run(['claims', 'create', 'i4.example'])
    const terminal = openTerminal(world, line, { columns: 100 })
    await terminal.until(shows)
    terminal.keys('C-c')
    expect(await terminal.exit()).toBe(130)
    expect(terminal.cursorIsShown()).toBe(true)
    expect(terminal.screen()).not.toMatch(/this is a bug|\n +at /)
  })
})
