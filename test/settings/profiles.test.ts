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

test.each([
  [
    ['default', 'work'],
    'profile work is signed in: add --profile work, or run mailclaim auth switch work. Otherwise run mailclaim login, or set MAILCLAIM_API_KEY',
  ],
  [
    ['ci', 'defaul', 'work'],
    'profiles ci, defaul, and work are signed in: add --profile NAME, or run mailclaim auth switch NAME. Otherwise run mailclaim login, or set MAILCLAIM_API_KEY',
  ],
  [['a', 'b', 'c', 'd'], 'run mailclaim login, or set MAILCLAIM_API_KEY'],
  [[], 'run mailclaim login, or set MAILCLAIM_API_KEY'],
])(
  'if nobody chose a profile and it has no session, the error names those that have one: %j',
  (others, hint) => {
    const settings = { profile: { value: 'default', source: 'default' }, chosen: {} } as never
    expect(notSignedIn(settings, others).hint).toBe(hint)
  },
)

test('the error of a profile without a session names the one that was probably meant', () => {
  const settings = { profile: { value: 'prdo', source: 'flag' }, chosen: {} } as never
  expect(notSignedIn(settings, ['default', 'prod']).hint).toBe(
    'did you mean --profile prod? Otherwise run mailclaim login --profile prdo, or set MAILCLAIM_API_KEY',
  )
  expect(notSignedIn(settings, ['default']).hint).toBe(
    'run mailclaim login --profile prdo, or set MAILCLAIM_API_KEY',
  )
})
