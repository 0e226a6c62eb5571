import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { command } from '../../../src/commands/claims/check.ts'
import { CliError } from '../../../src/errors.ts'
import { type GlobalOptions, resolveSettings } from '../../../src/settings/settings.ts'
import { createIo } from '../../../src/terminal/io.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, fakeSettings, jsonResponse } from '../../fake-context.ts'

const OPTIONS = { name: 'example.com', value: 'prefix=token' }

/** Runs `claims check` against a world with these TXT records. */
async function check(
  txt: () => readonly string[],
  options: Record<string, unknown> = OPTIONS,
  more: {
    global?: GlobalOptions
    terminal?: { columns: number }
    arguments?: string[]
    argv?: string[]
  } = {},
) {
  const clock = createFakeClock()
  const dns = createFakeDns(smallWorld(txt), clock)
  const context = createFakeContext({
    clock,
    dns,
    ...(more.terminal === undefined ? {} : { terminal: more.terminal }),
  })
  const settings = await fakeSettings(context, { resolver: ['192.0.2.53'], ...more.global }, more.argv)
  const failure = await command
    .run({ arguments: more.arguments ?? [], options }, createIo(context, settings))
    .then(() => undefined)
    .catch((error: unknown) => error)
  if (failure !== undefined && !(failure instanceof CliError)) throw failure
  return { failure, stdout: context.stdout.text, stderr: context.stderr.text, asked: dns.asked, clock }
}

const right = () => ['prefix=token']
const wrong = () => ['v=spf1 -all', 'prefix=older']

describe('claims check --json', () => {
  test('claims check --json prints the report with its keys in order', async () => {
    const { failure, stdout } = await check(right, OPTIONS, { global: { json: true } })
    expect(failure).toBeUndefined()
    const report = JSON.parse(stdout)
    expect(Object.keys(report)).toEqual([
      'name',
      'expected',
      'verdict',
      'ready',
      'retry_after_seconds',
      'claim',
      'zone',
      'nameservers',
      'resolvers',
      'findings',
    ])
    expect(report).toMatchObject({ verdict: 'ready', ready: true, retry_after_seconds: null, findings: [] })
    expect(Object.entries(report.nameservers[0])).toEqual([
      ['host', 'ns.example.com'],
      ['address', '192.0.2.2'],
      ['outcome', 'match'],
      ['authoritative', true],
      ['values', ['prefix=token']],
      ['ttl', 300],
      ['serial', 9],
      ['ms', 0],
    ])
    expect(Object.entries(report.resolvers[0])).toEqual([
      ['address', '192.0.2.53'],
      ['outcome', 'match'],
      ['values', ['prefix=token']],
      ['ttl', 60],
      ['ms', 0],
    ])
  })

  test.each([
    ['a mistake', wrong, OPTIONS, 8, 'record_not_visible', 'fix'],
    ['an invalid name', right, { ...OPTIONS, name: 'https://example.com' }, 2, 'invalid_name', 'fix'],
  ] as const)(
    'prints the report for %s as well, and says how it ended',
    async (_says, txt, options, exit, code, verdict) => {
      const { failure, stdout } = await check(txt, options, { global: { json: true } })
      expect(failure).toMatchObject({ exit, code })
      expect(failure?.hint).not.toBe(undefined)
      expect(JSON.parse(stdout)).toMatchObject({ verdict, ready: false })
    },
  )

  test('claims check --json has the facts of each finding', async () => {
    const { stdout } = await check(wrong, OPTIONS, { global: { json: true } })
    const [stale] = JSON.parse(stdout).findings
    expect(Object.keys(stale)).toEqual(['code', 'severity', 'message', 'fix', 'evidence'])
    expect(Object.entries(stale.evidence)).toEqual([
      ['name', 'example.com'],
      ['zone', 'example.com'],
      ['host', '@'],
      ['expected', 'prefix=token'],
      ['seen', 'prefix=older'],
    ])
  })

  test('the verdict is unknown, exit 7, if nobody answers', async () => {
    const clock = createFakeClock()
    const context = createFakeContext({ clock, dns: createFakeDns(() => 'silent', clock) })
    const settings = await fakeSettings(context, { resolver: ['192.0.2.53'], json: true })
    const run = command.run({ arguments: [], options: OPTIONS }, createIo(context, settings))
    await expect(run).rejects.toMatchObject({ exit: 7, code: 'dns_unavailable' })
    expect(JSON.parse(context.stdout.text)).toMatchObject({ verdict: 'unknown', zone: null })
    expect(clock.monotonic()).toBeLessThan(10_000)
  })
})

