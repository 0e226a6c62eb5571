import { describe, expect, test } from 'vitest'
import { sandboxForTest } from './start-sandbox.ts'
import { advance, api, control } from './talk.ts'

interface Item {
  readonly id: string
  readonly status?: string
}

const items = (body: Record<string, unknown>) => body['data'] as Item[]
const LISTS = ['/oauth/grants', '/contacts/imports'] as const

describe.each(LISTS)('%s (interface 4.2, 4.3 and 8)', (path) => {
  test.each(['0', '-1', '101', '1.5', '10abc', '010', '', ' 5', '1e1', '1&limit=2'])(
    'a list refuses limit=%s',
    async (limit) => {
      const sandbox = await sandboxForTest()
      expect(await api(sandbox, 'GET', `${path}?limit=${limit}`)).toMatchObject({
        status: 422,
        body: { statusCode: 422, name: 'validation_error', message: expect.any(String) },
      })
    },
  )

  test.each([1, 100])('a list accepts limit=%i', async (limit) => {
    const sandbox = await sandboxForTest({ imports: 150, grants: 150 })
    const { body } = await api(sandbox, 'GET', `${path}?limit=${limit}`)
    expect(body).toMatchObject({ object: 'list', has_more: true })
    expect(items(body)).toHaveLength(limit)
  })

  test('a list refuses both cursors together, and an unknown cursor', async () => {
    const sandbox = await sandboxForTest()
    const [first, second] = items((await api(sandbox, 'GET', path)).body)
    expect((await api(sandbox, 'GET', `${path}?after=${first?.id}&before=${second?.id}`)).status).toBe(422)
    expect((await api(sandbox, 'GET', `${path}?after=nothing`)).status).toBe(422)
  })

  test('a list pages forward and backward through the same items, without the cursor', async () => {
    const sandbox = await sandboxForTest({ imports: 25, grants: 25 })
    const forward: string[] = []
    for (let cursor = '', more = true; more; ) {
      const { body } = await api(sandbox, 'GET', `${path}?limit=4${cursor}`)
      forward.push(...items(body).map(({ id }) => id))
      cursor = `&after=${forward.at(-1)}`
      more = body['has_more'] === true
    }
    expect(new Set(forward).size).toBe(25)

    const back: string[] = []
    for (let cursor = `&before=${forward.at(-1)}`, more = true; more; ) {
      const { body } = await api(sandbox, 'GET', `${path}?limit=4${cursor}`)
      back.unshift(...items(body).map(({ id }) => id))
      cursor = `&before=${back[0]}`
      more = body['has_more'] === true
    }
    expect(back).toEqual(forward.slice(0, -1))
  })
})

test('without a limit imports come ten at a time and grants all at once', async () => {
  const sandbox = await sandboxForTest({ imports: 25, grants: 250 })
  const imports = (await api(sandbox, 'GET', '/contacts/imports')).body
  expect([items(imports).length, imports['has_more']]).toEqual([10, true])
  const grants = (await api(sandbox, 'GET', '/oauth/grants')).body
  expect([items(grants).length, grants['has_more']]).toEqual([250, false])
})

test('a grant has the fields of the interface, revoked ones with time and reason', async () => {
  const sandbox = await sandboxForTest({ grants: 20 })
  const grants = items((await api(sandbox, 'GET', '/oauth/grants')).body) as unknown as Record<
    string,
    unknown
  >[]
  for (const grant of grants) {
    expect(Object.keys(grant)).toEqual([
      'id',
      'client_id',
      'scopes',
      'resource',
      'created_at',
      'revoked_at',
      'revoked_reason',
      'client',
    ])
    expect(grant['revoked_at'] === null).toBe(grant['revoked_reason'] === null)
  }
  expect(grants.some((grant) => grant['revoked_reason'] === 'revoked_from_api')).toBe(true)
  expect(grants.some((grant) => grant['revoked_reason'] === null)).toBe(true)
})

test.each(['queued', 'in_progress', 'completed', 'failed'])(
  'a list with status=%s has only those imports',
  async (status) => {
    const sandbox = await sandboxForTest({ imports: 60 })
    const all: Item[] = []
    for (let cursor = '', more = true; more; ) {
      const { body } = await api(sandbox, 'GET', `/contacts/imports?limit=7&status=${status}${cursor}`)
      all.push(...items(body))
      cursor = `&after=${all.at(-1)?.id}`
      more = body['has_more'] === true
    }
    const unfiltered = items((await api(sandbox, 'GET', '/contacts/imports?limit=100')).body)
    expect(all.length).toBeGreaterThan(0)
    expect(all.map(({ id }) => id)).toEqual(
      unfiltered.filter((item) => item.status === status).map(({ id }) => id),
    )
  },
)

test('a filtered list pages backward, also from an item that the filter excludes', async () => {
  const sandbox = await sandboxForTest({ imports: 60 })
  const all = items((await api(sandbox, 'GET', '/contacts/imports?limit=100')).body)
  const { body } = await api(sandbox, 'GET', `/contacts/imports?status=queued&before=${all.at(-1)?.id}`)
  expect(items(body)).toEqual(all.filter(({ status }) => status === 'queued'))
  expect(items(body).length).toBeGreaterThan(1)
})

