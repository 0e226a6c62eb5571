import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnswerCase, otherCases, statusCases } from './answers.ts'
import { clientCount, sample, seed } from './options.ts'
import { type Client, createClient, inParallel } from './run-mailclaim.ts'
import { endingOf, malfunctions, untruths } from './statements.ts'
import { type Breach, countBreaches, printBreaches, printTable } from './table.ts'

/** Long enough for a slow machine; each process has a limit of its own. */
const HOUR = 3600 * 1000

interface Result {
  readonly answer: AnswerCase
  readonly works: boolean
  readonly reuse: number
  readonly wrong: readonly string[]
}

describe('every answer to a refresh', () => {
  const ends: (() => void)[] = []
  let clients: Client[] = []

  beforeAll(async () => {
    const onEnd = (end: () => void) => ends.push(end)
    clients = await Promise.all(Array.from({ length: clientCount }, () => createClient(onEnd)))
  })
  afterAll(() => {
    for (const end of ends) end()
  })

  it(
    'statuses, cuts, delays and stops',
    async () => {
      const began = performance.now()
      const statuses = statusCases()
      // The slowest first, so that no client is left alone with them.
      const cases = [...otherCases().reverse(), ...sample(statuses)]
      const results = await inParallel(clients, cases, refreshAnsweredWith)
      const seconds = Math.round((performance.now() - began) / 1000)
      const breaches = print(`answers: ${cases.length}, seed ${seed}, ${seconds} s`, results)
      expect(countBreaches(breaches)).toEqual({})
    },
    HOUR,
  )
})

async function refreshAnsweredWith(client: Client, answer: AnswerCase): Promise<Result> {
  const { service } = client
  client.rewind()
  const running = client.start(['grants', 'list', '--json', ...(answer.words ?? [])])
  service.answerWith({
    process: answer.process,
    async write(socket, tokens) {
      if (answer.stoppedForMs !== undefined) {
        running.child.kill('SIGSTOP')
        setTimeout(() => running.child.kill('SIGCONT'), answer.stoppedForMs)
      }
      await answer.write(socket, tokens ?? '', service.base)
    },
  })
  const first = await client.end(running)
  await service.settled()
  const { bytes, processed } = service.counts
  const next = await client.run(['grants', 'list', '--json'])
  const works = next.code === 0
  const { reuse, leaks } = service.counts
  const wrong = [...malfunctions(first), ...malfunctions(next)]
  if (leaks > 0) wrong.push('the refresh token was sent elsewhere')
  if (answer.expected !== 'accepted') {
    wrong.push(...untruths(first, { bytes, processed, nextWorks: works }))
    wrong.push(...untruths(next, { bytes, processed }))
    if (reuse > 0) wrong.push('a rotated refresh token was sent')
    if (first.code === 0 && !works) wrong.push(`done, and the next command ends with ${endingOf(next)}`)
  }
  if (answer.expected === 'survives' && !works)
    wrong.push(`the session is lost: ${endingOf(first)}, then ${endingOf(next)}`)
  return { answer, works, reuse, wrong }
}

function print(heading: string, results: readonly Result[]): Breach[] {
  const row = (name: string, some: readonly Result[]) => {
    const count = (test: (result: Result) => boolean) => some.filter(test).length
    return [
      name,
      some.length,
      count(({ answer, works }) => answer.process && works),
      count(({ answer, works }) => answer.process && !works),
      count(({ answer, works }) => !answer.process && works),
      count(({ answer, works }) => !answer.process && !works),
      count(({ reuse }) => reuse > 0),
      count(({ wrong }) => wrong.some((one) => one.startsWith('untrue'))),
      count(({ wrong }) => wrong.includes('hung')),
      count(({ wrong }) => wrong.length > 0),
    ]
  }
  const believed = results.filter(({ answer }) => answer.expected === 'accepted')
  const checked = results.filter(({ answer }) => answer.expected !== 'accepted')
  printTable(heading, [
    [
      'answer',
      'runs',
      'processed: works',
      'lost',
      'not processed: works',
      'lost',
      'reuse',
      'untrue',
      'hung',
      'wrong',
    ],
    ...[...new Set(checked.map(({ answer }) => answer.group))].sort().map((group) =>
      row(
        group,
        checked.filter(({ answer }) => answer.group === group),
      ),
    ),
    row('all', checked),
    row('accepted by design: the service refuses what it did', believed),
  ])
  const breaches = results.flatMap(({ answer, wrong }) =>
    wrong.map((what) => ({
      what,
      where: `${answer.group}: ${answer.name}`,
      how: answer.process ? 'processed' : 'not processed',
    })),
  )
  printBreaches(breaches)
  return breaches
}
