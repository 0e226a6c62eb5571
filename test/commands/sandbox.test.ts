import { expect, test } from 'vitest'
import { command } from '../../src/commands/sandbox.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, type FakeContext, fakeSettings } from '../fake-context.ts'
import { run } from '../run.ts'

type Options = Parameters<typeof command.run>[0]['options']

/** Starts `sandbox`, and waits for its first output. */
async function start(context: FakeContext, options: Options = {}, json = false) {
  const settings = await fakeSettings(context, json ? { json: true } : {})
  let failed: unknown
  const ended = command.run({ arguments: [], options }, createIo(context, settings))
  ended.catch((error: unknown) => {
    failed = error
  })
  await expect.poll(() => failed ?? context.stdout.text).not.toBe('')
  if (failed !== undefined) throw failed
  return { ended, text: context.stdout.text }
}

test('`sandbox --json` prints its addresses and credentials on one line, and serves requests until SIGTERM', async () => {
  const context = createFakeContext()
  const { ended, text } = await start(context, {}, true)
  expect(text).toMatch(/^[^\n]+\n$/)
  const ready = JSON.parse(text) as Record<string, string>
  expect(Object.keys(ready)).toEqual(['base_url', 'dns', 'client_id', 'api_key'])
  const response = await fetch(`${ready['base_url']}/contacts/imports`, {
    headers: { authorization: `Bearer ${ready['api_key']}` },
  })
  expect(response.status).toBe(200)

  context.interrupt('SIGTERM')
  await expect(ended).rejects.toMatchObject({ exit: 143 })
  await expect(fetch(`${ready['base_url']}/contacts/imports`)).rejects.toThrow()
})

test('`sandbox` on a terminal prints `export` lines for the user to paste', async () => {
  const context = createFakeContext({ terminal: { columns: 80 } })
  const { ended, text } = await start(context)
  const [, dnsPort] = /MAILCLAIM_RESOLVER=127\.0\.0\.1:(\d+)/.exec(text) ?? []
  expect(text).toMatch(/export MAILCLAIM_BASE_URL=http:\/\/127\.0\.0\.1:\d+\n/)
  expect(text).toMatch(/export MAILCLAIM_CLIENT_ID=[0-9a-f-]{36}\n/)
  expect(text).toContain(`export MAILCLAIM_AUTHORITATIVE_PORT=${dnsPort}\n`)
  context.interrupt()
  await expect(ended).rejects.toMatchObject({ exit: 130 })
})

test('Ctrl-C ends the sandbox with exit 130, without an error message', async () => {
  const context = createFakeContext({ terminal: { columns: 80 } })
  const ended = run(['sandbox'], context)
  await expect.poll(() => context.stdout.text).toContain('Press Ctrl-C to end it.')
  context.interrupt()
  expect(await ended).toBe(130)
  expect(context.stderr.text).not.toContain('error')
})

test('sandbox --exit-with-stdin ends when standard input closes', async () => {
  const context = createFakeContext()
  const { ended } = await start(context, { exitWithStdin: true }, true)
  context.stdin.stream.end()
  await expect(ended).resolves.toBeUndefined()
})

test('`sandbox --port` with a port in use fails with `port_unavailable`, exit 1, and a hint', async () => {
  const context = createFakeContext()
  const { text } = await start(context, {}, true)
  const { base_url: baseUrl } = JSON.parse(text) as { base_url: string }
  const second = start(createFakeContext(), { port: Number(new URL(baseUrl).port) }, true)
  await expect(second).rejects.toMatchObject({ code: 'port_unavailable', exit: 1, hint: expect.any(String) })
  context.interrupt()
})