test('an unknown status is refused', async () => {
  const sandbox = await sandboxForTest()
  expect((await api(sandbox, 'GET', '/contacts/imports?status=done')).status).toBe(422)
})

test('an import can be fetched by its id; unknown ids are 404', async () => {
  const sandbox = await sandboxForTest()
  const [, , third] = items((await api(sandbox, 'GET', '/contacts/imports')).body)
  expect((await api(sandbox, 'GET', `/contacts/imports/${third?.id}`)).body).toMatchObject({
    object: 'contact_import',
    id: third?.id,
  })
  for (const id of ['nothing', '00000000-0000-4000-8000-000000000000', '%00']) {
    expect(await api(sandbox, 'GET', `/contacts/imports/${id}`)).toMatchObject({
      status: 404,
      body: { statusCode: 404, name: 'not_found' },
    })
  }
})

test('imports in progress advance with the clock until they complete or fail', async () => {
  const sandbox = await sandboxForTest()
  const seen: unknown[] = []
  for (const seconds of [0, 15, 30, 60]) {
    await advance(sandbox, seconds)
    const { body } = await api(sandbox, 'GET', '/contacts/imports?limit=3')
    seen.push(items(body).map(({ status }) => status))
    for (const { counts, completed_at, status } of body['data'] as {
      counts: Record<string, number>
      completed_at: string | null
      status: string
    }[]) {
      const { total = 0, created = 0, updated = 0, skipped = 0, failed = 0 } = counts
      const done = created + updated + skipped + failed
      expect(done).toBeLessThanOrEqual(total)
      if (status === 'completed') expect(done).toBe(total)
      expect(completed_at !== null).toBe(status === 'completed' || status === 'failed')
    }
  }
  expect(seen).toEqual([
    ['queued', 'in_progress', 'in_progress'],
    ['in_progress', 'in_progress', 'failed'],
    ['in_progress', 'completed', 'failed'],
    ['completed', 'completed', 'failed'],
  ])
})

test('a hundred thousand imports and grants cost nothing until they are requested', async () => {
  const sandbox = await sandboxForTest({ imports: 100_000, grants: 100_000 })
  const ids = new Set<string>()
  for (let cursor = '', more = true; more; ) {
    const { body } = await api(sandbox, 'GET', `/contacts/imports?limit=100${cursor}`)
    for (const { id } of items(body)) ids.add(id)
    cursor = `&after=${items(body).at(-1)?.id}`
    more = body['has_more'] === true
  }
  expect(ids.size).toBe(100_000)
  expect((await control(sandbox, 'GET', '/state')).body).toMatchObject({
    imports: 100_000,
    requests: { by_route: { 'GET /contacts/imports': 1000 } },
  })
})

describe('credentials', () => {
  const PATHS: readonly (readonly [string, string])[] = [
    ['GET', '/oauth/grants'],
    ['GET', '/contacts/imports'],
    ['GET', '/contacts/imports/x'],
    ['POST', '/domains/claim'],
    ['POST', '/domains/x/claim/verify'],
    ['GET', '/domains/x/claim'],
  ]

  test.each(PATHS)('%s %s requires a credential', async (method, path) => {
    const sandbox = await sandboxForTest()
    for (const bearer of [null, 'wrong', `${sandbox.apiKey}x`, 'a.b.c']) {
      const answer = await api(sandbox, method, path, { bearer })
      expect(answer).toMatchObject({ status: 401, body: { statusCode: 401, message: expect.any(String) } })
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /)
    }
  })

  test('an access token of another sandbox is refused', async () => {
    const [one, other] = [await sandboxForTest(), await sandboxForTest()]
    const session = await control(one, 'POST', '/sessions', {})
    const bearer = String(session.body['access_token'])
    expect((await api(one, 'GET', '/oauth/grants', { bearer })).status).toBe(200)
    expect((await api(other, 'GET', '/oauth/grants', { bearer })).status).toBe(401)
  })

  test('a grant that is revoked from outside ends its access token', async () => {
    const sandbox = await sandboxForTest()
    const bearer = String((await control(sandbox, 'POST', '/sessions', {})).body['access_token'])
    await control(sandbox, 'POST', '/grants/all/revoke', {})
    expect(await api(sandbox, 'GET', '/oauth/grants', { bearer })).toMatchObject({
      status: 401,
      body: { message: 'The grant of this access token has been revoked.' },
    })
  })
})

test('unknown paths are 404 and other methods 405, both as JSON', async () => {
  const sandbox = await sandboxForTest()
  expect(await api(sandbox, 'GET', '/nothing')).toMatchObject({ status: 404, body: { statusCode: 404 } })
  const answer = await api(sandbox, 'GET', '/domains/claim')
  expect(answer).toMatchObject({ status: 405, body: { statusCode: 405, name: 'method_not_allowed' } })
  expect(answer.headers.get('allow')).toBe('POST')
})
