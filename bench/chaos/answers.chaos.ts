import { existsSync, renameSync } from 'node:fs'
import { expect, it } from 'vitest'
import { type AnswerCase, otherCases, statusCases } from './answers.ts'
import { sample, seed } from './options.ts'
import { type Client, inParallel, shareClients } from './run-mailclaim.ts'
import { endingOf, findMalfunctions, findUntruths } from './statements.ts'
import { type Outcome, report } from './table.ts'

/** Timeout of the test in milliseconds, generous for slow machines; a hanging process is reported much earlier. */
const HOUR = 3600 * 1000

interface Result extends Outcome {
  readonly answer: AnswerCase
  readonly works: boolean
  readonly reuse: number
}

const { clients } = shareClients()

it(
  'after any answer to a refresh request, except a refusal of a processed request, no used refresh token is sent, and no message is untrue',
  async () => {
    const began = performance.now()
    // Start the slowest cases first, so that the clients finish at about the same time.
    const cases = [...otherCases().reverse(), ...sample(statusCases())]
    const results = await inParallel(clients, cases, refreshAnsweredWith)
    const seconds = Math.round((performance.now() - began) / 1000)
    const columns = {
      'processed: works': ({ answer, works }: Result) => answer.process && works,
      lost: ({ answer, works }: Result) => answer.process && !works,
      'not processed: works': ({ answer, works }: Result) => !answer.process && works,
      'not processed: lost': ({ answer, works }: Result) => !answer.process && !works,
      reuse: ({ reuse }: Result) => reuse > 0,
    }
    const isAccepted = ({ answer }: Result) => answer.expected === 'accepted'
    const checked = results.filter((result) => !isAccepted(result))
    const broken = {
      ...report(`answers: ${cases.length}, seed ${seed}, ${seconds} s`, checked, columns),
      ...report('accepted by design: the service refuses what it did', results.filter(isAccepted), columns),
    }
    expect(broken).toEqual({})
  },
  HOUR,
)

async function refreshAnsweredWith(client: Client, answer: AnswerCase): Promise<Result> {
  const { service } = client
  const away = `${client.state}-away`
  client.rewind()
  const running = client.start(['grants', 'list', '--json', ...(answer.words ?? [])])
  service.answerWith({
    process: answer.process,
    async write(socket, tokens) {
      if (answer.stoppedForMs !== undefined) {
        running.child.kill('SIGSTOP')
        setTimeout(() => running.child.kill('SIGCONT'), answer.stoppedForMs)
      }
      if (answer.isStateGone) renameSync(client.state, away)
      await answer.write(socket, tokens, service.base)
    },
  })
  const first = await client.end(running)
  if (existsSync(away)) renameSync(away, client.state)
  await service.settled()
  const { bytes, processed } = service.counts
  const next = await client.run(['grants', 'list', '--json'])
  const works = next.code === 0
  const { reuse, leaks } = service.counts
  const wrong = [...findMalfunctions(first), ...findMalfunctions(next)]
  if (leaks > 0) wrong.push('the refresh token was sent elsewhere')
  if (answer.expected !== 'accepted') {
    wrong.push(...findUntruths(first, { bytes, processed, nextWorks: works }))
    wrong.push(...findUntruths(next, { bytes, processed }))
    if (reuse > 0) wrong.push('a rotated refresh token was sent')
    if (first.code === 0 && !works) wrong.push(`done, and the next command ends with ${endingOf(next)}`)
  }
  if (answer.expected === 'survives' && !works)
    wrong.push(`the session is lost: ${endingOf(first)}, then ${endingOf(next)}`)
  return {
    answer,
    works,
    reuse,
    group: answer.group,
    where: `${answer.group}: ${answer.name}`,
    how: answer.process ? 'processed' : 'not processed',
    wrong,
  }
}
