import { expect, test } from 'vitest'
import { sandboxForTest } from '../sandbox/start-sandbox.ts'
import { control, createClient } from './in-process-client.ts'

test('claims watch renews its access token several times in one hour, and reuses no refresh token', async () => {
  const sandbox = await sandboxForTest()
  const client = createClient(sandbox)
  await client.signIn()
  expect(await client.run(['claims', 'create', 'example.com'])).toMatchObject({ code: 0 })
  const outage = { kind: 'status', status: 503, path: '/domains/*', skip: 20, count: 5 }
  await control(sandbox, 'POST', 'faults', outage)
  const line = 'claims watch example.com --timeout 3600 --format jsonl'
  const { code, stdout, stderr } = await client.run(line.split(' '))
  expect(code, stderr).toBe(8)
  expect(stdout).toContain('"event":"warning"')
  const counts = (await control(sandbox, 'GET', 'state')) as { refreshes: number }
  expect(counts).toMatchObject({ reuse_detections: 0 })
  expect(counts.refreshes).toBeGreaterThanOrEqual(3)
})
