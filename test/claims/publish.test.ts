import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { type PublishAction, publishRecord } from '../../src/claims/publish.ts'
import type { ProgramEnd, ProgramRequest } from '../../src/context.ts'
import { type CliError, Exit } from '../../src/errors.ts'
import { AA, type Asked, type FakeReply } from '../dns/fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from '../dns/fake-internet.ts'
import { timedEffects } from '../dns/timed-check.ts'

const FIRST = '192.0.2.11'
const SECOND = '192.0.2.12'
const VALUE = 'prefix=token'

interface Situation {
  readonly action?: PublishAction
  readonly name?: string
  readonly value?: string
  readonly ttl?: number
  /** What the name servers have. */
  readonly records?: readonly packet.Answer[]
  /** What a server answers instead. */
  readonly odd?: (asked: Asked) => FakeReply | undefined
  readonly onlyNew?: boolean
  readonly end?: ProgramEnd
  /** What the name servers have after the program; by default, what they had. */
  readonly after?: readonly packet.Answer[]
}

/** Publishes a record of shop.com, and returns the result or the error, and what the program got. */
async function publish(situation: Situation = {}) {
  const { action = 'publish', name = 'shop.com', value = VALUE, ttl, records = [], odd } = situation
  const served = [...records]
  const zones: FakeZone[] = [
    { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1'] } },
    { apex: 'shop.com', servers: { 'ns1.shop.com': [FIRST], 'ns2.shop.com': [SECOND] }, records: served },
  ]
  const { effects } = timedEffects(fakeInternet(zones, odd))
  const runs: ProgramRequest[] = []
  const result = await publishRecord(
    action,
    { name, value, ttl },
    {
      command: ['/opt/dns tools/hook', '--token=secret'],
      timeoutMs: 90_000,
      onlyNew: situation.onlyNew === true,
      onLine: async () => {},
    },
    {
      ...effects,
      interrupts: { signal: effects.signal, shield: (work) => work() },
      programs: {
        check: async () => undefined,
        run: async (request) => {
          runs.push(request)
          if (situation.after !== undefined) served.splice(0, served.length, ...situation.after)
          return situation.end ?? { kind: 'exited', code: 0 }
        },
      },
    },
    { resolvers: [{ address: RESOLVER, port: 53 }], authoritativePort: 53 },
  ).catch((error: unknown) => error)
  return { result, runs, variables: runs[0]?.variables }
}

const answering =
  (server: string, ...records: packet.Answer[]) =>
  (asked: Asked): FakeReply | undefined =>
    asked.server === server && asked.type === 'TXT' ? { flags: AA, answers: records } : undefined

const SPF = txt('shop.com', 'v=spf1 -all')
const OURS = txt('shop.com', VALUE)

describe('a record', () => {
  test('is published with the values and the TTL of the set that it joins', async () => {
    const { result, variables } = await publish({ records: [SPF], ttl: 60 })
    expect(result).toEqual({ ran: true, zone: 'shop.com', message: 'hook ended without an error' })
    expect(variables).toEqual({
      MAILCLAIM_RECORD_ACTION: 'publish',
      MAILCLAIM_RECORD_NAME: 'shop.com',
      MAILCLAIM_RECORD_HOST: '@',
      MAILCLAIM_RECORD_ZONE: 'shop.com',
      MAILCLAIM_RECORD_TYPE: 'TXT',
      MAILCLAIM_RECORD_VALUE: VALUE,
      MAILCLAIM_RECORD_RDATA: `"${VALUE}"`,
      MAILCLAIM_RECORD_TTL: '300',
      MAILCLAIM_RECORD_OLD_VALUES: 'v=spf1 -all',
      MAILCLAIM_RECORD_SET: `"v=spf1 -all"\n"${VALUE}"`,
    })
  })

  test('that is alone has its own TTL, and no old values', async () => {
    const { variables } = await publish({ ttl: 60, name: 'app.shop.com' })
    expect(variables).toMatchObject({
      MAILCLAIM_RECORD_HOST: 'app',
      MAILCLAIM_RECORD_TTL: '60',
      MAILCLAIM_RECORD_OLD_VALUES: '',
      MAILCLAIM_RECORD_SET: `"${VALUE}"`,
    })
  })

  test('has an ASCII name, and a long value has the strings of a zone file', async () => {
    const { variables } = await publish({ name: 'bücher.shop.com', value: `${'a'.repeat(255)}"ü` })
    expect(variables).toMatchObject({
      MAILCLAIM_RECORD_NAME: 'xn--bcher-kva.shop.com',
      MAILCLAIM_RECORD_HOST: 'xn--bcher-kva',
      MAILCLAIM_RECORD_RDATA: `"${'a'.repeat(255)}" "\\"\\195\\188"`,
    })
  })

  test.each([
    ['all name servers have it', { records: [SPF, OURS] }],
    ['one of them has it already', { records: [SPF], odd: answering(SECOND, SPF, OURS) }],
  ])('is not published again if %s', async (_when, situation) => {
    const { result, runs } = await publish(situation)
    expect(runs).toEqual([])
    expect(result).toMatchObject({
      ran: false,
      zone: 'shop.com',
      message: expect.stringContaining('already'),
    })
  })

  test('is removed from a set, whose other values stay', async () => {
    const { result, variables } = await publish({
      action: 'unpublish',
      records: [SPF, OURS],
      after: [SPF],
    })
    expect(result).toMatchObject({ ran: true, inDns: false, message: 'hook removed the record' })
    expect(variables).toMatchObject({
      MAILCLAIM_RECORD_ACTION: 'unpublish',
      MAILCLAIM_RECORD_OLD_VALUES: `v=spf1 -all\n${VALUE}`,
      MAILCLAIM_RECORD_SET: '"v=spf1 -all"',
    })
  })

  test('that is still there after the program is not said to be removed', async () => {
    const { result } = await publish({ action: 'unpublish', records: [SPF, OURS] })
    expect(result).toMatchObject({
      ran: true,
      inDns: true,
      message: 'hook ended without an error, but DNS still has the TXT value',
    })
  })

  test('is not said to be removed if nobody can see that', async () => {
    const odd = answering(SECOND, txt('shop.com', 'another value'))
    const { result } = await publish({ action: 'unpublish', records: [SPF], odd, onlyNew: true })
    expect(result).toMatchObject({ ran: true, message: 'hook ended without an error' })
    expect(result).not.toHaveProperty('inDns')
  })

  test('that is gone is not removed', async () => {
    const { result, runs } = await publish({ action: 'unpublish', records: [SPF] })
    expect(runs).toEqual([])
    expect(result).toMatchObject({ ran: false, message: expect.stringContaining('no longer') })
  })

  test('at some of the name servers is not removed: the others could have more values', async () => {
    const { result } = await publish({ action: 'unpublish', records: [SPF], odd: answering(SECOND, OURS) })
    expect(result).toMatchObject({ code: 'values_unknown' })
  })
})

const binary = { ...SPF, data: Buffer.from([0xff, 0xfe]) } as packet.Answer
const UNKNOWN = [
  ['the name servers disagree', { records: [SPF], odd: answering(SECOND) }, /disagree/],
  ['a value has a line break', { records: [txt('shop.com', 'two\nlines')] }, /control characters/],
  ['a value has NUL', { records: [txt('shop.com', 'a\0b')] }, /control characters/],
  ['a value is not text', { records: [binary] }, /not UTF-8/],
] as const

describe.each(UNKNOWN)('if %s', (_why, situation, reason) => {
  test('no program is run, because it could delete values', async () => {
    const { result, runs } = await publish(situation)
    expect(runs).toEqual([])
    expect(result).toMatchObject({
      code: 'values_unknown',
      exit: Exit.notYet,
      message: expect.stringMatching(reason),
      hint: expect.stringContaining('--only-new'),
    })
  })

  test('a program that only adds is run without them', async () => {
    const { result, variables } = await publish({ ...situation, onlyNew: true })
    expect(result).toMatchObject({ ran: true })
    expect(variables).toMatchObject({ MAILCLAIM_RECORD_ZONE: 'shop.com', MAILCLAIM_RECORD_VALUE: VALUE })
    expect(variables).not.toHaveProperty('MAILCLAIM_RECORD_OLD_VALUES')
    expect(variables).not.toHaveProperty('MAILCLAIM_RECORD_SET')
  })
})

test('a record without a zone is never published', async () => {
  const { result, runs } = await publish({ name: 'unknown.com', onlyNew: true })
  expect({ result, runs }).toMatchObject({
    result: { code: 'zone_unknown', exit: Exit.unavailable },
    runs: [],
  })
})

test.each([true, false])(
  'where no resolver leads to the zone, nothing says that it does not exist (--only-new: %s)',
  async (onlyNew) => {
    const { result, runs } = await publish({ odd: () => ({ flags: 2 }), onlyNew })
    expect(runs).toEqual([])
    const { message, hint = '' } = result as CliError
    expect(message).toContain('192.0.2.53 answers SERVFAIL')
    expect(hint).toContain('to see why, and what to do: mailclaim claims check shop.com')
    expect(hint).not.toMatch(/registrar|--only-new/)
  },
)

test.each(['a\nupdate delete shop.com', 'a\0b', 'a\u0085b'])(
  'the value %j, which could be a command, goes to no program',
  async (value) => {
    const { result, runs } = await publish({ value })
    expect({ result, runs }).toMatchObject({ result: { code: 'value_unusable' }, runs: [] })
  },
)

const startError = (code: string) => Object.assign(new Error(`spawn ${code}`), { code })

test.each([
  [{ kind: 'exited', code: 4 }, 'publish_failed', 7, 'hook ended with exit code 4'],
  [{ kind: 'killed', signal: 'SIGSEGV' }, 'publish_failed', 7, 'hook was ended by SIGSEGV'],
  [{ kind: 'timed_out' }, 'publish_timeout', 7, 'hook was stopped after 90 seconds'],
  [
    { kind: 'not_started', error: startError('EACCES') },
    'publish_not_started',
    2,
    "couldn't run /opt/dns tools/hook: it is not executable",
  ],
  [
    { kind: 'not_started', error: startError('ENOENT'), firstLine: '#!/bin/sh\r' },
    'publish_not_started',
    2,
    "couldn't run /opt/dns tools/hook: it has Windows line ends",
  ],
  [
    { kind: 'not_started', error: startError('ENOENT'), firstLine: '#!/bin/odd' },
    'publish_not_started',
    2,
    "couldn't run /opt/dns tools/hook: the interpreter in its first line doesn't exist: #!/bin/odd",
  ],
  [
    { kind: 'not_started', error: startError('EMFILE') },
    'publish_not_started',
    2,
    "couldn't run /opt/dns tools/hook: spawn EMFILE",
  ],
] as const)('%j is %s, without the arguments of the program', async (end, code, exit, message) => {
  const { result } = await publish({ end })
  expect(result).toMatchObject({
    code,
    exit,
    message: expect.stringContaining(message),
    hint: expect.stringContaining('it continues the same claim'),
  })
  expect(`${(result as Error).message}`).not.toContain('secret')
})
