import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createFakeContext, jsonResponse } from '../fake-context.ts'
import { run } from '../run.ts'
import { withEffects } from '../session/sandbox-session.ts'

const MEGABYTE = Buffer.alloc(1024 * 1024, 'a')

/** An input that goes on until nobody reads it anymore, or until a limit that no careful reader comes near. */
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

describe('an input without an end', () => {
  test('an endless input is not an API key: reading stops after the first chunk', async () => {
    const { stream, taken } = endless()
    const context = withEffects(createFakeContext({ environment: { settings: { store: 'file' } } }), {
      stdin: { isTTY: false, stream: stream as never },
    })
    expect(await run(['login', '--with-api-key', '--base-url', 'https://api.example.com'], context)).toBe(2)
    expect(context.stderr.text).toContain('is not an API key')
    expect(context.stderr.text).not.toContain('aaaa')
    expect(taken()).toBeLessThan(5)
  })
})

test('a claim of several megabytes is shown, and not stored in a file too large to read', async () => {
  const claim = { domain_id: 'd-1', name: 'example.com', status: 'pending', note: 'x'.repeat(5_000_000) }
  const context = createFakeContext({
    environment: { settings: { base_url: 'http://127.0.0.1:1' }, apiKey: 'k' },
    respond: () => jsonResponse(200, claim),
  })
  expect(await run(['claims', 'get', 'd-1', '--fields', 'name', '--format', 'tsv'], context)).toBe(0)
  const next = withEffects(context, {})
  expect(await run(['claims', 'list'], next)).toBe(0)
  expect(next.stderr.text.match(/warning: .*/g) ?? []).toHaveLength(1)
})
