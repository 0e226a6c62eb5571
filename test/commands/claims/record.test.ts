import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { PROVIDER_NAMES, replacesRecordSet } from '../../../src/claims/record-providers.ts'
import { run } from '../../../src/cli.ts'
import { command } from '../../../src/commands/claims/record.ts'
import { createIo } from '../../../src/terminal/io.ts'
import { AA, createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, fakeSettings, jsonResponse } from '../../fake-context.ts'
import { harmfulIn } from '../../hardening/in-process-client.ts'

const CLAIM = {
  object: 'domain_claim',
  name: 'App.Example.COM',
  domain_id: 'd1',
  status: 'pending',
  record: { type: 'TXT', name: 'App.Example.COM', value: 'prefix=token', ttl: 'Auto' },
}

async function record(line: string, terminal?: { columns: number }, more: object = {}) {
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(200, { ...CLAIM, ...more }),
    ...(terminal === undefined ? {} : { terminal }),
  })
  const code = await run(['claims', 'record', 'd1', ...line.split(' ')], context)
  return { code, stdout: context.stdout.text, stderr: context.stderr.text }
}

describe('--zone', () => {
  test.each(['example.com', 'EXAMPLE.com', 'Example.COM.'])(
    'as %s holds the name in any case',
    async (zone) => {
      const card = await record(`--zone ${zone}`, { columns: 80 })
      expect(card.code).toBe(0)
      expect(card.stdout).toContain('app   (in the zone example.com)')
      const snippet = await record(`--zone ${zone} --provider azure-dns`)
      expect(snippet.stdout).toContain('--zone-name=example.com')
      expect(snippet.stdout).toContain('--record-set-name=app ')
    },
  )

  test.each(['--format json', '--format value', '--format zone', '--provider terraform', '--format table'])(
    'is refused where it does not hold the name, with %s too',
    async (format) => {
      const { code, stdout, stderr } = await record(`--zone example.org --no-color ${format}`)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain('--zone: app.example.com is not in the zone')
    },
  )
})

const EVERY_FORMAT = [
  '--json',
  '--format value',
  '--format zone',
  '--format tsv',
  '--provider terraform --zone example.com --only-new',
  '--provider route53 --quiet',
]

test.each([
  [{ status: 'superseded' }, 'a newer claim replaced this one'],
  [{ status: 'expired' }, 'the claim expired before it was verified'],
  [{ status: 'canceled' }, 'the claim was canceled'],
  [{ status: 'failed' }, 'the claim failed'],
  [{ expires_at: '2026-11-20 11:00:00+00' }, "by this machine's clock the claim of App.Example.COM expired"],
])('the record of a claim that has ended (%j) is printed in no format: exit 9', async (over, why) => {
  for (const line of EVERY_FORMAT) {
    const { code, stdout, stderr } = await record(line, undefined, over)
    expect({ code, stdout }, line).toEqual({ code: 9, stdout: '' })
    expect(stderr).toContain(why)
  }
  expect(await record('--no-color', { columns: 80 }, over)).toMatchObject({ code: 9, stdout: '' })
})

test('the record of a completed claim comes with a warning, and that of a blocked one, which can go on, without', async () => {
  for (const line of EVERY_FORMAT.slice(0, 5)) {
    const completed = await record(line, undefined, { status: 'completed' })
    expect(completed.code).toBe(0)
    expect(completed.stderr).toContain('no longer needs its record')
    const blocked = await record(line, undefined, { status: 'blocked', blocked_reason: 'grace_period' })
    expect(blocked.code).toBe(0)
    expect(blocked.stdout).toContain('prefix=token')
    expect(blocked.stderr).not.toContain('blocked')
  }
})

test('the claim in JSON is as the service wrote it', async () => {
  expect(JSON.parse((await record('--json')).stdout)).toEqual(CLAIM.record)
})

