import { expect, test } from 'vitest'
import { OutputClosedError } from '../../src/context.ts'
import { createFakeDns } from '../dns/fake-dns.ts'
import { smallWorld } from '../dns/fake-internet.ts'
import { createFakeClock, createFakeContext, createFakeOutput, jsonResponse } from '../fake-context.ts'
import { run } from '../run.ts'

const DOMAINS = Array.from({ length: 40 }, (_, index) => `d${index}.example.com`)
const WARNING = 'warning: the output has no reader left; the work continues without it\n'

/**
 * Creates a machine whose stdout closes after one write. The service refuses the name `failing`, and `created` has the others.
 */
function createWorld(failing?: string) {
  const created: string[] = []
  const clock = createFakeClock()
  const context = createFakeContext({
    clock,
    dns: createFakeDns(
      smallWorld(() => []),
      clock,
    ),
    environment: { settings: { base_url: 'https://api.example.com', resolver: '192.0.2.53' }, apiKey: 'key' },
    respond: ({ url, body }) => {
      if (url.pathname !== '/domains/claim') return jsonResponse(200, { status: 'pending' })
      const { name } = JSON.parse(`${body}`)
      if (name === failing) return jsonResponse(422, { name: 'validation_error', message: 'no' })
      created.push(name)
      const record = { type: 'TXT', name, value: 'prefix=token' }
      return jsonResponse(201, { name, domain_id: `id-${name}`, status: 'pending', record })
    },
  })
  const read = createFakeOutput()
  const stdout = {
    ...read,
    async write(text: string) {
      if (read.text !== '') throw new OutputClosedError('the reader went away')
      await read.write(text)
    },
  }
  return { created, context, run: (...words: string[]) => run(words, { ...context, stdout }) }
}

test('claims create continues with one warning after the reader of its output closes the pipe, and exits 6 for one refused claim', async () => {
  const { created, context, run } = createWorld(DOMAINS.at(-1))
  expect(await run('claims', 'create', ...DOMAINS, '--format', 'tsv')).toBe(6)
  expect(created).toHaveLength(DOMAINS.length - 1)
  expect(context.stderr.text.split(WARNING)).toHaveLength(2)
})

test('mailclaim claim warns and waits until its --timeout after the reader of its output closes the pipe', async () => {
  const { context, run } = createWorld()
  const options = ['--timeout', '60', '--format', 'jsonl']
  expect(await run('claim', 'example.com', ...options)).toBe(8)
  expect(context.stderr.text).toContain(WARNING)
  expect(context.stderr.text).toContain('timed out after 60 seconds')
})

test('`claims check` of several domains exits 0 without a warning if the reader of its output closes the pipe', async () => {
  const { context, run } = createWorld()
  expect(await run('claims', 'check', ...DOMAINS, '--format', 'jsonl')).toBe(0)
  expect(context.stderr.text).not.toContain('warning')
})