describe('claims check on a terminal', () => {
  test('the report shows the answer of each server, the differing part marked, cause and fix', async () => {
    const { stdout, failure } = await check(wrong, OPTIONS, {
      terminal: { columns: 100 },
      global: { color: false },
    })
    expect(failure).toMatchObject({ exit: 8 })
    expect(stdout).toMatchInlineSnapshot(`
      "example.com: TXT prefix=token
      Needs fixing

      Name server     Address    Answer       TXT values                  TTL  Serial  ms
      ns.example.com  192.0.2.2  other value  v=spf1 -all | prefix=older  300       9   0

      ✗ The record holds another token, as of an earlier or another claim: "prefix=older" [stale_token]
        expected  prefix=token
        found     prefix=older
                         ^^^^^
        → Add a TXT record in the zone example.com, beside any others: host @, value prefix=token

      Caches may keep the old state for up to 5 minutes
      "
    `)
  })

  test('the report marks the text around a complete value, and not the value', async () => {
    const marks = async (txt: string) => {
      const { stdout } = await check(() => [txt], OPTIONS, {
        terminal: { columns: 100 },
        global: { color: false },
      })
      const lines = stdout.split('\n')
      const seen = lines.findIndex((line) => line.startsWith('  found'))
      return lines.slice(seen - 1, seen + 2).join('\n')
    }
    expect(await marks('"prefix=token"')).toMatchInlineSnapshot(`
      "  expected   prefix=token
        found     "prefix=token"
                  ^            ^"
    `)
    expect(await marks('prefix=token ')).toMatchInlineSnapshot(`
      "  expected  prefix=token
        found     prefix=token␣
                              ^"
    `)
    expect(await marks('prefix=tok')).toMatchInlineSnapshot(`
      "  expected  prefix=token
        found     prefix=tok
                            ^ missing here"
    `)
  })

  test('the report is short if nothing is wrong', async () => {
    const { stdout } = await check(right, OPTIONS, { terminal: { columns: 100 }, global: { color: false } })
    expect(stdout).toMatchInlineSnapshot(`
      "example.com: TXT prefix=token
      Ready: the record is visible everywhere

      Name server     Address    Answer  TXT values    TTL  Serial  ms
      ns.example.com  192.0.2.2  found   prefix=token  300       9   0

      Resolver    Answer  TXT values    TTL  ms
      192.0.2.53  found   prefix=token   60   0
      "
    `)
  })

  test('the report shows no control characters from a zone', async () => {
    const { stdout } = await check(() => ['prefix=\u001b]52;c;x\u0007\u202e\u009b31m'], OPTIONS, {
      terminal: { columns: 60 },
      global: { color: false },
    })
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(stdout).toContain('\\u{202e}')
  })

  test('the report fits the width of the terminal', async () => {
    for (const columns of [40, 80, 200]) {
      const { stdout } = await check(wrong, OPTIONS, { terminal: { columns }, global: { color: false } })
      const widest = Math.max(...stdout.split('\n').map((line) => line.length))
      expect(widest).toBeLessThanOrEqual(columns)
    }
  })
})

test('claims check --format html is one page, with the command that makes it again', async () => {
  const { stdout, failure } = await check(() => ['prefix=<b>'], OPTIONS, {
    global: { format: 'html' },
    argv: ['claims', 'check', '--name', 'example.com', '--value', 'prefix=token', '--format', 'html'],
  })
  expect(failure).toMatchObject({ exit: 8, hint: undefined })
  expect(stdout).toMatch(/^<!doctype html>\n<html lang="en">[\s\S]*<\/html>\n$/)
  expect(stdout).toContain('<title>example.com: needs fixing · mailclaim</title>')
  expect(stdout).toContain('prefix=<del>&lt;b&gt;</del>')
  expect(stdout).toContain(
    '<code>mailclaim claims check --name example.com --value prefix=token --format html</code>',
  )
  expect(stdout).toContain('2026-11-20 12:00:00 UTC')
})

test('claims check --format markdown is a report for a ticket', async () => {
  const { stdout } = await check(() => ['prefix=`<b>|x'], OPTIONS, { global: { format: 'markdown' } })
  expect(stdout).toMatchInlineSnapshot(`
    "## DNS check of \`example.com\`

    - **Result:** needs fixing
    - **Expected:** TXT record at \`example.com\` with the value \`prefix=token\`
    - **Zone:** \`example.com\`
    - **Waiting time:** Caches may keep the old state for up to 5 minutes
    - **Checked:** 2026-11-20 12:00:00 UTC by mailclaim 0.0.0-test, starting at \`192.0.2.53\`

    ### Findings

    1. **error** \`stale_token\`: the record holds another token, as of an earlier or another claim: \`\`prefix=\`<b>|x\`\`
       - Fix: Add a TXT record in the zone \`example.com\`, beside any others: host \`@\`, value \`prefix=token\`
       - Evidence: \`\`{"name":"example.com","zone":"example.com","host":"@","expected":"prefix=token","seen":"prefix=\`<b>|x"}\`\`

    ### Authoritative name servers

    | Server | Answer | TXT values | TTL | Serial | ms |
    | --- | --- | --- | ---: | ---: | ---: |
    | \`ns.example.com\` \`192.0.2.2\` | other value | \`\`prefix=\`<b>\\|x\`\` | 300 | 9 | 0 |
    "
  `)
})

