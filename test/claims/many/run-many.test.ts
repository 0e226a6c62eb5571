import { describe, expect, test, vi } from 'vitest'
import { goneError } from '../../../src/claims/lifecycle.ts'
import { type ManyOptions, type ManyWork, runMany } from '../../../src/claims/many/run-many.ts'
import type { SubjectReading } from '../../../src/claims/many/subjects.ts'
import { STARTING } from '../../../src/claims/many/tally.ts'
import { TransportError } from '../../../src/context.ts'
import { CliError, Exit } from '../../../src/errors.ts'
import { transportFailure } from '../../../src/service/problems.ts'
import type { Settings } from '../../../src/settings/settings.ts'
import { createFakeContext, fakeSettings, jsonResponse } from '../../fake-context.ts'

const WORK: Omit<ManyWork, 'perform'> = {
  command: 'claims create',
  columns: [],
  rowsForPeople: false,
  waits: false,
  resumes: true,
  restarts: true,
  notDone: "aren't completed",
}

async function* subjectsOf(count: number): AsyncGenerator<SubjectReading, void, void> {
  for (let number = 0; number < count; number++)
    yield { kind: 'subject', subject: { domain: String(number), options: {} } }
}

/** What the last run printed on stdout. */
let lastOutput: { readonly text: string } = { text: '' }

/** Runs over domains, of which each is done or fails, and returns the error at the end. */
async function run(
  ends: readonly (CliError | undefined)[],
  options: Partial<ManyOptions> = {},
  { format = 'jsonl', resumes = true }: { format?: Settings['format']; resumes?: boolean } = {},
) {
  const context = createFakeContext({})
  const settings = { ...(await fakeSettings(context)), format }
  lastOutput = context.stdout
  const work: ManyWork = {
    ...WORK,
    resumes,
    async perform({ domain }) {
      const error = ends[Number(domain)]
      if (error !== undefined) throw error
      return { label: 'completed', item: { name: domain } }
    },
  }
  const all = { jobs: 1, failFast: false, total: ends.length, ...options }
  return await runMany(work, subjectsOf(ends.length), all, context, settings).then(
    () => undefined,
    (error: unknown) => error as CliError,
  )
}

const done = (count: number): undefined[] => Array.from({ length: count }, () => undefined)
const AGAIN = 'run the same command again for the rest: what is done is not done again'

test('a run that lost its credential says where it stood, and how to go on', async () => {
  const revoked = new CliError('not_signed_in', Exit.notSignedIn, 'the key was revoked', { hint: 'sign in' })
  const error = await run([...done(150), revoked, ...done(49)])
  expect(error?.message).toBe('the key was revoked (150 done, 50 not finished)')
  expect(error?.hint).toBe(`sign in\nthen ${AGAIN}`)
  const atOnce = await run([revoked, ...done(49)])
  expect(atOnce?.message).toBe('the key was revoked (0 done, 50 not finished)')
  expect(atOnce?.hint).toBe(`sign in\nthen ${AGAIN}`)
})

test('a run whose time was up in a renewal with no known outcome says that, and what to do about it first', async () => {
  const renewal = new CliError('refresh_unknown', Exit.unavailable, 'no usable answer', { hint: 'sign in' })
  const late = (cause: CliError) =>
    new CliError('claim_in_flight', Exit.notYet, 'timed out', { hint: 'keep watching', cause })
  const error = await run([...done(1), late(renewal), late(renewal)])
  expect(error).toMatchObject({
    code: 'refresh_unknown',
    exit: 7,
    message: 'no usable answer (1 done, 2 not finished)',
    hint: `sign in\nthen ${AGAIN}`,
  })
  // Anything else may be over the next time.
  const unreachable = await run([late(new CliError('unreachable', Exit.unavailable, 'no answer'))])
  expect(unreachable).toMatchObject({ code: 'domains_failed', exit: 8, hint: AGAIN })
})

test('a run that stopped at its first failure says where it stood', async () => {
  const refused = new CliError('refused', Exit.refused, 'no')
  const error = await run([...done(2), refused, ...done(7)], { failFast: true })
  expect(error?.message).toBe(
    "1 of 10 domains isn't completed; stopped early: 2 done, 1 failed, 7 not finished",
  )
  expect(error?.hint).toBe('to go on with the rest: the same command without --fail-fast')
})

