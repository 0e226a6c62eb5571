import fc from 'fast-check'

/**
 * Seed of all property tests: fixed, so that a failure comes from a change and not from chance. `MAILCLAIM_TEST_SEED=random`
 * generates new cases, and a number repeats the cases of an earlier run.
 */
const asked = process.env['MAILCLAIM_TEST_SEED'] || '20261121'
if (asked !== 'random') {
  const seed = Number(asked)
  if (!Number.isInteger(seed))
    throw new Error(`MAILCLAIM_TEST_SEED is neither random nor a whole number: ${asked}`)
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
}
