import { symlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, jsonResponse } from '../../fake-context.ts'

const ID = '7b1f0f1e-77aa-4b1c-9d2b-5c0a1de5c001'

test.each([
  ['a claim that is remembered', true, 'example.com'],
  ['where nothing can be kept, a claim', false, ID],
])('%s goes on by what the next command can find it by', async (_what, writable, known) => {
  const record = { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' }
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(201, { name: 'example.com', domain_id: ID, status: 'pending', record }),
  })
  if (!writable) symlinkSync(`${context.directories.state}-not-mounted`, context.directories.state)
  expect(await run(['claims', 'create', 'example.com'], context)).toBe(0)
  expect(context.stderr.text).toContain(`then run: mailclaim claims check ${known}\n`)
  const checked = await run(['claims', 'record', known, '--format', 'value'], context)
  expect({ checked, stdout: context.stdout.text.endsWith('\nprefix=token\n') }).toEqual({
    checked: 0,
    stdout: true,
  })
})

test.each([
  [
    'blocked',
    'a block can lift by itself; to wait for that: mailclaim claims watch example.com --through-blocked',
  ],
  ['verified', 'the transfer is running; follow it with: mailclaim claims watch example.com'],
])('a claim that is %s already needs no record', async (status, hint) => {
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(200, { name: 'example.com', domain_id: ID, status }),
  })
  expect(await run(['claims', 'create', 'example.com'], context)).toBe(0)
  expect(context.stderr.text).toContain(`hint: ${hint}\n`)
  expect(context.stderr.text).not.toContain('add the TXT record')
})

test('claims create says which options have no effect on the claim that was open already', async () => {
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(200, { name: 'example.com', domain_id: ID, status: 'verified' }),
  })
  expect(await run(['claims', 'create', 'example.com', '--custom-return-path', 'foo'], context)).toBe(0)
  expect(context.stderr.text).toContain(
    'warning: --custom-return-path has no effect on a claim that already exists',
  )
})

test.each([
  ['claims create', ['claims', 'create', 'example.com']],
  ['claim', ['claim', 'example.com']],
])(
  '%s of a domain that an earlier run may have claimed says how to find that claim',
  async (_what, words) => {
    const context = createFakeContext({
      environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
      respond: () => jsonResponse(409, { name: 'domain_already_owned', message: 'It belongs to your team.' }),
    })
    expect(await run(words, context)).toBe(6)
    expect(context.stderr.text).toContain('error: the service refused the request (409): It belongs to your')
    expect(context.stderr.text).toContain(
      'hint: if an earlier run on another machine claimed it, go on with that claim, by the domain_id that it printed: mailclaim claims get DOMAIN_ID\n',
    )
  },
)

test('claims create of a domain whose claim is known to be completed names that claim', async () => {
  const answers = [
    jsonResponse(201, { name: 'example.com', domain_id: ID, status: 'completed' }),
    jsonResponse(409, { name: 'domain_already_owned' }),
  ]
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => answers.shift() ?? jsonResponse(500, {}),
  })
  await run(['claims', 'create', 'example.com'], context)
  expect(await run(['claims', 'create', 'example.com', '--quiet'], context)).toBe(6)
  expect(context.stderr.text).toContain(
    `hint: its claim is completed, so nothing is left to do: mailclaim claims get ${ID}\n`,
  )
})

describe('on a terminal', () => {
  const record = { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' }

  /** What `claims create example.com` prints, and how long it takes. */
  async function create(respond: Parameters<typeof createFakeDns>[0]) {
    const clock = createFakeClock()
    const context = createFakeContext({
      clock,
      terminal: { columns: 200 },
      dns: createFakeDns(respond, clock),
      environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
      respond: () => jsonResponse(201, { name: 'example.com', domain_id: ID, status: 'pending', record }),
    })
    const words = ['claims', 'create', 'example.com', '--no-color', '--resolver', '192.0.2.53']
    expect(await run(words, context)).toBe(0)
    return { stdout: context.stdout.text, ms: clock.monotonic() }
  }

  test('the host is shown, relative to the zone that DNS has, and the full name', async () => {
    const { stdout } = await create(smallWorld(() => []))
    expect(stdout).toMatch(/^Host +@ {3}\(in the zone example\.com\)$/m)
    expect(stdout).toMatch(/^Record +TXT {2}example\.com {2}prefix=token$/m)
  })

  test('if nobody answers, the claim is shown after a few seconds, with what to type as the host', async () => {
    const { stdout, ms } = await create(() => 'silent')
    expect(stdout).toMatch(/^Host +the name without your zone, @ for the zone itself/m)
    expect(ms).toBeLessThanOrEqual(4000)
  })
})

test.each(['tsv', 'csv'])('the record of a claim is JSON in %s', async (format) => {
  const record = { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' }
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(200, { name: 'example.com', domain_id: ID, status: 'pending', record }),
  })
  expect(await run(['claims', 'get', ID, '--fields', 'record', '--format', format], context)).toBe(0)
  const [, cell = ''] = context.stdout.text.split(/\r?\n/)
  const text = format === 'csv' ? cell.slice(1, -1).replaceAll('""', '"') : cell
  expect(JSON.parse(text)).toEqual(record)
})

test.each([
  ['an open claim', 'pending', 'eu-west-1', 201, true],
  ['a claim that is over', 'expired', 'eu-west-1', 201, false],
  ['the claim that the service returns', 'pending', 'us-east-1', 200, false],
])('a new claim next to %s', async (_what, status, region, code, warns) => {
  const answers = [
    jsonResponse(201, { name: 'example.com', domain_id: 'd1', status, region }),
    jsonResponse(code, { name: 'example.com', domain_id: 'd2', status: 'pending', region: 'us-east-1' }),
  ]
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => answers.shift() ?? jsonResponse(500, {}),
  })
  await run(['claims', 'create', 'example.com'], context)
  expect(context.stderr.text).not.toContain('already had')
  await run(['claims', 'create', 'example.com'], context)
  const warning =
    'warning: example.com already had an open claim (region eu-west-1): the service may end it in favor of this new one, which needs its own TXT record\n'
  expect(context.stderr.text.includes(warning)).toBe(warns)
})

test('a record that would prove something else is not shown to a person, and a warning says why', async () => {
  const record = { type: 'TXT', name: '_acme-challenge.example.com', value: 'prefix=token', ttl: 'Auto' }
  const context = createFakeContext({
    terminal: { columns: 200 },
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(201, { name: 'example.com', domain_id: ID, status: 'pending', record }),
  })
  expect(await run(['claims', 'create', 'example.com', '--no-color'], context)).toBe(0)
  expect(context.stdout.text).not.toContain('prefix=token')
  expect(context.stderr.text).toContain("warning: the claim's record isn't shown: unexpected response")
  for (const provider of ['terraform', 'route53'])
    expect(await run(['claims', 'record', 'example.com', '--provider', provider], context)).toBe(7)
  expect(context.stdout.text).not.toContain('prefix=token')
})
