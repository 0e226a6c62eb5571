import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { createFakeDns, smallWorld } from '../../dns/fake-dns.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../../fake-context.ts'

/** A service with these claims of example.com by their id, which can be changed; undefined: it has none of that id. */
function createWorld(statuses: Record<string, string | undefined>) {
  const claim = (id: string, status: string | undefined) => ({
    name: 'example.com',
    domain_id: id,
    status,
    record: { type: 'TXT', name: 'example.com', value: `prefix=${id}`, ttl: 'Auto' },
    created_at: `2026-11-${id.replace(/\D/g, '').padStart(2, '0')} 10:00:00+00`,
  })
  const clock = createFakeClock()
  const asked: string[] = []
  const context = createFakeContext({
    clock,
    dns: createFakeDns(
      smallWorld(() => []),
      clock,
    ),
    environment: { settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' }, apiKey: 'key' },
    respond: ({ method, url }) => {
      asked.push(`${method} ${url.pathname}`)
      const id = url.pathname.split('/')[2] ?? ''
      if (statuses[id] === undefined) return jsonResponse(404, { name: 'not_found', message: 'Not found' })
      return jsonResponse(200, claim(id, statuses[id]))
    },
  })
  return {
    asked,
    async run(...words: string[]) {
      asked.length = 0
      const [stdout, stderr] = [createFakeOutput(), createFakeOutput()]
      const code = await run(words, { ...context, stdout, stderr })
      return { code, stdout: stdout.text, stderr: stderr.text }
    },
  }
}

describe('a name stands for the newest open claim', () => {
  test.each(['claims get', 'claims watch', 'claims verify'])(
    '%s NAME goes on to the next one if that one has ended since it was last seen',
    async (line) => {
      const statuses: Record<string, string | undefined> = { d1: 'pending', d2: 'pending', d3: 'pending' }
      const world = createWorld(statuses)
      for (const id of ['d1', 'd2', 'd3']) await world.run('claims', 'get', id)
      Object.assign(statuses, { d3: undefined, d2: 'canceled', d1: 'completed' })
      const { code, stdout } = await world.run(...line.split(' '), 'example.com', '--json')
      expect({ code, claim: JSON.parse(stdout) }).toMatchObject({ code: 0, claim: { domain_id: 'd1' } })
      expect(world.asked).toEqual(['d3', 'd2', 'd1'].map((id) => `GET /domains/${id}/claim`))
      // The ledger knows by now that d2 has ended.
      const listed = await world.run('claims', 'list', '--fields', 'domain_id,status', '--format', 'tsv')
      expect(listed.stdout).toContain('d2\tcanceled')
    },
  )

  test('if all have ended, it stands for the newest one, and an id always for that one claim', async () => {
    const statuses: Record<string, string | undefined> = { d1: 'pending', d2: 'pending' }
    const world = createWorld(statuses)
    for (const id of ['d1', 'd2']) await world.run('claims', 'get', id)
    Object.assign(statuses, { d2: 'canceled' })
    expect(JSON.parse((await world.run('claims', 'get', 'd2', '--json')).stdout).domain_id).toBe('d2')
    Object.assign(statuses, { d1: 'expired' })
    expect(JSON.parse((await world.run('claims', 'get', 'example.com', '--json')).stdout).domain_id).toBe(
      'd1',
    )
    const gone = createWorld({ d1: 'pending' })
    await gone.run('claims', 'get', 'd1')
    expect((await gone.run('claims', 'get', 'd9')).code).toBe(5)
  })
})

describe('claims verify', () => {
  test.each(['expired', 'superseded', 'canceled', 'failed'])(
    'claims verify of a claim that is %s ends with exit 9, with the claim on stdout',
    async (status) => {
      const world = createWorld({ d1: status })
      for (const more of [[], ['--wait']]) {
        const asJson = await world.run('claims', 'verify', 'd1', '--json', ...more)
        expect({ code: asJson.code, claim: JSON.parse(asJson.stdout) }).toMatchObject({
          code: 9,
          claim: { domain_id: 'd1', status },
        })
        expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: `claim_${status}`, exit: 9 } })
        const asLines = await world.run('claims', 'verify', 'd1', '--format', 'jsonl', ...more)
        expect(JSON.parse(asLines.stdout)).toMatchObject({ event: 'done', claim: { status } })
      }
      expect(world.asked).toEqual(['GET /domains/d1/claim'])
    },
  )

  test('claims verify that a mistake in the record stops leaves the claim on stdout', async () => {
    const world = createWorld({ d1: 'pending' })
    const asJson = await world.run('claims', 'verify', 'd1', '--json')
    expect({ code: asJson.code, claim: JSON.parse(asJson.stdout) }).toMatchObject({
      code: 8,
      claim: { domain_id: 'd1', status: 'pending' },
    })
    expect(JSON.parse(asJson.stderr)).toMatchObject({ error: { code: 'record_not_visible' } })
    const asLines = await world.run('claims', 'verify', 'd1', '--format', 'jsonl')
    expect(JSON.parse(asLines.stdout)).toMatchObject({ event: 'stopped', claim: { status: 'pending' } })
    expect(world.asked).toEqual(['GET /domains/d1/claim'])
  })
})
