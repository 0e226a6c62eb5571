import { expect, it } from 'vitest'
import { walkCommands } from '../../src/commands/definition.ts'
import { commandTree } from '../../src/commands/tree.ts'
import { HttpTransportError } from '../../src/context.ts'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { type Client, control, createClient, createRealClock } from '../hardening/in-process-client.ts'
import { run } from '../run.ts'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'

interface Event {
  readonly event: string
  readonly at: string
}

const KEYS = ['event', 'at', 'claim', 'earlier', 'report', 'import', 'error', 'url']

async function definedFor(command: string) {
  const found = [...walkCommands(commandTree)].find(({ path }) => path.join(' ') === command)
  return Object.keys((await found?.leaf.load())?.events ?? {})
}

/** Parses the events in these outputs. Checks that each has a time and only known keys, and differs from the event before it. */
function sent(...outputs: readonly string[]): Event[] {
  return outputs.flatMap((text) => {
    const events = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Event)
      .filter(({ event }) => event !== undefined)
    events.forEach((event, at) => {
      expect(event.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(KEYS).toEqual(expect.arrayContaining(Object.keys(event)))
      const { at: _one, ...content } = event
      const { at: _other, ...before } = events[at - 1] ?? { at: '' }
      expect(content).not.toEqual(before)
    })
    return events
  })
}

const namesOf = (events: readonly Event[]) => [...new Set(events.map(({ event }) => event))].sort()

/** Creates a sandbox that decides claims within 50 ms, and a client with its API key. */
async function world() {
  const sandbox = await sandboxForTest({ stepSeconds: 0.05, autoApprove: true })
  const publish = (domain: string) => control(sandbox, 'POST', `claims/${domain}/publish`, {})
  const client = createClient(sandbox, {
    apiKey: true,
    clock: createRealClock(),
    async runInShell({ command, variables }) {
      if (command === 'hook') await publish(variables['MAILCLAIM_RECORD_NAME'] ?? '')
      return { kind: 'exited', code: 0 }
    },
  })
  return { sandbox, client, publish }
}

const outputOf = async (client: Client, ...words: string[]) =>
  (await client.run([...words, '--format', 'jsonl'])).stdout

it('`claim --format jsonl` prints exactly the documented events', async () => {
  const { client, publish } = await world()
  const outputs = [await outputOf(client, 'claim', 'usual.example.com', '--timeout', '0.3')]
  await publish('usual.example.com')
  outputs.push(await outputOf(client, 'claim', 'usual.example.com'))
  await client.run(['claims', 'create', 'failed.example.com'])
  await publish('failed.example.com')
  // No resolver answers at this address: `claim` warns and continues.
  outputs.push(await outputOf(client, 'claim', 'failed.example.com', '--resolver', '127.0.0.1:1'))
  outputs.push(await outputOf(client, 'claim', 'published.example.com', '--publish', 'hook'))
  const events = sent(...outputs)
  expect(namesOf(events)).toEqual((await definedFor('claim')).sort())
  for (const event of events) expect(event).toHaveProperty('claim.domain_id')
  expect(events.find(({ event }) => event === 'waiting')).toHaveProperty('report.verdict', 'fix')
}, 20_000)

it('claims watch --format jsonl prints exactly the documented events, apart from `waiting` and `warning`', async () => {
  const { sandbox, client } = await world()
  const domain = 'usual.example.com'
  await client.run(['claims', 'create', domain])
  const outputs: string[] = []
  const watch = async () => {
    const line = `claims watch ${domain} --timeout 0.2 --through-blocked`
    const output = await outputOf(client, ...line.split(' '))
    expect(sent(output)[0]?.event).toBe('status')
    outputs.push(output)
  }
  await watch()
  for (const status of ['under_review', 'blocked', 'completed']) {
    await control(sandbox, 'POST', `claims/${domain}/outcome`, { status })
    await watch()
  }
  const events = sent(...outputs)
  // The event `waiting` needs a minute without news, and `warning` needs a failing service.
  const others = (await definedFor('claims watch')).filter((name) => !['waiting', 'warning'].includes(name))
  expect(namesOf(events)).toEqual(others.sort())
  for (const event of events) expect(event).toHaveProperty('claim.domain_id')
})

it('claims verify --wait --format jsonl begins with the events `dns`, `verification` and `status`, and ends with `done`', async () => {
  const { client, publish } = await world()
  await client.run(['claims', 'create', 'usual.example.com'])
  await publish('usual.example.com')
  const events = sent(await outputOf(client, 'claims', 'verify', 'usual.example.com', '--wait'))
  expect(events.slice(0, 3).map(({ event }) => event)).toEqual(['dns', 'verification', 'status'])
  expect(events.at(-1)?.event).toBe('done')
})

it('`imports watch --format jsonl` prints exactly the documented events', async () => {
  const steps = ['queued', 'in_progress', 'in_progress', 'failure', 'completed']
  let turn = 0
  const context = createFakeContext({
    environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1' },
    respond: () => {
      const status = steps[turn++]
      if (status === 'failure') throw new HttpTransportError('reset', 'maybe', 'the connection was closed')
      return jsonResponse(200, { id: 'i-1', status, counts: { total: 9, created: turn } })
    },
  })
  expect(await run(['imports', 'watch', 'i-1', '--format', 'jsonl'], context)).toBe(0)
  const events = sent(context.stdout.text)
  expect(namesOf(events)).toEqual((await definedFor('imports watch')).sort())
  for (const event of events) expect(event).toHaveProperty('import.id', 'i-1')
})

it('claims watch of a blocked claim and imports watch of a failed import print the events `status` and `done`', async () => {
  const context = createFakeContext({
    environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'key-1' },
    respond: ({ url }) =>
      jsonResponse(
        200,
        url.pathname.endsWith('/claim')
          ? { status: 'blocked' }
          : { status: 'failed', counts: { total: 8, created: 2 } },
      ),
  })
  for (const [watch, id, code] of [
    ['claims', 'd1', 9],
    ['imports', 'i-1', 9],
  ] as const) {
    const before = context.stdout.text.length
    expect(await run([watch, 'watch', id, '--format', 'jsonl'], context)).toBe(code)
    expect(sent(context.stdout.text.slice(before)).map(({ event }) => event)).toEqual(['status', 'done'])
  }
  expect(context.stderr.text).toContain('the import i-1 failed (failed, 2 of 8 (25%))')
})