describe('--provider', () => {
  test.each([
    ['aws', 'route53'],
    ['Amazon', 'route53'],
    ['google', 'google-cloud-dns'],
    ['gcp', 'google-cloud-dns'],
    ['cf', 'cloudflare'],
    ['azure', 'azure-dns'],
    ['bind', 'nsupdate'],
    ['opentofu', 'terraform'],
  ])('%s is not a name of its own, but meant is %s', async (typed, name) => {
    const { code, stderr } = await record(`--provider ${typed}`)
    expect(code).toBe(2)
    expect(stderr).toContain(`hint: did you mean --provider ${name}?\n`)
  })

  test('do, whose DNS host has no snippet, means none of them', async () => {
    expect((await record('--provider do')).stderr).not.toContain('did you mean')
  })

  const SPF = 'v=spf1 include:_spf.example.net -all'

  /** Makes a snippet for `example.com`, which has these TXT values in DNS; `silent` if no server answers. */
  async function snippet(line: string, txt: readonly string[] | 'silent') {
    const clock = createFakeClock()
    const respond = txt === 'silent' ? () => 'silent' as const : smallWorld(() => txt)
    const dns = createFakeDns(respond, clock)
    const context = createFakeContext({
      clock,
      dns,
      environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
      respond: () =>
        jsonResponse(200, {
          ...CLAIM,
          name: 'example.com',
          record: { ...CLAIM.record, name: 'example.com', ttl: '600' },
        }),
    })
    const words = ['claims', 'record', 'd1', '--resolver', '192.0.2.53', ...line.split(' ')]
    const code = await run(words, context)
    return { code, stdout: context.stdout.text, stderr: context.stderr.text, asked: dns.asked }
  }

  const route53Set = (stdout: string) => JSON.parse(stdout).Changes[0].ResourceRecordSet

  test('keeps the values and the TTL that the name has in DNS', async () => {
    const { code, stdout, stderr } = await snippet('--provider route53', [SPF, 'other=1'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(route53Set(stdout)).toEqual({
      Name: 'example.com.',
      Type: 'TXT',
      TTL: 300,
      ResourceRecords: [{ Value: `"${SPF}"` }, { Value: '"other=1"' }, { Value: '"prefix=token"' }],
    })
  })

  test('has a value that is published already once', async () => {
    const { stdout } = await snippet('--provider route53', ['prefix=token', SPF])
    expect(route53Set(stdout).ResourceRecords).toEqual([{ Value: '"prefix=token"' }, { Value: `"${SPF}"` }])
  })

  test('has the TTL that the service names if the name has no TXT values', async () => {
    const { stdout } = await snippet('--provider route53', [])
    expect(route53Set(stdout)).toMatchObject({ TTL: 600, ResourceRecords: [{ Value: '"prefix=token"' }] })
  })

  test.each(PROVIDER_NAMES.filter(replacesRecordSet))(
    'for %s ends with exit 8 if the values cannot be seen, and --only-new prints the new value with a warning',
    async (provider) => {
      const { code, stdout, stderr } = await snippet(`--provider ${provider} --zone example.com`, 'silent')
      expect({ code, stdout }).toEqual({ code: 8, stdout: '' })
      expect(stderr).toMatch(
        /^error: couldn't see which TXT values example\.com has: .*\nhint: .*mailclaim claims check --resolver 192\.0\.2\.53 example\.com; .*--only-new\n$/,
      )

      const only = await snippet(`--provider ${provider} --zone example.com --only-new`, [SPF])
      expect(only.code).toBe(0)
      expect(only.stdout).toContain('prefix=token')
      expect(only.stdout).not.toContain(SPF)
      expect(only.stderr).toMatch(/^warning: applying this may delete the other TXT values at example\.com/)
      expect(only.asked).toEqual([])
    },
  )

  test('unseen values have an error code of their own, and what DNS says cannot act on a terminal', async () => {
    const clock = createFakeClock()
    const answer = (name: string): packet.Answer => ({
      type: 'CNAME',
      name,
      ttl: 60,
      data: '\u001b]0;x\u0007.example.com',
    })
    const world = smallWorld(() => [])
    const dns = createFakeDns(
      (asked) =>
        asked.type === 'TXT' && asked.server === '192.0.2.2'
          ? { flags: AA, answers: [answer(asked.name)] }
          : world(asked),
      clock,
    )
    const context = createFakeContext({
      clock,
      dns,
      environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
      respond: () =>
        jsonResponse(200, { ...CLAIM, name: 'example.com', record: { type: 'TXT', value: 'prefix=token' } }),
    })
    const settings = await fakeSettings(context, { resolver: ['192.0.2.53'] })
    const options = { provider: 'route53' as const }
    await expect(
      command.run({ arguments: ['d1'], options }, createIo(context, settings)),
    ).rejects.toMatchObject({
      code: 'values_unknown',
      exit: 8,
    })
    expect(
      await run(['claims', 'record', 'd1', '--resolver', '192.0.2.53', '--provider', 'route53'], context),
    ).toBe(8)
    expect(context.stderr.text).toContain('example.com is an alias (CNAME) for ')
    expect(context.stderr.text).toContain(
      'no TXT record can be added beside an alias; to see what to do: mailclaim claims check ',
    )
    expect(harmfulIn(context.stderr.text)).toEqual([])
  })

  test('is a usage error if --zone is not the zone whose values DNS shows: to repeat it would not help', async () => {
    const { code, stderr } = await snippet('--provider route53 --zone com', [SPF])
    expect(code).toBe(2)
    expect(stderr).toContain('--zone: "com" is not the zone of example.com: in DNS, it is in example.com')
    expect(stderr).toContain('hint: leave --zone out')
  })

  test('--only-new with --quiet warns of nothing', async () => {
    const { code, stderr } = await snippet('--provider route53 --zone example.com --only-new --quiet', [])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  test.each(PROVIDER_NAMES.filter((name) => !replacesRecordSet(name)))(
    'for %s, which adds a record, asks DNS for no value',
    async (provider) => {
      const { code, stderr, asked } = await snippet(`--provider ${provider} --zone example.com`, 'silent')
      expect({ code, stderr, asked }).toEqual({ code: 0, stderr: '', asked: [] })
    },
  )

  test('--only-new without --provider is a usage error', async () => {
    const { code, stderr } = await snippet('--only-new', [])
    expect(code).toBe(2)
    expect(stderr).toContain('--only-new needs --provider')
  })
})
