import { expect, test } from 'vitest'
import { createHastyReader, type SeenClaim } from '../../src/claims/current-claim.ts'
import type { HttpResponse } from '../../src/context.ts'
import { createFakeContext, fakeSettings, jsonResponse } from '../fake-context.ts'

const seen: SeenClaim = { domainId: 'd1', claim: { domain_id: 'd1', status: 'pending' }, seenAt: 0 }

test('a late answer about a claim is what its next reading gets, and no second request waits meanwhile', async () => {
  const answers: ((response: HttpResponse) => void)[] = []
  const context = createFakeContext({
    environment: { apiKey: 'key', settings: { base_url: 'https://api.example.com' } },
    respond: () => new Promise((resolve) => answers.push(resolve)),
  })
  const reader = createHastyReader(context, await fakeSettings(context))
  const tooLate = async () => {
    const reading = reader.read(seen)
    while (answers.length === 0) await new Promise(setImmediate)
    context.clock.ring()
    return (await reading).unasked?.code
  }
  expect([await tooLate(), await tooLate()]).toEqual(['timeout', 'timeout'])
  expect(answers).toHaveLength(1)
  answers[0]?.(jsonResponse(200, { domain_id: 'd1', status: 'canceled' }))
  await reader.settled()
  expect((await reader.read(seen)).claim.status).toBe('canceled')
  expect(answers).toHaveLength(1)
  // An answer is used once: the next reading asks again.
  void reader.read(seen)
  while (answers.length < 2) await new Promise(setImmediate)
  answers[1]?.(jsonResponse(200, { domain_id: 'd1', status: 'canceled' }))
  await reader.settled()
})
