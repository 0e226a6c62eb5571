import { expect, test } from 'vitest'
import { notSignedIn } from '../../src/session/messages.ts'
import { similarWord } from '../../src/settings/parse-value.ts'

test.each([
  ['prdo', 'prod'],
  ['rpod', 'prod'],
  ['prd', 'prod'],
  ['pro', 'prod'],
  ['rod', 'prod'],
  ['prood', 'prod'],
  ['prodd', 'prod'],
  ['pred', 'prod'],
  ['prof', 'prod'],
])('%s is one slip away from %s', (typed, meant) => {
  expect(similarWord(typed, ['staging', meant])).toBe(meant)
})

test.each(['prod', 'product', 'dorp', 'staging', 'pdro1', 'p'])('%s is not', (typed) => {
  expect(similarWord(typed, ['prod'])).toBeUndefined()
})

test('the error of a profile without a session names the one that was probably meant', () => {
  const settings = { profile: { value: 'prdo', source: 'flag' }, chosen: {} } as never
  expect(notSignedIn(settings, ['default', 'prod']).hint).toBe(
    'did you mean --profile prod? Otherwise run mailclaim login --profile prdo, or set MAILCLAIM_API_KEY',
  )
  expect(notSignedIn(settings, ['default']).hint).toBe(
    'run mailclaim login --profile prdo, or set MAILCLAIM_API_KEY',
  )
})
