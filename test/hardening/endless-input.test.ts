import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { run } from '../run.ts'
import { withEffects } from '../session/sandbox-session.ts'

const MEGABYTE = Buffer.alloc(1024 * 1024, 'a')

/** Creates an input of 300 MB that counts how many megabytes were read: a reader with a limit stops long before the end. */
function endless(): { stream: Readable; taken: () => number } {
  let taken = 0
  const stream = new Readable({
    read() {
      taken += 1
      this.push(taken > 300 ? null : MEGABYTE)
    },
  })
  return { stream, taken: () => taken }
}

test('`login --with-api-key` exits 2 after reading less than 5 MB of an endless input', async () => {
  const { stream, taken } = endless()
  const context = withEffects(createFakeContext({ environment: { settings: { store: 'file' } } }), {
    stdin: { isTTY: false, stream: stream as never },
  })
  expect(await run(['login', '--with-api-key', '--base-url', 'https://api.example.com'], context)).toBe(2)
  expect(context.stderr.text).toContain('is not an API key')
  expect(context.stderr.text).not.toContain('aaaa')
  expect(taken()).toBeLessThan(5)
})

test('`claims list` leaves out a claim of 5 MB that `claims get` has saved, and prints one warning', async () => {
  const claim = { domain_id: 'd-1', name: 'example.com', status: 'pending', note: 'x'.repeat(5_000_000) }
  const context = createFakeContext({
    environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'k' },
    respond: () => jsonResponse(200, claim),
  })
  expect(await run(['claims', 'get', 'd-1', '--fields', 'name', '--format', 'tsv'], context)).toBe(0)
  expect(context.stderr.text).not.toContain('warning: ')
  expect(await run(['claims', 'list'], context)).toBe(0)
  expect(context.stderr.text.match(/warning: .*/g) ?? []).toHaveLength(1)
})
