import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HttpRequest, HttpResponse } from '../../../src/context.ts'
import { WORST_EXIT_FIRST } from '../../../src/errors.ts'
import { AA, type Asked, createFakeDns, type FakeReply, RCODE } from '../../dns/fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from '../../dns/fake-internet.ts'
import { createVirtualClock } from '../../dns/virtual-clock.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../../fake-context.ts'
import { run } from '../../run.ts'

const NOON = Date.UTC(2026, 10, 22, 12)

/** Fields of the service's claim in each state; `gone` is a claim that the service no longer has. */
const CLAIMS = {
  pending: { status: 'pending' },
  verified: { status: 'verified' },
  completed: { status: 'completed' },
  expired: { status: 'expired' },
  superseded: { status: 'superseded' },
  canceled: { status: 'canceled' },
  failed: { status: 'failed', failure_reason: 'dns_conflict' },
  blocked: { status: 'blocked', blocked_reason: 'grace_period' },
  'blocked for another reason': { status: 'blocked', blocked_reason: 'pending_scheduled_emails' },
  'of an unknown status': { status: 'reviewing' },
  gone: undefined,
} as const
type ClaimState = keyof typeof CLAIMS

/** Error responses of the service, each to one kind of request about a domain. */
const TROUBLES = {
  none: undefined,
  conflict: { on: 'verify', status: 409, name: 'conflict', message: 'Verification is running' },
  invalid: { on: 'verify', status: 422, name: 'validation_error', message: 'The claim is on hold' },
  forbidden: { on: 'verify', status: 403, name: 'forbidden', message: 'Not on this plan' },
  'not claimable': { on: 'create', status: 422, name: 'validation_error', message: 'Nobody has verified it' },
  'already theirs': { on: 'create', status: 409, name: 'conflict', message: 'Your team has it' },
  'creating fails': { on: 'create', status: 500, name: 'application_error', message: 'Something failed' },
  'verifying fails': { on: 'verify', status: 503, name: 'unavailable', message: 'Come back later' },
  'reading fails': { on: 'read', status: 500, name: 'application_error', message: 'Something failed' },
} as const

const RECORDS = ['right', 'missing', 'stale', 'quoted', 'cut off', 'refused', 'servfail', 'no zone'] as const

/** Generates the usual value more often than any other: otherwise few domains would be completed. */
const mostly = <T>(usual: T, all: readonly T[]) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 3, arbitrary: fc.constantFrom(...all) })
const STATES = Object.keys(CLAIMS) as ClaimState[]

const domain = fc.record({
  /** Whether a claim of the domain exists before the run. */
  isKnown: fc.boolean(),
  claim: mostly<ClaimState>('pending', STATES),
  /** State of a pending claim after a request to verify it. */
  next: fc.constantFrom(...STATES),
  record: mostly<(typeof RECORDS)[number]>('right', RECORDS),
  trouble: mostly<keyof typeof TROUBLES>('none', Object.keys(TROUBLES) as (keyof typeof TROUBLES)[]),
  /** Exit code of the --publish command. */
  program: fc.constantFrom(0, 1),
})
type Domain = typeof domain extends fc.Arbitrary<infer T> ? T : never

const nameOf = (index: number) => `d${index}.com`
const idOf = (index: number) => `id-${index}`
const indexIn = (text: string) => Number(/\d+/.exec(text)?.[0])

/** Creates a machine with DNS and a service in the states of these domains. Its ledger has the claims at the indexes `seen`. */
async function createWorld(domains: readonly Domain[], seen = [...domains.keys()]) {
  const clock = { ...createFakeClock(), ...createVirtualClock() }
  const virtual = clock.now
  clock.now = () => NOON + virtual()
  let isLater = false
  const created = new Set<number>()
  const verified = new Set<number>()
  const creations: string[] = []
  const claimOf = (index: number) => {
    const known = domains[index]
    const isNew = created.has(index)
    const now = verified.has(index) ? known?.next : isNew ? 'pending' : known?.claim
    const state = isLater ? CLAIMS[now ?? 'gone'] : CLAIMS.pending
    if (state === undefined || (!isNew && !known?.isKnown)) return undefined
    return {
      object: 'domain_claim',
      name: nameOf(index),
      domain_id: isNew ? `new-${index}` : idOf(index),
      region: 'us-east-1',
      record: { type: 'TXT', name: nameOf(index), value: `prefix=token-of-${index}`, ttl: 'Auto' },
      created_at: new Date(isNew ? clock.now() : NOON).toISOString(),
      ...state,
    }
  }
  const respond = async ({ method, url, body }: HttpRequest): Promise<HttpResponse> => {
    const isCreate = url.pathname === '/domains/claim'
    const isVerify = url.pathname.endsWith('/verify')
    const index = indexIn(isCreate ? JSON.parse(`${body}`).name : url.pathname)
    const trouble = TROUBLES[domains[index]?.trouble ?? 'none']
    const action = isCreate ? 'create' : isVerify ? 'verify' : 'read'
    if (isCreate) creations.push(nameOf(index))
    if (isLater && trouble?.on === action) return jsonResponse(trouble.status, trouble)
    if (isCreate) {
      created.add(index)
      verified.delete(index)
    }
    const claim = claimOf(index)
    if (isVerify && claim?.status === 'pending') verified.add(index)
    if (claim === undefined || (method === 'GET' && !url.pathname.includes(claim.domain_id)))
      return jsonResponse(404, { name: 'not_found', message: 'Not found' })
    return jsonResponse(isCreate ? 201 : 200, claim)
  }
  const zones = domains.flatMap(({ record }, index): FakeZone[] => {
    const apex = nameOf(index)
    const value = `prefix=token-of-${index}`
    const values = {
      right: value,
      stale: 'prefix=token-of-another',
      quoted: `"${value}"`,
      'cut off': value.slice(0, -1),
    }
    const here = Object.hasOwn(values, record) ? [txt(apex, values[record as keyof typeof values])] : []
    const servers = { [`ns1.${apex}`]: [`192.0.2.${100 + index}`] }
    return record === 'no zone' ? [] : [{ apex, servers, records: here }]
  })
  const odd = ({ name, server }: Asked): FakeReply | undefined => {
    const record = domains[indexIn(name)]?.record
    if (record !== 'refused' && record !== 'servfail') return undefined
    if (server === RESOLVER) return { flags: RCODE.SERVFAIL }
    return server === '192.0.2.1'
      ? undefined
      : { flags: AA | RCODE[record === 'refused' ? 'REFUSED' : 'SERVFAIL'] }
  }
  const com = { apex: 'com', servers: { 'a.registry.com': ['192.0.2.1'] } }
  const context = createFakeContext({
    clock,
    dns: createFakeDns(fakeInternet([com, ...zones], odd), clock),
    environment: { settings: { base_url: 'https://api.example.com', resolver: RESOLVER }, apiKey: 'key' },
    respond,
    runInShell: async ({ command, variables }) => {
      if (command !== './add.sh') return { kind: 'exited', code: 0 }
      const index = indexIn(variables['MAILCLAIM_RECORD_NAME'] ?? '')
      return { kind: 'exited', code: domains[index]?.program ?? 0 }
    },
  })
  const world = {
    /** Domains of the requests to create a claim, in order. */
    creations: creations as readonly string[],
    async run(words: readonly string[]) {
      const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
      const code = await run(words, { ...context, stdout, stderr })
      return { code, stdout: stdout.text, stderr: stderr.text }
    },
  }
  for (const index of seen) if (domains[index]?.isKnown) await world.run(['claims', 'get', idOf(index)])
  await clock.sleep(120_000)
  isLater = true
  return world
}

