import { Resolver } from 'node:dns/promises'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { needs } from '../requirements.ts'
import { createWorld, install, program, type Running, shareSandbox } from './built-program.ts'
import { openTerminal, type Terminal } from './terminal.ts'

/**
 * Four kinds of users, who know only what README, docs and help say. Their command lines come from the README where it has
 * them, so that a story breaks if the README no longer leads to the end.
 */

/** The `sh` blocks of a part of the README. */
function readmeBlocks(heading: string): string[] {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const part = readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  return [...part.matchAll(/^```sh[^\n]*\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block)
}

/** A command line of the README. */
function readmeLine(heading: string, start: string): string {
  const line = readmeBlocks(heading)
    .flatMap((block) => block.split('\n'))
    .find((text) => text.startsWith(start))
  if (line === undefined) throw new Error(`"${heading}" in the README has no line "${start}"`)
  return line
}

const flat = (screen: string) => screen.replace(/\s+/g, ' ')
const COLORS = /\x1b\[[\d;]*m/g

const serve = shareSandbox()

describe.runIf(needs('tmux', 'bash'))('a new developer follows the README', () => {
  /** A terminal with an interactive shell, whose prompt shows the exit code and the number of the command. */
  function openShell(columns: number) {
    const world = createWorld()
    install(world)
    // A browser that cannot be seen from here: the person opens the address that is printed.
    program(join(world.home, 'bin'), 'xdg-open', 'exit 0')
    const line = `HISTFILE= PS1='[$? \\#] $ ' bash --norc --noprofile -i`
    const shell = () => {
      const terminal = openTerminal(world, line, { columns, rows: 150 })
      let count = 0
      const enter = (command: string) => {
        count++
        terminal.keys('C-l')
        terminal.type(command)
        terminal.keys('Enter')
      }
      /** The exit code of the command that was typed last, once the prompt is back. */
      const code = async () => {
        const prompt = new RegExp(`^\\[(\\d+) ${count + 1}\\] \\$$`, 'm')
        const ended = Number(prompt.exec(await terminal.until(prompt))?.[1])
        expect(terminal.cursorIsShown()).toBe(true)
        expectReadable(terminal, columns)
        return ended
      }
      return {
        ...terminal,
        enter,
        code,
        async run(command: string) {
          enter(command)
          return await code()
        },
      }
    }
    return shell
  }

  /** Nothing is cut off, and the only lines wider than the window are those to be copied, or typed by the person. */
  function expectReadable(terminal: Terminal, columns: number) {
    for (const line of terminal.lines()) {
      expect(line).not.toMatch(/(?<!Waiting for your approval )…$/)
      if (line.length > columns) {
        expect(line).toMatch(
          /^( {2}(export \S+|https?:\S+|mailclaim .*|value +\S+)|\S+\s+\d+\s+IN\s+TXT\s.*|\/\S+|\[\d+ \d+\] .*)$/,
        )
      }
    }
  }

  /** What the person does on the consent page of the sandbox. */
  async function approve(address: string) {
    const ticket = /name="ticket" value="([^"]+)"/.exec(await (await fetch(address)).text())?.[1] ?? ''
    const body = new URLSearchParams({ ticket, decision: 'approve' })
    const page = await fetch(new URL('/oauth/authorize', address), { method: 'POST', body })
    expect(await page.text()).toContain('You are signed in')
  }

  test.each([60, 80, 120])(
    'to a completed claim in %i columns, with a wrong host and Ctrl-C on the way',
    async (columns) => {
      const openTab = openShell(columns)
      const README = 'Try it now'
      const service = openTab()
      service.enter(readmeLine(README, 'mailclaim sandbox'))
      await service.until(/Press Ctrl-C to end it\./)
      expectReadable(service, columns)

      const shell = openTab()
      const exports = service.lines().filter((line) => /^ *export /.test(line))
      expect(exports).toHaveLength(4)
      for (const line of exports) await shell.run(line)
      const base = /http:\/\/\S+/.exec(exports[0] ?? '')?.[0] ?? ''

      shell.enter(readmeLine(README, 'mailclaim login'))
      await shell.until(/Keep the secret in a file that only\s+you\s+can\s+read\s+instead\?/)
      shell.type('y')
      shell.keys('Enter')
      await shell.until(/Waiting for your approval/)
      expect(flat(shell.screen())).toContain('there is no keychain here')
      expect(flat(shell.screen())).toContain('paste the address of its last page here')
      await approve(/^ {2}(http\S+)$/m.exec(shell.lines().join('\n'))?.[1] ?? '')
      expect(await shell.code()).toBe(0)
      expect(flat(shell.screen())).toContain(`Signed in at ${base}`)

      for (const start of ['auth status', 'grants list', 'imports list']) {
        expect(await shell.run(readmeLine(README, `mailclaim ${start}`)), start).toBe(0)
      }
      expect(await shell.run(readmeLine(README, 'mailclaim claims create'))).toBe(0)
      expect(flat(shell.screen())).toContain('Host @ (in the zone example.com) Record TXT example.com')
      expect(flat(shell.screen())).toContain(
        'hint: add the TXT record, then run: mailclaim claims check example.com',
      )
      expect(await shell.run(readmeLine(README, 'mailclaim claims record'))).toBe(0)
      const value = /IN\s+TXT\s+"([^"]+)"$/m.exec(shell.lines().join('\n'))?.[1] ?? ''
      expect(value).toMatch(/=\S{32}/)

      expect(await shell.run(readmeLine(README, 'mailclaim claims check'))).toBe(8)
      expect(flat(shell.screen())).toContain("The TXT record isn't at example.com: expected")
      expect(flat(shell.screen())).toContain('Add a TXT record in the zone example.com: host @, value')
      expect(flat(shell.screen())).toContain("error: the record isn't ready at example.com")
      // The name of a server is in one piece.
      expect(shell.screen()).toContain('ns1.sandbox-dns.test')

      const claim = readmeLine(README, 'mailclaim claim example.com')
      await addRecord(base, 'example.com', value)
      shell.enter(claim)
      // A later look at the screen may find it between two pictures.
      const waiting = flat(await shell.until(/the\s+provider\s+adds\s+example\.com\s+automatically/))
      expect(shell.cursorIsShown()).toBe(false)
      expectReadable(shell, columns)
      expect(waiting).toContain(
        'Add this TXT record to DNS: host @ (in the zone example.com) full name example.com value',
      )
      expect(shell.lines()).toContain(`  value      ${value}`)
      expect(waiting).toContain(
        'Claim example.com, resumed: waiting for the TXT record to be verified ✔ TXT record',
      )
      expect(waiting).toMatch(
        /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Seen in DNS next check in \d+ seconds?, 60 minutes left ○ Verification ○ Completed/,
      )
      expect(waiting).toContain(
        'is at example.com.example.com instead of example.com: the provider appended the domain',
      )
      expect(waiting).toContain('→ Change the host of the record to @ (or leave it empty)')
      shell.keys('C-c')
      expect(await shell.code()).toBe(130)
      expect(flat(shell.screen())).toContain('nothing is lost; to continue, run the same command again')

      await addRecord(base, '@', value)
      expect(await shell.run(claim)).toBe(0)
      const done = flat(shell.screen())
      expect(done).toContain('✔ Seen in DNS the record is visible at example.com ✔ Verification')
      expect(done).toContain('✔ Completed the domain is yours Domain example.com Status completed')
      expect(done).toContain('example.com is yours. Next steps: 1. Fetch the domain example.com')

      service.keys('C-c')
      expect(await service.code()).toBe(130)
    },
  )

  /** What the person types into the form of the sandbox's DNS page. */
  async function addRecord(base: string, name: string, value: string) {
    const body = new URLSearchParams({
      action: 'add',
      zone: 'example.com',
      name,
      type: 'TXT',
      value,
      ttl: '60',
    })
    const page = await fetch(`${base}/_sandbox/dns`, { method: 'POST', body })
    expect(page.status).toBe(200)
  }
})

describe.runIf(needs('bash', 'script', 'curl', 'jq'))('a pipeline', () => {
  /** The team's DNS tool, which replaces all values of a name as Route 53 does. */
  const AWS = `
    test "$1 $2 $3 $5" = "route53 change-resource-record-sets --hosted-zone-id --change-batch" && test -n "$4" || exit 64
    set=$(jq -c '.Changes[0].ResourceRecordSet' "\${6#file://}")
    name=$(printf '%s' "$set" | jq -r '.Name | rtrimstr(".")')
    printf '%s' "$set" | jq -c '{values: [.ResourceRecords[].Value | fromjson], ttl: .TTL}' |
      curl -sS -f -o /dev/null -X PUT "$MAILCLAIM_BASE_URL/_sandbox/dns/$name/TXT" --data @-`

  /** What docs/exit-codes.md tells a script to do about 0, 8 and 9. */
  const HANDLED = `
    for domain in "$DOMAIN" "failed.$DOMAIN" "early.$DOMAIN"; do
      timeout=60
      if [ "$domain" = "failed.$DOMAIN" ]; then
        mailclaim claims create "$domain" --json > claim.json
        mailclaim claims record "$domain" --provider route53 > change.json
        aws route53 change-resource-record-sets --hosted-zone-id "$ZONE" --change-batch file://change.json
      elif [ "$domain" = "early.$DOMAIN" ]; then
        timeout=1
      fi
      code=0
      mailclaim claim "$domain" --timeout "$timeout" --json > result.json || code=$?
      case $code in
        0) jq -r '"\\(.name): \\(.status)"' result.json ;;
        8) jq -r '"\\(.name): not yet, missing: \\(.missing.step)"' result.json ;;
        9) jq -r '"\\(.name): over: \\(.status)"' result.json ;;
        *) exit "$code" ;;
      esac
    done
    code=0
    mailclaim claims record --json || code=$?
    echo "which claim: $code"`

  test.each([
    ['in a pipe', 'piped.example', { terminal: false, env: {} }],
    ['on a terminal with CI=true', 'ci.example', { terminal: true, env: { CI: 'true' } }],
  ])('%s keeps SPF, completes, and tells 0, 8 and 9 apart', async (_where, domain, options) => {
    const world = serve()
    install(world)
    program(join(world.home, 'bin'), 'aws', AWS)
    const { api_key } = world.service
    const SPF = 'v=spf1 include:_spf.example.net ~all'
    await world.control('PUT', `dns/${domain}/TXT`, { values: [SPF] })

    const block = readmeBlocks('In scripts and CI').find((text) => text.includes('set -eu'))
    // Its own domain, as the tests share a sandbox.
    const README = block?.replace(/DOMAIN=\S+/, `DOMAIN=${domain}`)
    const { code, stdout, stderr } = await world.script(`${README}\n${HANDLED}`, {
      ...options,
      env: { ...options.env, MAILCLAIM_API_KEY: api_key, DOMAIN: domain, ZONE: 'Z1' },
    })
    expect(code, stdout + stderr).toBe(0)

    const resolver = new Resolver()
    resolver.setServers([world.service.dns])
    expect((await resolver.resolveTxt(domain)).flat()).toEqual([SPF, expect.stringMatching(/^\S+=\S+$/)])

    // No cursor is moved, no line rewritten, no question asked: the log reads from top to bottom.
    const log = (stdout + stderr).replace(COLORS, '').replaceAll('\r\n', '\n')
    if (!options.terminal) expect(stdout + stderr).not.toContain('\x1b')
    expect(log).not.toMatch(/[\x1b\r⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]|^\? /m)
    const events = log.split('\n').flatMap((line) => (line.startsWith('{"event"') ? [JSON.parse(line)] : []))
    expect(events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['created', 'record', 'dns', 'verification', 'completed']),
    )
    expect(events.at(-1)).toMatchObject({ event: 'completed', claim: { name: domain, status: 'completed' } })
    expect(log).toContain(`\n${domain}: completed\n`)
    expect(log).toContain(`\nfailed.${domain}: over: failed\n`)
    expect(log).toContain(`\nearly.${domain}: not yet, missing: dns\n`)
    expect(log).toMatch(/\{"error":\{.*"exit":2\}\}\n/)
    expect(log).toContain('which claim: 2\n')
  })
})

describe.runIf(needs('bash', 'script'))(
  'support, without an account and with an empty home directory',
  () => {
    /** Only the DNS of the customer is there: no service, no settings, nothing on disk. */
    async function supportMachine(values: readonly string[]) {
      const world = serve()
      install(world)
      await world.control('PUT', 'dns/example.net/TXT', { values })
      const home = join(world.home, 'empty')
      mkdirSync(home)
      for (const name of ['BASE_URL', 'CLIENT_ID', 'CONFIG_DIR', 'STATE_DIR'])
        delete world.env[`MAILCLAIM_${name}`]
      world.env['HOME'] = home
      return { world, home }
    }

    const look = readmeLine("When a claim isn't verifying", 'mailclaim claims check example.net')
    const compare = readmeLine("When a claim isn't verifying", 'mailclaim claims check example.net --value')

    test.each([
      ['in a pipe', false],
      ['on a terminal', true],
    ])(
      '%s sees what is in DNS, whether a value is there, and gets a report for the ticket',
      async (_where, terminal) => {
        const { world, home } = await supportMachine(['v=spf1 -all', '"prefix=token"'])
        const run = async (line: string) => {
          const { code, text } = terminal ? await onTerminal(line) : await inPipe(line)
          expect(text).not.toMatch(/claims create|mailclaim login|base-url|this is a bug|\x1b/)
          return { code, text }
        }
        const inPipe = async (line: string) => {
          const { code, stdout, stderr } = await world.script(line)
          return { code, text: stdout + stderr }
        }
        const onTerminal = async (line: string) => {
          const window = openTerminal(world, line, { rows: 100 })
          const code = await window.exit()
          expect(window.cursorIsShown()).toBe(true)
          return { code, text: window.lines().join('\n') }
        }

        const looked = await run(look)
        expect(looked.code, looked.text).toBe(0)
        for (const part of ['v=spf1 -all', 'prefix=token', 'ns1.sandbox-dns.test'])
          expect(looked.text).toContain(part)

        const compared = await run(compare)
        expect(compared.code, compared.text).toBe(8)
        expect(flat(compared.text)).toContain('The stored value includes quotation marks: expected')
        expect(flat(compared.text)).toContain('Enter the value without quotation marks')

        const report = await run(`${compare} --format markdown`)
        expect(report.code).toBe(8)
        expect(report.text).toMatch(/^## DNS check of `example\.net`\n\n- \*\*Result:\*\* /m)
        expect(report.text).toMatch(/^- \*\*Cause:\*\* .*quotation marks/m)
        expect(report.text).toMatch(/^- \*\*Fix:\*\* /m)
        // Each name server with what it answered.
        expect(report.text).toMatch(/^\|.*ns1\.sandbox-dns\.test.*\|$/m)

        await world.control('PUT', 'dns/example.net/TXT', { values: ['v=spf1 -all', 'prefix=token'] })
        expect((await run(compare)).code).toBe(0)
        expect(readdirSync(home)).toEqual([])
      },
    )
  },
)

describe.runIf(needs('posix', 'script'))('a program', () => {
  const LIMIT_MS = 20_000

  /** Fails, rather than waits, when the command is still there: a question that nobody answers. */
  async function endOf(running: Running) {
    const timer = setTimeout(() => running.child.kill('SIGKILL'), LIMIT_MS)
    const ended = await running.ended
    clearTimeout(timer)
    expect(ended.code, `ended by the time limit:\n${ended.stdout}${ended.stderr}`).not.toBe('SIGKILL')
    return ended
  }

  /** The JSON objects that a command writes, one per line, each handled as it comes. */
  async function drive(running: Running, handle: (item: Record<string, unknown>) => Promise<void>) {
    const items: Record<string, unknown>[] = []
    let rest = ''
    let handled: Promise<void> = Promise.resolve()
    running.child.stdout?.on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines.filter((line) => line.startsWith('{'))) {
        const item = JSON.parse(line) as Record<string, unknown>
        items.push(item)
        handled = handled.then(() => handle(item))
      }
    })
    const ended = await endOf(running)
    await handled
    return { ended, items }
  }

  const places = [
    ['through pipes', false],
    ['on a terminal', true],
  ] as const

  test.each(places)('%s signs in, and drives a claim from event to event', async (_where, terminal) => {
    const world = serve()
    const options = { terminal, stdin: 'open' } as const
    const login = await drive(world.start(['login', '--json', '--store', 'file'], options), async (item) => {
      if (item['event'] === 'authorization') await fetch(String(item['url']))
    })
    expect(login.ended.code, login.ended.stdout + login.ended.stderr).toBe(0)
    expect(login.items).toEqual([
      expect.objectContaining({ event: 'authorization' }),
      expect.objectContaining({ profile: 'default', kind: 'oauth', store: 'file' }),
    ])

    const domain = terminal ? 'driven-on-a-terminal.example' : 'driven.example'
    const claim = await drive(world.start(['claim', domain, '--format', 'jsonl'], options), async (item) => {
      if (item['event'] !== 'record') return
      const { record } = item['claim'] as { record: { name: string; value: string } }
      await world.control('PUT', `dns/${record.name}/TXT`, { values: [record.value] })
    })
    expect(claim.ended.code, claim.ended.stdout + claim.ended.stderr).toBe(0)
    const names = claim.items.map((item) => item['event'])
    expect(names.filter((name) => name !== 'waiting')).toEqual([
      'created',
      'record',
      'dns',
      'verification',
      'completed',
    ])
    expect(claim.items.at(-1)).toMatchObject({ claim: { name: domain, status: 'completed' } })
  })

  test.each(places)('%s is never asked anything', async (_where, terminal) => {
    const world = serve()
    const start = (words: string, env: Record<string, string | undefined> = {}) =>
      endOf(world.start(words.split(' '), { terminal, stdin: 'open', env }))
    const signedIn = { MAILCLAIM_API_KEY: world.service.api_key }
    const nowhere = { MAILCLAIM_BASE_URL: undefined, MAILCLAIM_CLIENT_ID: undefined }
    const ends = await Promise.all([
      start('login --json', nowhere),
      start('login --json --no-input'),
      start('claim --format jsonl', signedIn),
      start('claims get --json', signedIn),
      start('claims create', { ...signedIn, MAILCLAIM_NO_INPUT: '1' }),
    ])
    expect(ends.map(({ code }) => code)).toEqual([3, 2, 2, 2, 2])
    for (const { stdout, stderr } of ends.slice(0, 4)) {
      const line = (stdout + stderr).split('\n').find((text) => text.startsWith('{'))
      expect(JSON.parse(line ?? '{}'), stdout + stderr).toMatchObject({
        error: { exit: expect.any(Number), hint: expect.stringContaining('mailclaim') },
      })
    }
  })
})