test('claims check piped is one record of TSV', async () => {
  const { stdout } = await check(wrong)
  expect(stdout.split('\n')).toEqual([
    'name\texpected\tverdict\tready\tretry_after_seconds\tzone\tfindings\tnameservers\tvalues',
    'example.com\tprefix=token\tfix\tfalse\t300\texample.com\tstale_token\tns.example.com/192.0.2.2=mismatch\tv=spf1 -all,prefix=older',
    '',
  ])
})

describe('claims check --wait', () => {
  test('--wait shows what it waits for, and ends when the record is visible', async () => {
    let looks = 0
    const { failure, stderr, stdout, clock } = await check(
      () => {
        looks += 1
        return looks > 6 ? ['prefix=token'] : []
      },
      { ...OPTIONS, wait: true, timeout: 900 },
    )
    expect(failure).toBeUndefined()
    expect(stdout).toContain('\tready\ttrue\t')
    expect(stderr).toContain('waiting for the TXT record at example.com for up to 15 minutes')
    expect(stderr).toContain('next check in 5 seconds')
    expect(clock.slept).toContain(3000)
  })

  test('--wait ends with exit 8 at the timeout', async () => {
    const { failure } = await check(() => [], { ...OPTIONS, wait: true, timeout: 7 })
    expect(failure).toMatchObject({ exit: 8, code: 'record_not_visible' })
  })

  test('at the timeout it says that the time is up, and how to continue', async () => {
    const { failure } = await check(() => [], { ...OPTIONS, wait: true, timeout: 7 })
    expect(failure?.message).toMatch(/^timed out after 7 seconds: /)
    expect(failure?.hint).toMatch(/to keep waiting, run again: mailclaim/)
  })
})

describe('options that do not fit together are refused', () => {
  test.each([
    [['example.com'], OPTIONS, "can't be used together"],
    [[], { name: 'example.com' }, '--name needs --value'],
    [[], { value: 'prefix=token' }, '--value needs a domain'],
    [[], {}, 'which claim?'],
    [['example.com'], { wait: true }, '--wait needs a value'],
    [[], { name: 'example.com', value: '' }, "--value isn't a complete value"],
    [[], { name: 'example.com', value: 'token' }, "--value isn't a complete value"],
  ])('%j %j', async (words, options, why) => {
    const { failure, asked } = await check(right, options, { arguments: words })
    expect(failure).toMatchObject({ exit: 2 })
    expect(failure?.message).toContain(why)
    expect(asked).toEqual([])
  })
})

