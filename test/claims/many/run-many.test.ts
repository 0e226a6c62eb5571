import { expect, test } from 'vitest'
import { type ManyOptions, type ManyWork, runMany } from '../../../src/claims/many/run-many.ts'
import type { SubjectReading } from '../../../src/claims/many/subjects.ts'
import { CliError, Exit } from '../../../src/errors.ts'
import { createFakeContext, fakeSettings } from '../../fake-context.ts'

/** Runs over domains, of which each is done or fails, and returns the error at the end. */
async function run(ends: readonly (CliError | undefined)[], options: Partial<ManyOptions> = {}) {
  const context = createFakeContext({})
  const settings = { ...(await fakeSettings(context)), format: 'jsonl' as const }
  const work: ManyWork = {
    command: 'claims create',
    columns: [],
    rowsForPeople: false,
    waits: false,
    resumes: true,
    restarts: true,
    notDone: "aren't completed",
    async perform({ domain }) {
      const error = ends[Number(domain)]
      if (error !== undefined) throw error
      return { label: 'completed', item: { name: domain } }
    },
  }
  const subjects = (async function* (): AsyncGenerator<SubjectReading, void, void> {
    for (const number of ends.keys())
      yield { kind: 'subject', subject: { domain: String(number), options: {} } }
  })()
  const all = { jobs: 1, failFast: false, total: ends.length, ...options }
  return await runMany(work, subjects, all, context, settings).then(
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
  expect([atOnce?.message, atOnce?.hint]).toEqual(['the key was revoked', 'sign in'])
})

test('a run that stopped at its first failure says where it stood', async () => {
  const refused = new CliError('refused', Exit.refused, 'no')
  const error = await run([...done(2), refused, ...done(7)], { failFast: true })
  expect(error?.message).toBe(
    "1 of 3 domains isn't completed; stopped early: 2 done, 1 failed, 7 not finished",
  )
  expect(error?.hint).toBe(AGAIN)
})

test.each<[string, CliError, string | undefined]>([
  ['is still in progress', new CliError('claim_in_flight', Exit.notYet, ''), AGAIN],
  ['had an outage', new CliError('unavailable', Exit.unavailable, ''), AGAIN],
  ['is owned by another account', new CliError('refused', Exit.refused, ''), undefined],
  ['was replaced', new CliError('claim_superseded', Exit.negativeEnd, ''), undefined],
  [
    'expired',
    new CliError('claim_expired', Exit.negativeEnd, ''),
    '1 ended: running this again starts new claims with new records',
  ],
])('what a second run would do for a domain that %s', async (_what, end, hint) => {
  expect((await run([undefined, end]))?.hint).toBe(hint)
})
