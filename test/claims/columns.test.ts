import { expect, test } from 'vitest'
import { CLAIM_LIST_COLUMNS, SINGLE_CLAIM_COLUMNS } from '../../src/claims/columns.ts'
import type { DomainClaim } from '../../src/service/types.ts'
import { createIo } from '../../src/terminal/io.ts'
import { createFakeContext, fakeSettings } from '../fake-context.ts'

const claim = (status: string, name = 'xn--bcher-kva.example') =>
  ({ name, status, domain_id: 'd1', expires_at: '2026-11-28 04:30:02.06106+00' }) as DomainClaim

async function card(status: string): Promise<string> {
  const context = createFakeContext({ terminal: { columns: 80 }, environment: { noColor: true } })
  await createIo(context, await fakeSettings(context)).write(claim(status), SINGLE_CLAIM_COLUMNS)
  return context.stdout.text
}

test.each(['pending', 'verified', 'blocked', 'expired', 'under_review'])(
  'a claim with status %s is shown with its expiry date on a terminal',
  async (status) => {
    expect(await card(status)).toMatch(/^Expires +in 8 days \(2026-11-28 04:30:02 UTC\)/m)
  },
)

test.each(['completed', 'failed', 'superseded', 'canceled'])(
  'a claim with status %s is shown without an expiry date on a terminal',
  async (status) => {
    expect(await card(status)).not.toContain('Expires')
  },
)

test('the TSV of a completed claim contains the expiry date of the claim', async () => {
  const context = createFakeContext()
  await createIo(context, await fakeSettings(context)).write(claim('completed'), SINGLE_CLAIM_COLUMNS)
  expect(context.stdout.text).toContain('2026-11-28 04:30:02.06106+00')
})

test('the columns of claims list show a pending claim in one line of a terminal of 100 columns, with a relative expiry time', async () => {
  const context = createFakeContext({ terminal: { columns: 100 }, environment: { noColor: true } })
  const writer = createIo(context, await fakeSettings(context)).list(CLAIM_LIST_COLUMNS)
  await writer.page({ items: [claim('pending')], envelope: {} })
  expect(context.stdout.text).toMatchInlineSnapshot(`
    "Domain                 Status   Meaning                                    Expires
    xn--bcher-kva.example  pending  waiting for the TXT record to be verified  in 8 days
    "
  `)
})

test('the columns of claims list describe a pending claim as expired after its expiry date', async () => {
  const context = createFakeContext({ terminal: { columns: 100 }, environment: { noColor: true } })
  const writer = createIo(context, await fakeSettings(context)).list(CLAIM_LIST_COLUMNS)
  const old = { ...claim('pending'), expires_at: '2019-11-28 04:30:02+00' }
  await writer.page({ items: [old], envelope: {} })
  expect(context.stdout.text).toContain("by this machine's clock the claim expired")
  expect(context.stdout.text).not.toContain('waiting for')
})
