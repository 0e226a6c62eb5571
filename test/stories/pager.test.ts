import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { program, type ServedWorld, shareSandbox } from './built-program.ts'
import { openTerminal } from './terminal.ts'

const SIZE = { columns: 120, rows: 24 }
const IMPORT = /^[\da-f-]{36} /gm

describe.runIf(needs('tmux', 'less'))('a list that is longer than the screen', () => {
  const serve = shareSandbox(['--auto-approve', '--imports', '5000'])

  function signedIn(): ServedWorld {
    const world = serve()
    world.env['MAILCLAIM_API_KEY'] = world.service.api_key
    return world
  }

  test('is shown page by page in color, and the terminal is as before when the person quits', async () => {
    const terminal = openTerminal(
      signedIn(),
      'before=$(stty -g); mailclaim imports list --limit 60; code=$?; [ "$before" = "$(stty -g)" ] && (exit $code)',
      SIZE,
    )
    await terminal.until(/^:$/m)
    expect(terminal.screen()).toMatch(/^Id +Status/)
    expect(terminal.colors()).toMatch(/\x1b\[1m[^\n]*Id/)
    expect(terminal.screen()).not.toContain('hint:')
    terminal.keys('Space')
    await terminal.until(/^(?!Id )[\s\S]*\n:$/)
    terminal.keys('q')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.cursorIsShown()).toBe(true)
  })

  test('has its hints below when it was read to the end', async () => {
    const terminal = openTerminal(signedIn(), 'mailclaim imports list --limit 60', SIZE)
    await terminal.until(/^:$/m)
    terminal.keys('G')
    await terminal.until(/\(END\)/)
    terminal.keys('q')
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen()).toMatch(/hint: there are more: mailclaim imports list --limit 60 --after/)
  })

  test('is no longer read when the person quits', async () => {
    const world = signedIn()
    const terminal = openTerminal(world, 'mailclaim imports list --all', SIZE)
    await terminal.until(/^:$/m)
    terminal.keys('q')
    expect(await terminal.exit()).toBe(0)
    const { requests } = (await world.control('GET', 'requests')) as { requests: unknown[] }
    // Of a hundred pages.
    expect(requests.length).toBeLessThan(50)
  })

  test('stays readable after Ctrl-C, which ends with exit code 130', async () => {
    const terminal = openTerminal(signedIn(), 'mailclaim imports list --limit 60', SIZE)
    await terminal.until(/^:$/m)
    terminal.keys('C-c')
    // An interrupt discards the keys that were typed with it.
    await expect
      .poll(
        () => {
          terminal.keys('G')
          return terminal.screen()
        },
        { timeout: 20_000 },
      )
      .toContain('(END)')
    terminal.keys('q')
    expect(await terminal.exit()).toBe(130)
    expect(terminal.cursorIsShown()).toBe(true)
  })

  test('that fits the screen is printed as without a pager', async () => {
    const terminal = openTerminal(signedIn(), 'mailclaim imports list --limit 5', SIZE)
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen().match(IMPORT)).toHaveLength(5)
  })

  test.each([
    ['PAGER=cat mailclaim imports list --limit 3', 3, ''],
    ['mailclaim imports list --limit 3 --no-pager', 3, ''],
    ["PAGER='head -n 3' mailclaim imports list --limit 30", 2, ''],
    [
      'MAILCLAIM_PAGER=absent mailclaim imports list --limit 3',
      3,
      'warning: can\'t start the pager "absent" (ENOENT); going on without it',
    ],
    ['PAGER=false mailclaim imports list --limit 3', 0, 'warning: the pager "false" ended with exit code 1'],
  ])('`%s` shows %i items', async (line, items, warning) => {
    const terminal = openTerminal(signedIn(), line, SIZE)
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen().match(IMPORT) ?? []).toHaveLength(items)
    expect(terminal.screen()).toContain(warning)
  })

  test('gives the pager none of our variables', async () => {
    const world = signedIn()
    program(world.home, 'show-environment', 'env')
    const terminal = openTerminal(world, 'PAGER=./show-environment mailclaim imports list --limit 3', SIZE)
    expect(await terminal.exit()).toBe(0)
    expect(terminal.screen()).toContain('LESS=FRX')
    expect(terminal.screen()).not.toContain('MAILCLAIM_')
    expect(terminal.screen()).not.toContain(world.service.api_key)
  })
})