/** Exit code and error code of the work on one domain. */
interface End {
  readonly exit: number
  readonly code?: string
}

const lastLine = (text: string) => text.trim().split('\n').at(-1) ?? ''

async function runTogether(words: readonly string[], domains: readonly Domain[]) {
  const world = await createWorld(domains)
  const names = domains.map((_, index) => nameOf(index))
  const { code, stdout, stderr } = await world.run([...words, ...names, '--format', 'jsonl'])
  const ends = new Map<string, End>()
  for (const line of stdout.trim().split('\n').filter(Boolean)) {
    const { error, name, claim } = JSON.parse(line)
    ends.set(name ?? claim.name, error === undefined ? { exit: 0 } : { exit: error.exit, code: error.code })
  }
  return { code, ends, stderr }
}

async function runEachAlone(words: readonly string[], domains: readonly Domain[]) {
  const ends = new Map<string, End>()
  for (const index of domains.keys()) {
    const world = await createWorld(domains, [index])
    const { code, stderr } = await world.run([...words, nameOf(index), '--format', 'json'])
    const error = code === 0 ? undefined : JSON.parse(lastLine(stderr)).error
    ends.set(nameOf(index), code === 0 ? { exit: 0 } : { exit: code, code: error.code })
  }
  return ends
}

const COMMANDS = [
  ['claims', 'check'],
  ['claims', 'record'],
  ['claims', 'verify'],
  ['claims', 'verify', '--no-check'],
  ['claims', 'verify', '--wait', '--timeout', '60'],
  ['claims', 'watch', '--timeout', '60'],
  ['claim', '--timeout', '60'],
  ['claim', '--timeout', '60', '--publish', './add.sh'],
] as const

const RUNS = { numRuns: Number(process.env['RUNS'] ?? 10) }
const list = fc.array(domain, { minLength: 2, maxLength: 3 })

test.each(COMMANDS.map((words) => [words.join(' '), words] as const))(
  'mailclaim %s ends for each of several domains with the exit code and error code of a run for that domain alone, counts all in the summary, and replaces no superseded claim',
  async (_line, words) => {
    await fc.assert(
      fc.asyncProperty(list, async (domains) => {
        const names = domains.map((_, index) => nameOf(index))
        const { code, ends, stderr } = await runTogether(words, domains)
        const expected = await runEachAlone(words, domains)
        expect(ends, stderr).toEqual(expected)
        const exits = [...ends.values()].map(({ exit }) => exit)
        expect(code).toBe(WORST_EXIT_FIRST.find((exit) => exits.includes(exit)) ?? 0)

        const world = await createWorld(domains)
        const line = [...words, ...names, '--format', 'tsv']
        const first = await world.run(line)
        const [, counts = ''] = /^domains: \d \((.*)\)$/m.exec(first.stderr) ?? []
        const total = [...counts.matchAll(/ (\d+)(?:,|$)/g)].reduce(
          (sum, [, count]) => sum + Number(count),
          0,
        )
        expect(total, first.stderr).toBe(domains.length)
        for (const name of names) if (expected.get(name)?.exit !== 0) expect(first.stderr).toContain(name)
        const second = await world.run(line)
        for (const [index, { isKnown, claim }] of domains.entries())
          if (isKnown && claim === 'superseded') expect(world.creations).not.toContain(nameOf(index))
        // If all claims are completed, a repeated run succeeds too.
        if (first.code === 0 && line.includes('--timeout')) expect(second.code, second.stderr).toBe(0)
      }),
      RUNS,
    )
  },
)