test.each<['GET' | 'POST', string]>([
  ['GET', 'allow more time with --http-timeout SECONDS'],
  ['POST', 'the service may have acted on the request'],
])(
  'what a %s without an answer may have done decides what its domain gets as a hint',
  async (method, hint) => {
    const lost = transportFailure(
      new TransportError('timeout', 'maybe', 'no complete response'),
      new URL('https://api.example.com'),
      method,
    )
    const tally = await run([undefined, lost])
    expect(tally?.hint).toBe(AGAIN)
    expect(JSON.parse(lastOutput.text.trim().split('\n').at(-1) ?? '').error.hint).toContain(hint)
  },
)

test('what is interrupted says how many domains are not done, and what was found so far', async () => {
  const context = createFakeContext({})
  const settings = await fakeSettings(context)
  const work: ManyWork = {
    ...WORK,
    waits: true,
    async perform({ domain }, { context: { interrupts }, progress }) {
      progress({ step: STARTING })
      if (domain === '2') return { label: 'completed', item: { name: domain } }
      if (domain !== '3')
        progress({
          step: 'waiting for DNS',
          causes: [{ code: 'quoted', message: '', fix: 'Enter it without quotation marks: VALUE' }],
          needsPerson: true,
        })
      await new Promise((_, reject) => {
        interrupts.signal.addEventListener('abort', () => reject(interrupts.signal.reason))
      })
      throw new Error('unreached')
    },
  }
  setTimeout(() => context.interrupt(), 20)
  const all = { jobs: 4, failFast: false, total: 4 }
  const error = await runMany(work, subjectsOf(4), all, context, settings).catch((caught: CliError) => caught)
  expect(error).toMatchObject({
    exit: 130,
    message: 'interrupted after 1 domain, with 3 not done',
    hint: 'nothing is lost; to continue, run the same command again: what is done is not done again',
  })
  expect(context.stderr.text).toContain(`1 domain: completed 1; in progress 3: starting 1, waiting for DNS 2
  2 domains: quotation marks in the value (so far) (0, 1)
    fix: Enter it without quotation marks: VALUE`)
})

