import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { recordClaim } from '../../../src/claims/ledger.ts'
import { run } from '../../../src/cli.ts'
import { command } from '../../../src/commands/claims/check.ts'
import { CliError } from '../../../src/errors.ts'
import { type GlobalOptions, resolveSettings } from '../../../src/settings/settings.ts'
import { createIo } from '../../../src/terminal/io.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import {
  createFakeClock,
  createFakeContext,
  createFakeOutput,
  fakeSettings,
  jsonResponse,
} from '../../fake-context.ts'

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

  test('claims check --json has the evidence of each finding: what was compared, then what else is known', async () => {
    const { stdout } = await check(wrong, OPTIONS, { global: { json: true } })
    const [stale] = JSON.parse(stdout).findings
    expect(Object.keys(stale)).toEqual(['code', 'severity', 'message', 'fix', 'evidence'])
    expect(Object.entries(stale.evidence)).toEqual([
      ['expected', 'prefix=token'],
      ['seen', 'prefix=older'],
      ['difference', { at: 8, expected: 'token', seen: 'older' }],
      ['seen_hex', Buffer.from('prefix=older').toString('hex')],
      ['old_state_ttl', 300],
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

      ✗ The record holds a different token: expected "prefix=token", found "prefix=older". It may be left
        over from an earlier claim. [stale_token]
        expected  prefix=token
        found     prefix=older
                         ^^^^^
        → Change the TXT record "prefix=older" (host @) to prefix=token

      i The zone example.com is hosted by ns.example.com. [wrong_provider_hint]
        → Edit the record there. Records added anywhere else (at the registrar, at the web host) have no
          effect.

      Caches may keep the old state for up to 5 minutes.
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
    - **Cause:** The record holds a different token: expected \`prefix=token\`, found \`\`prefix=\`<b>|x\`\`. It may be left over from an earlier claim
    - **Fix:** Change the TXT record \`\`prefix=\`<b>|x\`\` (host \`@\`) to \`prefix=token\`
    - **Expected:** TXT record at \`example.com\` with the value \`prefix=token\`
    - **Zone:** \`example.com\`
    - **Waiting time:** Caches may keep the old state for up to 5 minutes
    - **Checked:** 2026-11-20 12:00:00 UTC by mailclaim 0.0.0-test, starting at \`192.0.2.53\`

    ### Authoritative name servers

    | Name server | Address | Answer | Authoritative | TXT values | TTL | Serial | ms |
    | --- | --- | --- | --- | --- | ---: | ---: | ---: |
    | \`ns.example.com\` | \`192.0.2.2\` | other value | yes | \`\`prefix=\`<b>\\|x\`\` | 300 | 9 | 0 |

    ### Findings

    1. **error** \`stale_token\`: The record holds a different token: expected \`prefix=token\`, found \`\`prefix=\`<b>|x\`\`. It may be left over from an earlier claim
       - Fix: Change the TXT record \`\`prefix=\`<b>|x\`\` (host \`@\`) to \`prefix=token\`
       - Evidence: \`\`{"expected":"prefix=token","seen":"prefix=\`<b>|x","difference":{"at":8,"expected":"token","seen":"\`<b>|x"},"seen_hex":"7072656669783d603c623e7c78","old_state_ttl":300}\`\`

    2. **info** \`wrong_provider_hint\`: The zone \`example.com\` is hosted by \`ns.example.com\`
       - Fix: Edit the record there. Records added anywhere else (at the registrar, at the web host) have no effect
       - Evidence: \`{"zone":"example.com","providers":[],"nameservers":["ns.example.com"]}\`
    "
  `)
})

test.each([
  ['"prefix=token"', 'found `"prefix=token"`'],
  ['example.com. 300 IN TXT "prefix=token"', 'found `example.com. 300 IN TXT "prefix=token"`'],
  ['prefix="older" one', 'found `prefix="older" one`'],
])('the report for a ticket shows %s with its quotation marks', async (value, said) => {
  const { stdout } = await check(() => [value], OPTIONS, { global: { format: 'markdown' } })
  const cause = stdout.split('\n').find((line) => line.startsWith('- **Cause:** '))
  expect(cause).toContain(`expected \`prefix=token\`, ${said}`)
})

test('claims check piped is one record of TSV', async () => {
  const { stdout } = await check(wrong)
  expect(stdout.split('\n')).toEqual([
    'name\texpected\tverdict\tready\tretry_after_seconds\tzone\tfindings\tnameservers\tvalues',
    'example.com\tprefix=token\tfix\tfalse\t300\texample.com\tstale_token,wrong_provider_hint\tns.example.com/192.0.2.2=mismatch\tv=spf1 -all,prefix=older',
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
    [[], { name: 'example.com', value: '' }, '--value is empty'],
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

      i The zone example.com is hosted by ns.example.com. [wrong_provider_hint]
        → Edit the record there. Records added anywhere else (at the registrar, at the web host) have no effect.
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
      findings: [{ code: 'wrong_provider_hint', evidence: { nameservers: ['ns.example.com'] } }],
    })
  })

  test('the report for a ticket says that no value was expected', async () => {
    const { stdout } = await look(wrong, { global: { format: 'markdown' } })
    expect(stdout).toContain('- **Result:** no value was expected\n')
    expect(stdout).toContain('- **TXT records:** `v=spf1 -all`, `prefix=older`\n')
    expect(stdout).toContain('| `ns.example.com` | `192.0.2.2` | found | yes |')
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

test.each(['one.example.com two.example.com', '--all', '--from LIST'])(
  'the command below the summary of several domains on a terminal works as it is: claims check %s',
  async (which) => {
    const clock = createFakeClock()
    const context = createFakeContext({
      clock,
      dns: createFakeDns(
        smallWorld(() => []),
        clock,
      ),
      terminal: { columns: 120 },
      environment: { noColor: true },
    })
    const settings = await fakeSettings(context, { profile: 'ci' })
    for (const name of ['one.example.com', 'two.example.com']) {
      const record = { type: 'TXT', name, value: `prefix=${name}`, ttl: 'Auto' }
      const claim = { name, domain_id: name.slice(0, 3), status: 'pending', record }
      await recordClaim(claim as never, context, settings)
    }
    const list = join(context.directories.config, '..', 'list.csv').replaceAll('\\', '/')
    writeFileSync(list, 'one.example.com\ntwo.example.com\n')
    const type = async (line: string) => {
      const [stdout, stderr] = [createFakeOutput({ columns: 120 }), createFakeOutput({ columns: 120 })]
      const code = await run(line.split(' '), { ...context, stdout, stderr })
      return { code, text: stdout.text }
    }
    const typed = `claims check ${which} --jobs 2 --profile ci --resolver 192.0.2.53`.replace('LIST', list)
    const { code, text } = await type(typed)
    expect(code).toBe(8)
    const [, command = ''] = /ZONE, HOST, and VALUE:\nmailclaim (.+)\n/.exec(text) ?? []
    const report = await type(command.replaceAll("'", ''))
    expect(report.code).toBe(8)
    for (const name of ['one', 'two'])
      expect(report.text.replaceAll('`', '')).toContain(
        `| ${name}.example.com | example.com | ${name} | prefix=${name}.example.com |`,
      )
  },
)

describe('a domain with a claim on this machine', () => {
  async function checkKnown(options: Record<string, unknown>) {
    const clock = createFakeClock()
    const context = createFakeContext({ clock, dns: createFakeDns(smallWorld(right), clock) })
    const settings = await fakeSettings(context, { resolver: ['192.0.2.53'], json: true })
    const record = { type: 'TXT', name: 'example.com', value: 'prefix=token' }
    const claim = { name: 'example.com', domain_id: 'd1', status: 'pending', record }
    await recordClaim(claim, context, settings)
    await command.run({ arguments: ['example.com'], options }, createIo(context, settings)).catch(() => {})
    return JSON.parse(context.stdout.text)
  }

  test('is checked for the value of the claim, or of --value', async () => {
    expect(await checkKnown({})).toMatchObject({ expected: 'prefix=token', ready: true })
    expect(await checkKnown({ value: 'prefix=other' })).toMatchObject({
      expected: 'prefix=other',
      ready: false,
    })
  })
})

describe('a claim that is over', () => {
  async function checkClaim(
    claim: Record<string, unknown>,
    global: GlobalOptions = {},
    options = {},
    domains = ['example.com'],
  ) {
    const clock = createFakeClock()
    const context = createFakeContext({ clock, dns: createFakeDns(smallWorld(wrong), clock) })
    const settings = await fakeSettings(context, {
      baseUrl: 'https://api.example.com',
      resolver: ['192.0.2.53'],
      ...global,
    })
    const record = { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' }
    await recordClaim({ name: 'example.com', domain_id: 'd1', record, ...claim } as never, context, settings)
    const failure: unknown = await command
      .run({ arguments: domains, options }, createIo(context, settings))
      .catch((error: unknown) => error)
    return {
      failure,
      stdout: context.stdout.text,
      stderr: context.stderr.text,
      seconds: clock.monotonic() / 1000,
    }
  }

  const ENDS = [
    [
      { status: 'expired' },
      'claim_expired',
      'example.com: the claim expired before it was verified',
      'Start a new claim with: mailclaim claims create example.com',
    ],
    [
      { status: 'superseded' },
      'claim_superseded',
      'example.com: a newer claim replaced this one',
      'The newer claim may be completed, and the domain yours already; to see that where it was made: mailclaim claims list --refresh; or anywhere, by its domain id: mailclaim claims get DOMAIN_ID; if it is still open, it has a different TXT record: mailclaim claims record DOMAIN_ID; to start another claim, which ends the newer one: mailclaim claims create example.com',
    ],
    [
      { status: 'canceled' },
      'claim_canceled',
      'example.com: the claim was canceled',
      'Start a new claim with: mailclaim claims create example.com',
    ],
    [
      { status: 'pending', expires_at: '2026-11-20 11:00:00+00' },
      'claim_expired',
      "by this machine's clock the claim of example.com expired at 2026-11-20 11:00:00+00",
      'Start a new claim with: mailclaim claims create example.com',
    ],
  ] as const

  test.each(ENDS)(
    'and did not complete (%j) is the only finding, with exit 9',
    async (claim, code, message, fix) => {
      const { failure, stdout } = await checkClaim(claim, { json: true, quiet: true })
      expect(failure).toMatchObject({ exit: 9, code })
      const report = JSON.parse(stdout)
      expect(report).toMatchObject({ verdict: 'fix', ready: false, retry_after_seconds: null })
      expect(report.nameservers[0].values).toEqual(wrong())
      expect(report.findings).toEqual([
        { code: 'claim_ended', severity: 'error', message, fix, evidence: { error: code } },
      ])
    },
  )

  test.each(ENDS)(
    'and did not complete (%j) is the cause in every format',
    async (claim, _code, _message, fix) => {
      for (const format of ['table', 'markdown', 'html'] as const) {
        const { stdout } = await checkClaim(claim, { format, quiet: true })
        expect(stdout.replace(/`|\n +/g, (text) => (text === '`' ? '' : ' '))).toContain(fix)
        expect(stdout).not.toMatch(/Change the value|has to be there|Expected/)
      }
    },
  )

  test('is not waited for', async () => {
    const { failure, seconds } = await checkClaim({ status: 'expired' }, {}, { wait: true })
    expect(failure).toMatchObject({ exit: 9 })
    expect(seconds).toBeLessThan(10)
  })

  const COMPLETED = 'the claim is completed: example.com no longer needs its record'

  test('and completed is the only finding, with exit 0, whatever is in DNS', async () => {
    const { failure, stdout, stderr } = await checkClaim({ status: 'completed' }, { json: true })
    expect(failure).toBeUndefined()
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({ verdict: 'ready', ready: true, retry_after_seconds: null })
    expect(report.nameservers[0].values).toEqual(wrong())
    const fix = 'Nothing to do; if the record is still in DNS, it can be removed'
    expect(report.findings).toEqual([
      { code: 'claim_completed', severity: 'info', message: COMPLETED, fix, evidence: {} },
    ])
    expect(stderr).toBe('')
  })

  test('and verified by the service is the only finding, with exit 0, whatever is in DNS', async () => {
    const { failure, stdout } = await checkClaim({ status: 'verified' }, { json: true })
    expect(failure).toBeUndefined()
    const report = JSON.parse(stdout)
    expect(report).toMatchObject({ verdict: 'ready', ready: true, retry_after_seconds: null })
    expect(report.findings).toMatchObject([{ code: 'claim_verified', severity: 'info' }])
    expect((await checkClaim({ status: 'verified' }, { format: 'table' })).stdout).toMatch(
      /Ready: the service has accepted the record/,
    )
  })

  test.each(['table', 'markdown', 'html'] as const)(
    'and completed is what %s begins with',
    async (format) => {
      const { stdout } = await checkClaim({ status: 'completed' }, { format })
      const [result = '', ...findings] = stdout.replaceAll('`', '').split('he claim is completed')
      expect(result).toMatch(/done: t$/i)
      expect(result).not.toContain('Name server')
      expect(findings.join('')).toContain('example.com no longer needs its record')
      expect(stdout).not.toMatch(/Change the value|has to be there|Expected|visible everywhere/)
    },
  )

  test('and completed is not waited for, and among several it is done', async () => {
    const alone = await checkClaim({ status: 'completed' }, {}, { wait: true })
    expect(alone.failure).toBeUndefined()
    expect(alone.seconds).toBeLessThan(10)
    const several = await checkClaim({ status: 'completed' }, {}, { wait: true }, [
      'example.com',
      'EXAMPLE.com',
    ])
    expect(several.failure).toBeUndefined()
    expect(several.stderr + several.stdout).toContain('completed 1')
  })

  test('and completed says nothing about a value that was given', async () => {
    const { failure, stdout } = await checkClaim(
      { status: 'completed' },
      { json: true },
      { value: 'prefix=token' },
    )
    expect(failure).toMatchObject({ exit: 8 })
    expect(JSON.parse(stdout).findings[0].code).toBe('stale_token')
  })

  test.each(['pending', 'blocked'])('only when it is: %s is checked as before', async (status) => {
    const { failure, stderr } = await checkClaim({ status })
    expect(failure).toMatchObject({ exit: 8 })
    expect(stderr).toBe('')
  })
})

describe('a claim that is blocked', () => {
  async function checkBlocked(
    format: string,
    {
      values = ['prefix=token'],
      domains = ['example.com'],
      blocked_reason = 'grace_period' as string | null,
    } = {},
  ) {
    const clock = createFakeClock()
    const record = { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' }
    const context = createFakeContext({
      clock,
      dns: createFakeDns(
        smallWorld(() => values),
        clock,
      ),
      environment: {
        settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' },
        apiKey: 'key',
      },
      respond: () =>
        jsonResponse(200, {
          name: 'example.com',
          domain_id: 'd1',
          status: 'blocked',
          blocked_reason,
          record,
        }),
    })
    await run(['claims', 'get', 'd1'], context)
    const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
    const line = ['claims', 'check', ...domains, '--format', format]
    const code = await run(line, { ...context, stdout, stderr })
    return { code, stdout: stdout.text, stderr: stderr.text }
  }

  const REASON = 'the domain changed hands or was verified recently and is in a grace period (grace_period)'
  const BLOCK = {
    code: 'claim_blocked',
    severity: 'warning',
    message: `example.com is blocked: ${REASON}`,
    fix: 'A block can lift by itself; to wait for that: mailclaim claims watch example.com --through-blocked',
    evidence: { blocked_reason: 'grace_period' },
  }

  test('keeps what DNS says, and is the first finding where the record is visible', async () => {
    const { code, stdout } = await checkBlocked('json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'ready', ready: true, findings: [BLOCK] })
    const unexplained = await checkBlocked('json', { blocked_reason: null })
    expect(JSON.parse(unexplained.stdout).findings[0].message).toContain('the service gives no reason')
  })

  test('is the last finding where something is wrong in DNS', async () => {
    const { code, stdout } = await checkBlocked('json', { values: ['prefix=other'] })
    expect(code).toBe(8)
    const { verdict, findings } = JSON.parse(stdout)
    expect(verdict).toBe('fix')
    expect(findings[0].code).toBe('stale_token')
    expect(findings.at(-1)).toEqual(BLOCK)
  })

  test.each(['table', 'markdown', 'html'])(
    'is in the headline, with the reason and the next step: %s',
    async (format) => {
      const { stdout } = await checkBlocked(format)
      const text = stdout.replaceAll('`', '').replace(/\n +/g, ' ')
      expect(text).toMatch(/ready: the record is visible everywhere; the claim is blocked/i)
      expect(text).toContain(REASON)
      expect(text).toContain('mailclaim claims watch example.com --through-blocked')
      expect(text).not.toContain('class="panel result good"')
    },
  )

  test.each(['csv', 'tsv'])('is among the findings: %s', async (format) => {
    expect((await checkBlocked(format)).stdout).toContain('claim_blocked')
  })

  test('is not counted as ready among several, and its reason is a warning', async () => {
    const { code, stdout, stderr } = await checkBlocked('table', { domains: ['example.com', 'd1'] })
    expect(code).toBe(0)
    const text = (stdout + stderr).replace(/\n +/g, ' ')
    expect(text).toContain('blocked 2')
    expect(text).toContain('claim blocked: grace period (warning)')
    expect(text).toContain('--through-blocked')
    expect(text).not.toContain('ready 2')
  })

  test('is counted as blocked, too, where its record is missing', async () => {
    const options = { domains: ['example.com', 'd1'], values: [] }
    for (const format of ['table', 'markdown', 'html']) {
      const { code, stdout, stderr } = await checkBlocked(format, options)
      expect(code).toBe(8)
      const text = stdout + stderr
      expect(text).toContain('record missing')
      expect(text).toContain('claim blocked: grace period')
    }
    const { stderr } = await checkBlocked('tsv', options)
    expect(stderr).toContain('  2 domains: claim blocked: grace period (')
  })
})

describe('a value that was pasted', () => {
  test.each([
    ' prefix=token\t\n',
    '"prefix=token"',
    " 'prefix=token' ",
    '“prefix=token”',
    '" prefix=token "',
    '`prefix=token`',
    'prefix\u200b=token',
    'prefix=to\nken',
    '\ufeffprefix=token\u00a0',
  ])('as %j is expected without what is around it, which is said', async (value) => {
    const { failure, stdout, stderr } = await check(
      right,
      { name: 'example.com', value },
      { global: { json: true } },
    )
    expect(failure).toBeUndefined()
    expect(JSON.parse(stdout)).toMatchObject({ expected: 'prefix=token', ready: true })
    expect(stderr).toBe(
      'warning: ignoring spaces, quotation marks, or invisible characters in --value that cannot belong to it\n',
    )
  })

  test('a value with a quotation mark at only one end is not changed', async () => {
    const { stdout, stderr } = await check(
      right,
      { name: 'example.com', value: '"prefix=token' },
      { global: { json: true } },
    )
    expect(JSON.parse(stdout).expected).toBe('"prefix=token')
    expect(stderr).not.toContain('ignoring')
  })

  test.each([
    ['dG9rZW4=', "isn't a complete value", 'give the complete TXT value'],
    ['token', "isn't a complete value", 'give the complete TXT value'],
    ['prefix=', "isn't a complete value", 'give the complete TXT value'],
    ['prefix%3Dtoken', "isn't a complete value", 'give the complete TXT value'],
    ['prefix=to…', 'is shortened', 'give the complete TXT value'],
    ['pre…=token', 'is shortened', 'give the complete TXT value'],
    ['prefix=to...en', 'is shortened', 'give the complete TXT value'],
    ['TXT prefix=token', 'record line or a field label', 'give only the value: prefix=token'],
    ['TXT=prefix=token', 'record line or a field label', 'give only the value: prefix=token'],
    ['value: prefix=token', 'record line or a field label', 'give only the value: prefix=token'],
    ['Value:prefix=token', 'record line or a field label', 'give only the value: prefix=token'],
    [
      'example.com.\t300\tIN\tTXT\t"prefix=token"',
      'record line or a field label',
      'give only the value: prefix=token',
    ],
  ])('as %j is refused, because it is not a value', async (value, problem, fix) => {
    const { failure, asked } = await check(right, { name: 'example.com', value })
    expect(failure).toMatchObject({ exit: 2 })
    expect(failure?.message).toContain(problem)
    expect(failure?.hint).toContain(fix)
    expect(asked).toEqual([])
  })

  test.each(['value=token', 'txt=token=', 'prefix=a=b', 'prefix=dG9rZW4=='])(
    'as %j is taken as it is',
    async (value) => {
      const { failure, stderr } = await check(() => [value], { name: 'example.com', value })
      expect(failure).toBeUndefined()
      expect(stderr).not.toContain('ignoring')
    },
  )

  const WHOLE = 'prefix=VGhpcyBpcyBhIHRva2Vu'
  test.each([
    ['the last characters missing', WHOLE.slice(0, -8)],
    ['the first characters missing', WHOLE.slice(2)],
    ['an en dash', 'prefix=VGhpcyBpcyBhIHRva2V–'],
    ['a quotation mark', `"${WHOLE}`],
    ['a full stop and a space', `${WHOLE}. `],
    ['an encoded character', WHOLE.replace('=', '=3D')],
    ['its letters lowered', WHOLE.toLowerCase()],
    ['its first letter capitalized', `P${WHOLE.slice(1)}`],
  ])('with %s is doubted, rather than the whole value in DNS', async (_title, value) => {
    const dns = () => ['v=spf1 -all', WHOLE]
    const { failure, stdout } = await check(dns, { name: 'example.com', value }, { global: { json: true } })
    expect(failure).toMatchObject({ exit: 8, hint: expect.stringContaining('the record is right') })
    const report = JSON.parse(stdout)
    expect(report.verdict).toBe('fix')
    expect(report.findings[0]).toMatchObject({ code: 'doubtful_value', evidence: { seen: WHOLE } })
    const others = report.findings.slice(1).map(({ code }: { code: string }) => code)
    expect(others).not.toContain('missing')
    expect(stdout).not.toContain(`to ${value.trim()}"`)
  })

  const CUT = WHOLE.slice(0, -1)
  test.each([
    ['quotation marks', 'quoted', `"${WHOLE}"`],
    ['typographic quotation marks', 'quoted', `“${WHOLE}”`],
    ['backslashes', 'quoted', `\\"${WHOLE}\\"`],
    ['a space at the end', 'whitespace', `${WHOLE} `],
    ['a line break inside', 'whitespace', WHOLE.replace('Vu', 'V\nu')],
    ['a space inside', 'whitespace', WHOLE.replace('IHR', ' IHR')],
    ['a zone line around it', 'pasted_line', `example.com. 300 IN TXT "${WHOLE}"`],
    ['a label', 'pasted_line', `TXT=${WHOLE}`],
    ['a label and a colon', 'pasted_line', `value: ${WHOLE}`],
    ['another record', 'extra_text', `v=spf1 -all ${WHOLE}`],
    ['URL encoding', 'encoded', encodeURIComponent(WHOLE)],
    ['HTML', 'encoded', WHOLE.replace('=', '&#61;')],
    ['base64', 'encoded', Buffer.from(WHOLE).toString('base64')],
  ])('is doubted before %s around the whole value in DNS', async (_title, code, seen) => {
    const dns = () => ['v=spf1 -all', seen]
    const options = { name: 'example.com', value: CUT }
    const { failure, stdout } = await check(dns, options, { global: { json: true } })
    const { findings } = JSON.parse(stdout)
    expect(findings).toMatchObject([
      { code: 'doubtful_value', evidence: { expected: CUT, seen: WHOLE } },
      { code, severity: 'error', evidence: { expected: WHOLE, seen } },
    ])
    expect(failure?.hint).toContain(`If that is "${WHOLE}", check for it instead`)
    expect(findings[1].fix).toContain(WHOLE)
    for (const format of ['table', 'markdown', 'html'] as const) {
      const { stdout } = await check(dns, options, { global: { format, quiet: true } })
      expect(stdout).not.toMatch(new RegExp(`→.*: ${CUT}$|Fix:.*: \`${CUT}\`$`, 'm'))
    }
  })

  test.each([WHOLE.toLowerCase(), `"${WHOLE.toUpperCase()}"`])(
    'is doubted before the changed case of the whole value in DNS (%s), whose case is unknown',
    async (seen) => {
      const options = { name: 'example.com', value: CUT }
      const { stdout } = await check(() => [seen], options, { global: { json: true } })
      const { findings } = JSON.parse(stdout)
      expect(findings).toMatchObject([
        { code: 'doubtful_value' },
        { code: 'case_changed', fix: expect.stringMatching(/exactly as the service shows it/) },
      ])
      expect(findings[1].fix).not.toContain('prefix')
    },
  )

  test('is doubted whatever is around the value in DNS, and however much is missing', async () => {
    const around = fc.constantFrom(
      ...['"', "'", '', ' ', '\t', '\u200b', '`'].map((one) => [one, one] as const),
      ['example.com. 300 IN TXT "', '"'] as const,
      ['value: ', ''] as const,
    )
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 8, max: WHOLE.length - 1 }),
        around,
        async (end, [before, after]) => {
          const options = { name: 'example.com', value: WHOLE.slice(0, end) }
          const dns = () => [`${before}${WHOLE}${after}`]
          const { stdout } = await check(dns, options, { global: { json: true } })
          expect(JSON.parse(stdout).findings[0]).toMatchObject({
            code: 'doubtful_value',
            evidence: { seen: WHOLE },
          })
        },
      ),
      { numRuns: 40 },
    )
  })

  test.each([
    ['another token', 'prefix=c29tZXRoaW5nIGVsc2U'],
    ['a piece of the value', WHOLE.slice(0, -8)],
    ['the value twice', WHOLE + WHOLE],
    ['two values', `${WHOLE}x ${WHOLE}y`],
    ['the value next to a longer one', `${WHOLE} ${WHOLE}y`],
    ['a pasted line', `example.com. 300 IN TXT "${WHOLE}"`],
    ['other text', `v=spf1 -all ${WHOLE}`],
    ['the domain behind the value', `${WHOLE}.example.com`],
    ['quotation marks', `"${WHOLE}"`],
    ['the value with its letters lowered', WHOLE.toLowerCase()],
    ['the value with its first letter capitalized', `P${WHOLE.slice(1)}`],
    ['nothing', undefined],
  ])('is not doubted if DNS has %s', async (_title, seen) => {
    const dns = () => (seen === undefined ? [] : [seen])
    const { stdout } = await check(dns, { name: 'example.com', value: WHOLE }, { global: { json: true } })
    expect(JSON.parse(stdout).findings[0].code).not.toBe('doubtful_value')
  })

  test('with a typo in its prefix is doubted, since the token in DNS is the same', async () => {
    const given = WHOLE.replace('=', 'x=')
    const { stdout } = await check(
      () => [WHOLE],
      { name: 'example.com', value: given },
      { global: { json: true } },
    )
    expect(JSON.parse(stdout).findings[0]).toMatchObject({ code: 'doubtful_value' })
  })

  test.each([
    ['one letter different', `${WHOLE.slice(0, -1)}q`, 'characters_changed'],
    ['lowered letters in DNS', WHOLE.toLowerCase(), 'case_changed'],
  ])('with %s may itself have the typo: the fix compares both first', async (_title, seen, code) => {
    const { stdout } = await check(
      () => [seen],
      { name: 'example.com', value: WHOLE },
      { global: { json: true } },
    )
    expect(JSON.parse(stdout).findings[0]).toMatchObject({
      code,
      fix: expect.stringMatching(
        /^Compare both with the value that the service shows for the claim\. If that is "/,
      ),
    })
  })

  test('longer than a record can be is refused', async () => {
    const { failure, asked } = await check(right, { name: 'example.com', value: 'x'.repeat(65_280) })
    expect(failure).toMatchObject({
      exit: 2,
      message: expect.stringContaining('longer than a TXT record can be'),
    })
    expect(asked).toEqual([])
  })

  test('as long as a record can be is shortened in the message and the fix, but not in the evidence', async () => {
    const value = `prefix=${'x'.repeat(60_000)}`
    const options = { name: 'example.com', value }
    const { failure, stdout } = await check(() => ['prefix=older'], options, { global: { json: true } })
    expect(failure?.message).toMatch(/expected "prefix=x+…", found "prefix=older"/)
    expect(failure?.message.length).toBeLessThan(3000)
    expect(failure?.hint?.length).toBeLessThan(3000)
    expect(JSON.parse(stdout).findings[0].evidence.expected).toBe(value)
  })

  test.each([' ', '""', '" "'])('as %j is empty', async (value) => {
    expect((await check(right, { name: 'example.com', value })).failure).toMatchObject({ exit: 2 })
  })
})
