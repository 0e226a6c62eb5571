import { describe, expect, test } from 'vitest'
import { run } from '../../../src/cli.ts'
import { createFakeContext, jsonResponse } from '../../fake-context.ts'

const CLAIM = {
  object: 'domain_claim',
  name: 'App.Example.COM',
  domain_id: 'd1',
  status: 'pending',
  record: { type: 'TXT', name: 'App.Example.COM', value: 'prefix=token', ttl: 'Auto' },
}

async function record(line: string, terminal?: { columns: number }) {
  const context = createFakeContext({
    environment: { settings: { base_url: 'https://api.example.com' }, apiKey: 'key' },
    respond: () => jsonResponse(200, CLAIM),
    ...(terminal === undefined ? {} : { terminal }),
  })
  const code = await run(['claims', 'record', 'd1', ...line.split(' ')], context)
  return { code, stdout: context.stdout.text, stderr: context.stderr.text }
}

describe('--zone', () => {
  test.each(['example.com', 'EXAMPLE.com', 'Example.COM.'])(
    'as %s holds the name in any case',
    async (zone) => {
      const card = await record(`--zone ${zone}`, { columns: 80 })
      expect(card.code).toBe(0)
      expect(card.stdout).toContain('app   (in the zone example.com)')
      const snippet = await record(`--zone ${zone} --provider azure-dns`)
      expect(snippet.stdout).toContain('--zone-name=example.com')
      expect(snippet.stdout).toContain('--record-set-name=app ')
    },
  )

  test.each(['--format json', '--format value', '--format zone', '--provider terraform', '--format table'])(
    'is refused where it does not hold the name, with %s too',
    async (format) => {
      const { code, stdout, stderr } = await record(`--zone example.org --no-color ${format}`)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain('--zone: app.example.com is not in the zone')
    },
  )
})

test('the claim in JSON is as the service wrote it', async () => {
  expect(JSON.parse((await record('--json')).stdout)).toEqual(CLAIM.record)
})