describe('a run that ends early', () => {
  test.each<[string, CliError]>([
    ['--fail-fast', new CliError('odd', Exit.refused, 'no')],
    ['a lost credential', new CliError('not_signed_in', Exit.notSignedIn, 'the key was revoked')],
  ])('waits for the programs that change DNS, and starts no other: %s', async (_why, failure) => {
    const ran: string[] = []
    const signals: (AbortSignal | undefined)[] = []
    let finish = () => {}
    const context = createFakeContext({
      programs: {
        check: async () => undefined,
        async run({ command: [name], signal }) {
          signals.push(signal)
          await new Promise<void>((resolve) => (finish = resolve))
          ran.push(name)
          return { kind: 'exited', code: 0 }
        },
      },
    })
    const settings = await fakeSettings(context)
    const program = (name: string) => ({
      command: [name] as const,
      variables: {},
      timeoutMs: 1,
      onLine: async () => {},
    })
    const work: ManyWork = {
      ...WORK,
      async perform({ domain }, { context: { programs } }) {
        if (domain === '1') {
          await new Promise(setImmediate)
          throw failure
        }
        await programs.run(program(domain))
        await programs.run(program('another'))
        return { label: 'completed', item: { name: domain } }
      },
    }
    const all = { jobs: 2, failFast: true, total: 2 }
    const ended = runMany(work, subjectsOf(2), all, context, settings).catch((error: CliError) => error)
    await vi.waitFor(() => expect(context.stderr.text).toContain('stopping: waiting for 1 program to end\n'))
    expect(signals.map((signal) => signal?.aborted)).toEqual([false])
    finish()
    expect(await ended).toMatchObject({ exit: failure.exit })
    expect(ran).toEqual(['0'])
  })

  test('gets the answer to what creates a claim, and sends nothing else', async () => {
    const sent: string[] = []
    let answer = () => {}
    const context = createFakeContext({
      environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
      http: {
        async send({ url, signal }) {
          sent.push(url.pathname)
          await new Promise<void>((resolve, reject) => {
            answer = resolve
            signal?.addEventListener('abort', () => reject(signal.reason))
          })
          return jsonResponse(201, { name: 'a.com', domain_id: 'd1', status: 'pending' })
        },
        close: async () => {},
      },
    })
    const settings = await fakeSettings(context)
    const answers: unknown[] = []
    const work: ManyWork = {
      ...WORK,
      async perform({ domain }, { client }) {
        if (domain === '1') throw new CliError('refused', Exit.refused, 'no')
        answers.push((await client().post('/domains/claim', {})).body)
        await client().post('/domains/d1/claim/verify')
        return { label: 'completed', item: { name: domain } }
      },
    }
    const all = { jobs: 2, failFast: true, total: 2 }
    const ended = runMany(work, subjectsOf(2), all, context, settings).catch((error: CliError) => error)
    await vi.waitFor(() => expect(sent).toHaveLength(1))
    await new Promise(setImmediate)
    answer()
    expect(await ended).toMatchObject({ exit: 6 })
    expect({ sent, answers }).toMatchObject({ sent: ['/domains/claim'], answers: [{ domain_id: 'd1' }] })
  })

  test('counts a program that it waited for, and that failed', async () => {
    let fail = () => {}
    const context = createFakeContext({
      programs: {
        check: async () => undefined,
        async run() {
          await new Promise<void>((resolve) => (fail = resolve))
          return { kind: 'exited', code: 1 }
        },
      },
    })
    const settings = { ...(await fakeSettings(context)), format: 'jsonl' as const }
    const work: ManyWork = {
      ...WORK,
      async perform({ domain }, { context: { programs } }) {
        if (domain === '1') throw new CliError('refused', Exit.refused, 'no')
        await programs.run({ command: ['add'], variables: {}, timeoutMs: 1, onLine: async () => {} })
        throw new CliError('publish_failed', Exit.unavailable, 'add ended with exit code 1')
      },
    }
    const all = { jobs: 2, failFast: true, total: 2 }
    const ended = runMany(work, subjectsOf(2), all, context, settings).catch((error: CliError) => error)
    await vi.waitFor(() => expect(context.stderr.text).toContain('stopping: '))
    fail()
    expect(await ended).toMatchObject({ message: expect.stringContaining('0 done, 2 failed') })
    expect(context.stdout.text).toContain('publish_failed')
  })

  test('is a complete JSON document that says so, and an interrupted one is none', async () => {
    const refused = new CliError('refused', Exit.refused, 'no')
    await run([undefined, refused, undefined], { failFast: true }, { format: 'json' })
    expect(JSON.parse(lastOutput.text)).toMatchObject({
      has_more: true,
      data: [{ name: '0' }, { name: '1' }],
    })
    await run([undefined, refused], {}, { format: 'json' })
    expect(JSON.parse(lastOutput.text)).toMatchObject({ has_more: false, data: [{}, {}] })
    const context = createFakeContext()
    const settings = { ...(await fakeSettings(context)), format: 'json' as const }
    const work: ManyWork = {
      ...WORK,
      async perform({ domain }) {
        if (domain === '1') context.interrupt()
        return { label: 'completed', item: { name: domain } }
      },
    }
    const all = { jobs: 1, failFast: false, total: 3 }
    await expect(runMany(work, subjectsOf(3), all, context, settings)).rejects.toMatchObject({ exit: 130 })
    expect(() => JSON.parse(context.stdout.text)).toThrow()
  })
})

test('the hint about one domain has the value that the list gave for it', async () => {
  const context = createFakeContext({})
  const settings = await fakeSettings(context)
  const perform = async () => ({
    label: 'fix',
    item: {},
    error: new CliError('record_not_visible', Exit.notYet, 'missing'),
  })
  async function* listed(): AsyncGenerator<SubjectReading, void, void> {
    yield { kind: 'subject', subject: { domain: 'a.com', value: "p='1", options: {} } }
  }
  const all = { jobs: 1, failFast: false, total: 1 }
  await expect(
    runMany({ ...WORK, resumes: false, perform }, listed(), all, context, settings),
  ).rejects.toMatchObject({
    hint: expect.stringContaining(`more about one: mailclaim claims check a.com --value 'p='\\''1'`),
  })
})

