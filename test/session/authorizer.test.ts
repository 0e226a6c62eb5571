import { expect, test } from 'vitest'
import { createAuthorizer } from '../../src/session/authorizer.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

test('requests at the same time share one look at the stored key', async () => {
  const context = createFakeContext()
  let reads = 0
  const counting = {
    ...context,
    environment: {
      ...context.environment,
      get apiKey() {
        reads += 1
        return 'key_0123456789'
      },
    },
  }
  const authorizer = createAuthorizer(counting, await fakeSettings(context))
  const credentials = await Promise.all(Array.from({ length: 20 }, () => authorizer.credential()))
  credentials.push(await authorizer.credential())
  expect(new Set(credentials.map(({ value }) => value))).toEqual(new Set(['key_0123456789']))
  expect(reads).toBe(1)
})
