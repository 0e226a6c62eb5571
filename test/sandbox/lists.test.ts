import { describe, expect, test } from 'vitest'
import { sandboxForTest } from './start-sandbox.ts'
import { advance, api, control } from './talk.ts'

interface Item {
  readonly id: string
  readonly status?: string
}

const items = (body: Record<string, unknown>) => body['data'] as Item[]
const ids = (list: readonly Item[]) => list.map(({ id }) => id)

describe.each(['/oauth/grants', '/contacts/imports'])('%s', (path) => {
  test('the sandbox refuses a list request with an invalid limit or cursor with status 422', async () => {
    const sandbox = await sandboxForTest({ imports: 150, grants: 150 })
    const bad = ['0', '-1', '101', '1.5', '10abc', '010', '', ' 5', '1e1', '1&limit=2']
    for (const query of [...bad.map((limit) => `limit=${limit}`), 'after=nothing', 'after=a&before=b'])
      expect(await api(sandbox, 'GET', `${path}?${query}`)).toMatchObject({
        status: 422,
        body: { statusCode: 422, name: 'validation_error', message: expect.any(String) },
      })
    for (const limit of [1, 100]) {
      const { body } = await api(sandbox, 'GET', `${path}?limit=${limit}`)
      expect(body).toMatchObject({ object: 'list', has_more: true })
      expect(items(body)).toHaveLength(limit)
    }
  })

  test('paging a list of the sandbox backward from its last item returns the other items in the same order', async () => {
    const sandbox = await sandboxForTest({ imports: 25, grants: 25 })
    const walk = async (direction: 'after' | 'before', from = '') => {
      const seen: string[] = []
      for (let cursor = from, more = true; more; ) {
        const query = cursor === '' ? '' : `&${direction}=${cursor}`
        const { body } = await api(sandbox, 'GET', `${path}?limit=4${query}`)
        if (direction === 'after') seen.push(...ids(items(body)))
        else seen.unshift(...ids(items(body)))
        cursor = (direction === 'after' ? seen.at(-1) : seen[0]) ?? ''
        more = body['has_more'] === true
      }
      return seen
    }
    const forward = await walk('after')
    expect(new Set(forward).size).toBe(25)
    expect(await walk('before', forward.at(-1))).toEqual(forward.slice(0, -1))
  })
})

test('a list request to the sandbox without a limit returns ten imports, or all grants', async () => {
  const sandbox = await sandboxForTest({ imports: 25, grants: 250 })
  const imports = (await api(sandbox, 'GET', '/contacts/imports')).body
  expect([items(imports).length, imports['has_more']]).toEqual([10, true])
  const grants = (await api(sandbox, 'GET', '/oauth/grants')).body
  expect([items(grants).length, grants['has_more']]).toEqual([250, false])
  const seen = items(grants) as unknown as Record<string, unknown>[]
  expect(Object.keys(seen[0] ?? {}).join(' ')).toBe(
    'id client_id scopes resource created_at revoked_at revoked_reason client',
  )
  for (const grant of seen) expect(grant['revoked_at'] === null).toBe(grant['revoked_reason'] === null)
  expect(new Set(seen.map((grant) => grant['revoked_reason']))).toEqual(new Set([null, 'revoked_from_api']))
})

test.each(['queued', 'in_progress', 'completed', 'failed'])(
  'the sandbox, asked for imports with status=%s, lists only imports with that status',
  async (status) => {
    const sandbox = await sandboxForTest({ imports: 60 })
    const all = items((await api(sandbox, 'GET', '/contacts/imports?limit=100')).body)
    const wanted = all.filter((item) => item.status === status)
    expect(wanted.length).toBeGreaterThan(0)
    const first = (await api(sandbox, 'GET', `/contacts/imports?limit=1&status=${status}`)).body
    expect([ids(items(first)), first['has_more']]).toEqual([ids(wanted.slice(0, 1)), wanted.length > 1])
    const rest = await api(
      sandbox,
      'GET',
      `/contacts/imports?limit=100&status=${status}&after=${wanted[0]?.id}`,
    )
    expect(ids(items(rest.body))).toEqual(ids(wanted.slice(1)))
  },
)

test('the sandbox returns the import with the requested id, or status 404 for an unknown id', async () => {
  const sandbox = await sandboxForTest()
  const [, , third] = items((await api(sandbox, 'GET', '/contacts/imports')).body)
  expect((await api(sandbox, 'GET', `/contacts/imports/${third?.id}`)).body).toMatchObject({ id: third?.id })
  for (const id of ['nothing', '00000000-0000-4000-8000-000000000000', '%00'])
    expect(await api(sandbox, 'GET', `/contacts/imports/${id}`)).toMatchObject({
      status: 404,
      body: { statusCode: 404, name: 'not_found' },
    })
  expect((await api(sandbox, 'GET', '/contacts/imports?status=done')).status).toBe(422)
})

test('contact imports progress with the virtual clock until they complete or fail', async () => {
  const sandbox = await sandboxForTest()
  const seen: unknown[] = []
  for (const seconds of [0, 15, 30, 60]) {
    await advance(sandbox, seconds)
    const page = (await api(sandbox, 'GET', '/contacts/imports?limit=3')).body['data'] as {
      status: string
      counts: Record<string, number>
      completed_at: string | null
    }[]
    seen.push(page.map(({ status }) => status))
    for (const { counts, completed_at, status } of page) {
      const { total = 0, created = 0, updated = 0, skipped = 0, failed = 0 } = counts
      if (status === 'completed') expect(created + updated + skipped + failed).toBe(total)
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

test('the sandbox counts requests by route, with {id} in place of an id', async () => {
  const sandbox = await sandboxForTest({ imports: 100_000, grants: 100_000 })
  for (const path of ['/oauth/grants', '/contacts/imports', '/contacts/imports/one'])
    await api(sandbox, 'GET', `${path}?limit=100`)
  expect((await control(sandbox, 'GET', '/state')).body['requests']).toMatchObject({
    total: 3,
    by_route: { 'GET /oauth/grants': 1, 'GET /contacts/imports': 1, 'GET /contacts/imports/{id}': 1 },
  })
})

test.each([
  ['GET', '/oauth/grants'],
  ['GET', '/contacts/imports'],
  ['GET', '/contacts/imports/x'],
  ['POST', '/domains/claim'],
  ['POST', '/domains/x/claim/verify'],
  ['GET', '/domains/x/claim'],
])('the request %s %s without a valid credential of this sandbox gets status 401', async (method, path) => {
  const sandbox = await sandboxForTest()
  const other = String((await control(await sandboxForTest(), 'POST', '/sessions')).body['access_token'])
  const own = String((await control(sandbox, 'POST', '/sessions')).body['access_token'])
  expect((await api(sandbox, method, path, { bearer: own })).status).not.toBe(401)
  await control(sandbox, 'POST', '/grants/all/revoke')
  for (const bearer of [null, 'wrong', `${sandbox.apiKey}x`, 'a.b.c', other, own]) {
    const answer = await api(sandbox, method, path, { bearer })
    expect(answer).toMatchObject({ status: 401, body: { statusCode: 401, message: expect.any(String) } })
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer /)
  }
})

test('requests to the sandbox with an unknown path or method get status 404 and a JSON error', async () => {
  const sandbox = await sandboxForTest()
  for (const path of ['/nothing', '/domains/claim'])
    expect(await api(sandbox, 'GET', path)).toMatchObject({ status: 404, body: { statusCode: 404 } })
})