test('in a log, the summary says where the words of a fix are explained', async () => {
  const summary = async (selection: readonly string[]) => {
    const context = createFakeContext({})
    const settings = { ...(await fakeSettings(context)), format: 'tsv' as const }
    const cause = { code: 'missing', message: '', fix: 'Add it: host HOST, value VALUE' }
    const error = new CliError('missing', Exit.notYet, '')
    const perform = async () => ({ label: 'fix', item: {}, error, causes: [cause] })
    const all = { jobs: 1, failFast: false, total: 1 }
    await runMany({ ...WORK, selection, perform }, subjectsOf(1), all, context, settings).catch(() => {})
    return context.stderr.text
  }
  expect(await summary(['--all'])).toContain(
    '  Each domain with its HOST and VALUE: mailclaim claims check --all --format markdown\n',
  )
  // Standard input can't be read again.
  expect(await summary(['--from', '-'])).toContain('mailclaim claims check --from FILE --format markdown\n')
})

test('while nobody watches, a line a minute says how far it is, with each cause that is new', async () => {
  const context = createFakeContext({})
  const settings = await fakeSettings(context)
  const work: ManyWork = {
    ...WORK,
    async perform({ domain }, { progress }) {
      progress({ step: 'waiting for DNS', causes: [{ code: 'quoted', message: '', fix: 'Enter it again' }] })
      for (let minute = 0; minute < 2; minute++) {
        context.clock.ring()
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return { label: 'completed', item: { name: domain } }
    },
  }
  await runMany(work, subjectsOf(1), { jobs: 1, failFast: false, total: 1 }, context, settings)
  const line = 'so far: 0 domains; in progress 1: waiting for DNS 1\n'
  const cause = '  1 domain: quotation marks in the value (so far) (0)\n    fix: Enter it again\n'
  expect(context.stderr.text).toContain(`${line}${cause}${line}`)
  expect(context.stderr.text.split(cause)).toHaveLength(2)
})

test.each<'table' | 'tsv' | 'csv' | 'jsonl' | 'markdown'>(['table', 'tsv', 'csv', 'jsonl', 'markdown'])(
  'with %s, a line for each domain is suggested only where there is none yet',
  async (format) => {
    const refused = new CliError('odd', Exit.notYet, 'odd')
    const error = await run([refused], {}, { format, resumes: false })
    expect(error?.hint?.includes('--format tsv')).toBe(format === 'table' || format === 'markdown')
  },
)

test.each<[string, CliError, string | undefined]>([
  ['is still in progress', new CliError('claim_in_flight', Exit.notYet, ''), AGAIN],
  ['had an outage', new CliError('unavailable', Exit.unavailable, ''), AGAIN],
  ['is owned by another account', new CliError('refused', Exit.refused, ''), undefined],
  ['was replaced', new CliError('claim_superseded', Exit.negativeEnd, ''), undefined],
  ['the service does not have', new CliError('not_found', Exit.notFound, ''), undefined],
  [
    'is gone',
    goneError({ name: 'a.com', status: 'pending' }, new CliError('not_found', Exit.notFound, '')),
    '1 ended or is gone: running this again starts new claims with new records',
  ],
  [
    'expired',
    new CliError('claim_expired', Exit.negativeEnd, ''),
    '1 ended or is gone: running this again starts new claims with new records',
  ],
])('what a second run would do for a domain that %s', async (_what, end, hint) => {
  expect((await run([undefined, end]))?.hint).toBe(hint)
})

test('on a terminal of 60 columns the summary at the end breaks no count, and says where the rest is', async () => {
  const context = createFakeContext({ terminal: { columns: 60 }, environment: { noColor: true } })
  const settings = { ...(await fakeSettings(context)), quiet: true }
  const labels = ['ready', 'ready_with_warning', 'verification_failed', 'wait']
  const work: ManyWork = {
    ...WORK,
    selection: ['--from', 'new domains.csv'],
    async perform({ domain }) {
      const number = Number(domain)
      if (number < 1000) return { label: labels[number % 4] ?? '', item: {} }
      const cause = { code: 'missing', message: '', fix: 'Add it: host HOST, value VALUE' }
      return { label: 'fix', item: {}, error: new CliError('missing', Exit.notYet, ''), causes: [cause] }
    },
  }
  const all = { jobs: 1, failFast: false, total: 1003 }
  await expect(runMany(work, subjectsOf(1003), all, context, settings)).rejects.toThrow('3 of 1,003')
  expect(context.stdout.text).toBe(`1,003 domains: ready 250, ready_with_warning 250,
verification_failed 250, wait 250, fix 3

3 domains: record missing
  fix: Add it: host HOST, value VALUE
  1000, 1001 and 1 more

Each domain with its HOST and VALUE:
mailclaim claims check --from 'new domains.csv' --format markdown
`)
})
