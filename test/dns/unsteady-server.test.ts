import { expect, test } from 'vitest'
import { AA, smallWorld } from './fake-dns.ts'
import { timedCheck } from './timed-check.ts'

/** Two machines at one address take turns in answering TXT queries; the first has no record. */
function twoMachines(first: readonly string[], second: readonly string[]) {
  let queries = 0
  return smallWorldOf(() => {
    queries += 1
    return queries % 2 === 1 ? first : second
  })
}

function smallWorldOf(txt: () => readonly string[]): ReturnType<typeof smallWorld> {
  const empty = smallWorld(() => [])
  return (asked) => {
    if (asked.server !== '192.0.2.2' || asked.type !== 'TXT' || asked.name !== 'example.com')
      return empty(asked)
    const values = txt()
    return values.length === 0
      ? empty(asked)
      : {
          flags: AA,
          answers: values.map((data) => ({ type: 'TXT' as const, name: asked.name, ttl: 300, data })),
        }
  }
}

test.each([
  ['no record', []],
  ['an old value', ['prefix=old']],
])('two machines at one address, of which one has %s, are not a missing record', async (_what, values) => {
  const { report } = await timedCheck(twoMachines(values, ['prefix=token']))
  expect(report).toMatchObject({
    verdict: 'wait',
    findings: [{ code: 'partial_propagation', details: { host: 'ns.example.com', address: '192.0.2.2' } }],
  })
  expect(report.findings[0]?.message).toContain('has the record at example.com in some of its answers')
})

test('machines at one address that all lack the record are', async () => {
  const { report } = await timedCheck(twoMachines([], ['other=1']))
  expect(report).toMatchObject({ verdict: 'fix', findings: [{ code: 'missing' }, {}] })
})