describe('a domain without a claim on this machine', () => {
  const look = (
    txt: () => readonly string[],
    more: Parameters<typeof check>[2] = {},
    options: Record<string, unknown> = {},
  ) => check(txt, options, { arguments: ['example.com'], ...more })

  test('the check shows the zone, who hosts it, and the TXT records in full, with exit 0', async () => {
    const long = `google-site-verification=${'x'.repeat(70)}`
    const { failure, stdout, stderr } = await look(() => ['v=spf1 -all', long], {
      terminal: { columns: 120 },
      global: { color: false },
    })
    expect(failure).toBeUndefined()
    expect(stdout).toMatchInlineSnapshot(`
      "example.com: TXT records in the zone example.com
        v=spf1 -all
        google-site-verification=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

      Name server     Address    Answer  TXT values                                                            TTL  Serial  ms
      ns.example.com  192.0.2.2  found   v=spf1 -all |                                                         300       9   0
                                         google-site-verification=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
                                         xxxxxxxxxxx…
      "
    `)
    expect(stderr).toMatch(
      /hint: to check for a value: mailclaim claims check example\.com --value prefix=token --resolver 192\.0\.2\.53\n$/,
    )
  })

  test('the command in the hint keeps the resolvers and the port that were given', async () => {
    const clock = createFakeClock()
    const dns = createFakeDns(smallWorld(right), clock)
    const context = createFakeContext({ clock, dns, terminal: { columns: 300 } })
    const settings = await fakeSettings(context, {
      resolver: ['192.0.2.53', '192.0.2.53:5353'],
      authoritativePort: '5300',
      color: false,
    })
    await command.run({ arguments: ['example.com'], options: {} }, createIo(context, settings))
    expect(stripVTControlCharacters(context.stderr.text)).toContain(
      '--value prefix=token --resolver 192.0.2.53 --resolver 192.0.2.53:5353 --authoritative-port 5300\n',
    )
  })

  test('a word that is not a domain is refused if a value is given, as by claims create', async () => {
    const { failure } = await check(right, { value: 'prefix=token' }, { arguments: ['none'] })
    expect(failure).toMatchObject({ exit: 2, message: '"none" is not a whole domain name' })
  })

  test('with nothing configured, a single label is a mistyped domain, not an id to ask the service about', async () => {
    const context = createFakeContext({})
    expect(await run(['claims', 'check', 'Example'], context)).toBe(2)
    expect(context.stderr.text).toBe(
      'error: "Example" is not a whole domain name\nhint: Give the whole name, such as example.com\n',
    )
  })

  test('with a service, a single label that it does not know is neither a domain nor an id', async () => {
    const context = createFakeContext({
      environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
      respond: () => jsonResponse(404, { name: 'not_found', message: 'Not found' }),
    })
    for (const command of ['check', 'get', 'verify'])
      expect(await run(['claims', command, 'Example'], context)).toBe(5)
    expect(context.stderr.text.match(/^hint: .*$/gm)).toEqual(
      Array(3).fill(
        'hint: "Example" is not a whole domain name, such as example.com, and not the id of a claim',
      ),
    )
  })

  test('with nothing configured, an id is not a mistyped domain: it needs a service', async () => {
    const context = createFakeContext({})
    const id = '0190a1b2-0000-7000-8000-000000000001'
    expect(await run(['claims', 'check', id], context)).toBe(3)
    expect(context.stderr.text).toContain(
      'error: the address of the service is not configured\nhint: sign in',
    )
  })

  test('the check says that there is no TXT record, and sends nobody to create a claim', async () => {
    const { failure, stdout, stderr } = await look(() => [], {
      terminal: { columns: 100 },
      global: { color: false },
    })
    expect(failure).toBeUndefined()
    expect(stdout).toMatch(/^example\.com: TXT records in the zone example\.com\n {2}no TXT record\n/)
    expect(stdout + stderr).not.toContain('claims create')
  })

  test('the JSON report has the same keys, with no value expected', async () => {
    const { failure, stdout } = await look(wrong, { global: { json: true } })
    const withValue = await check(wrong, OPTIONS, { global: { json: true } })
    expect(failure).toBeUndefined()
    const report = JSON.parse(stdout)
    expect(Object.keys(report)).toEqual(Object.keys(JSON.parse(withValue.stdout)))
    expect(report).toMatchObject({
      name: 'example.com',
      expected: null,
      verdict: 'unknown',
      ready: false,
      retry_after_seconds: null,
      zone: 'example.com',
      nameservers: [{ host: 'ns.example.com', outcome: 'mismatch', values: wrong(), ttl: 300 }],
      resolvers: [],
      findings: [],
    })
  })

  test('the report for a ticket says that no value was expected', async () => {
    const { stdout } = await look(wrong, { global: { format: 'markdown' } })
    expect(stdout).toContain('- **Result:** no value was expected\n')
    expect(stdout).toContain('- **TXT records:** `v=spf1 -all`, `prefix=older`\n')
    expect(stdout).toContain('| `ns.example.com` `192.0.2.2` | found |')
  })

  test('no resolver is asked about the name, because its cache would remember the answer', async () => {
    const { asked } = await look(() => [])
    expect(asked.filter(({ server, name }) => server === '192.0.2.53' && name === 'example.com')).toEqual([])
  })

  test('the check works without a service, and --value is what is expected', async () => {
    const clock = createFakeClock()
    const run = async (options: Record<string, unknown>) => {
      const context = createFakeContext({ clock, dns: createFakeDns(smallWorld(right), clock) })
      const settings = await resolveSettings({ resolver: ['192.0.2.53'], json: true }, [], context)
      await command.run({ arguments: ['example.com'], options }, createIo(context, settings))
      return JSON.parse(context.stdout.text)
    }
    expect(await run({})).toMatchObject({ expected: null, zone: 'example.com' })
    expect(await run({ value: 'prefix=token' })).toMatchObject({ expected: 'prefix=token', ready: true })
  })

  test('the check ends with exit 7 if nobody answers', async () => {
    const clock = createFakeClock()
    const context = createFakeContext({ clock, dns: createFakeDns(() => 'silent', clock) })
    const settings = await fakeSettings(context, { resolver: ['192.0.2.53'], json: true })
    const run = command.run({ arguments: ['example.com'], options: {} }, createIo(context, settings))
    await expect(run).rejects.toMatchObject({ exit: 7, code: 'dns_unavailable' })
    expect(JSON.parse(context.stdout.text)).toMatchObject({ expected: null, verdict: 'unknown', zone: null })
  })
})
