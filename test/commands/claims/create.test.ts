import { symlinkSync } from 'node:fs'
import { expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { createFakeContext, jsonResponse } from '../../fake-context.ts'

const ID = '7b1f0f1e-77aa-4b1c-9d2b-5c0a1de5c001'

test.each([
  ['a claim that is remembered', true, 'example.com'],
  ['where nothing can be kept, a claim', false, ID],
])('%s goes on by what the next command can find it by', async (_what, writable, known) => {
  const record = { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' }
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(201, { name: 'example.com', domain_id: ID, status: 'pending', record }),
  })
  if (!writable) symlinkSync(`${context.directories.state}-not-mounted`, context.directories.state)
  expect(await run(['claims', 'create', 'example.com'], context)).toBe(0)
  expect(context.stderr.text).toContain(`then run: mailclaim claims check ${known}\n`)
  const checked = await run(['claims', 'record', known, '--format', 'value'], context)
  expect({ checked, stdout: context.stdout.text.endsWith('\nprefix=token\n') }).toEqual({
    checked: 0,
    stdout: true,
  })
})

test.each([
  [
    'blocked',
    'a block can lift by itself; to wait for that: mailclaim claims watch example.com --through-blocked',
  ],
  ['verified', 'the transfer is running; follow it with: mailclaim claims watch example.com'],
])('a claim that is %s already needs no record', async (status, hint) => {
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(200, { name: 'example.com', domain_id: ID, status }),
  })
  expect(await run(['claims', 'create', 'example.com'], context)).toBe(0)
  expect(context.stderr.text).toContain(`hint: ${hint}\n`)
  expect(context.stderr.text).not.toContain('add the TXT record')
})
