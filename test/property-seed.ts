import fc from 'fast-check'

/**
 * Property tests try the same cases each time, so that a run says something about the change and not about luck.
 * `MAILCLAIM_TEST_SEED=random` looks for new ones, and a number repeats what such a run found.
 */
const asked = process.env['MAILCLAIM_TEST_SEED'] || '20261121'
if (asked !== 'random') {
  const seed = Number(asked)
  if (!Number.isInteger(seed))
    throw new Error(`MAILCLAIM_TEST_SEED is neither random nor a whole number: ${asked}`)
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
}
