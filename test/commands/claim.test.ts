import { describe, expect, it } from 'vitest'
import type { FakeClock } from '../fake-context.ts'
import { control, createClient, createRealClock } from '../hardening/in-process-client.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'

/** A clock that runs eight times as fast, so that the pauses between checks are short. */
function createFastClock(): FakeClock {
  const clock = createRealClock()
  const factor = 8
  return {
    ...clock,
    monotonic: () => clock.monotonic() * factor,
    sleep: (ms, signal) => clock.sleep(ms / factor, signal),
  }
}

/** `claim` with an API key at a sandbox, whose DNS has no record yet. */
async function claiming(domain: string, words: readonly string[] = []) {
  const sandbox = await sandboxForTest()
  const client = createClient(sandbox, { apiKey: true, clock: createFastClock() })
  const ran = await client.run(['claim', domain, '--timeout', '1', ...words])
  return { sandbox, client, ran }
}

const jsonLines = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('claim when the time is up', () => {
  it('claim says that the time is up and how to continue, and gives the cause once', async () => {
    const { ran } = await claiming('late.example.com', ['--through-blocked'])
    expect(ran.code).toBe(8)
    expect(ran.stderr.match(/The TXT record above isn't in DNS yet/g)).toHaveLength(1)
    expect(ran.stderr).toMatch(
      /^error: timed out after 1 second: the record isn't ready at late\.example\.com/m,
    )
    expect(ran.stderr).toContain(
      'hint: nothing is lost; to continue, run again: mailclaim claim late.example.com --timeout 1 --through-blocked\n',
    )
    expect(ran.stderr).toMatch(/^in a job on another machine: mailclaim claims verify [0-9a-f-]{36} --wait$/m)
    expect(ran.stderr).toContain(
      'to ask the service without checking DNS first: mailclaim claims verify late.example.com --no-check --wait\n',
    )
  })

  it('claim --quiet gives the cause in the error', async () => {
    const { ran } = await claiming('late.example.com', ['--quiet'])
    expect(ran.stderr).toMatch(/^error: timed out after 1 second: the TXT record isn't at late/)
    expect(ran.stderr).toContain('hint: add a TXT record')
  })

  it('claim --json leaves the claim on stdout, with what is missing', async () => {
    const { ran } = await claiming('late.example.com', ['--json'])
    expect(ran.code).toBe(8)
    expect(JSON.parse(ran.stdout)).toMatchObject({
      name: 'late.example.com',
      status: 'pending',
      record: { type: 'TXT' },
      missing: {
        step: 'dns',
        message: expect.stringContaining("the TXT record isn't at"),
        report: {
          verdict: 'fix',
          findings: expect.arrayContaining([expect.objectContaining({ code: 'missing' })]),
        },
      },
    })
    expect(
      jsonLines(
        ran.stderr
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .join('\n'),
      ),
    ).toEqual([{ error: expect.objectContaining({ code: 'record_not_visible', exit: 8 }) }])
  })

  it('claim --json says that the service has not finished', async () => {
    const { ran } = await claiming('late.example.com', ['--json', '--no-check'])
    expect(ran.code).toBe(8)
    expect(JSON.parse(ran.stdout)).toMatchObject({
      status: 'pending',
      missing: {
        step: 'completed',
        message: 'late.example.com is still in progress: waiting for the service to check the TXT record',
      },
    })
  })

  it('claim writes the claim in TSV, too', async () => {
    const { ran } = await claiming('late.example.com')
    expect(ran.stdout).toMatch(/^name\t.*\nlate\.example\.com\tpending\t/)
  })

  it('claim --format jsonl writes no event twice', async () => {
    const { client } = await claiming('late.example.com')
    // Two checks of DNS see the same.
    const { stdout } = await client.run(['claim', 'late.example.com', '--timeout', '8', '--format', 'jsonl'])
    expect(jsonLines(stdout).map(({ event }) => event)).toEqual(['created', 'record', 'waiting'])
  })
})

it('claim leaves an ended claim on stdout, and its last event says so', async () => {
  const { sandbox, client } = await claiming('over.example.com')
  await control(sandbox, 'POST', 'claims/over.example.com/outcome', {
    status: 'blocked',
    reason: 'grace_period',
  })
  const words = ['claim', 'over.example.com', '--timeout', '60', '--no-check']
  const asJson = await client.run([...words, '--json'])
  expect(asJson.code, asJson.stderr).toBe(9)
  expect(JSON.parse(asJson.stdout)).toMatchObject({ status: 'blocked' })
  expect(JSON.parse(asJson.stdout)).not.toHaveProperty('missing')
  const { stdout } = await client.run([...words, '--format', 'jsonl'])
  expect(jsonLines(stdout).at(-1)).toMatchObject({ event: 'ended', claim: { status: 'blocked' } })
})

describe('what a program that asks for JSON finds in standard error', () => {
  it('is the error alone, as its last line, and no progress', async () => {
    const { ran } = await claiming('late.example.com', ['--json'])
    expect(ran.stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(JSON.parse(ran.stderr)).toMatchObject({ error: { code: 'record_not_visible', exit: 8 } })
  })

  it('is nothing if the commands of a claim succeed', async () => {
    const sandbox = await sandboxForTest()
    const client = createClient(sandbox, { apiKey: true, clock: createFastClock() })
    const quiet = async (...words: string[]) => {
      const ran = await client.run([...words, '--json'])
      expect({ words, code: ran.code, stderr: ran.stderr }).toEqual({ words, code: 0, stderr: '' })
    }
    await quiet('claims', 'create', 'quiet.example.com')
    await control(sandbox, 'POST', 'claims/quiet.example.com/publish', {})
    await quiet('claims', 'verify', 'quiet.example.com', '--no-check')
    await quiet('claims', 'watch', 'quiet.example.com')
  })

  it('is also a warning', async () => {
    const { client } = await claiming('late.example.com')
    const again = ['claim', 'late.example.com', '--timeout', '1', '--region', 'eu-west-1', '--json']
    const ran = await client.run(again)
    expect(ran.stderr).toMatch(/^warning: [^\n]+\n\{"error":.*\}\n$/)
    expect((await client.run([...again, '--quiet'])).stderr).toMatch(/^\{"error":.*\}\n$/)
  })
})
