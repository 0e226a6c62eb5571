import { BATCH_ERROR_COLUMNS, ERROR_FIELDS, RECORD_COLUMNS } from '../../claims/columns.ts'
import { BATCH_OPTIONS, isBatch } from '../../claims/definition.ts'
import type { ClaimReader, ClaimTarget } from '../../claims/load.ts'
import type { Io } from '../../terminal/io.ts'
import { hasOwnLayout } from '../../terminal/output.ts'
import { CLAIMS_ARGUMENT, defineCommand } from '../definition.ts'

const RECORD_FIELDS = ['type', 'name', 'value', 'ttl'] as const

export const command = defineCommand({
  description: 'Prints the TXT record that proves ownership, as it has to be added to DNS.',
  arguments: [CLAIMS_ARGUMENT],
  options: BATCH_OPTIONS,
  output: {
    schema: 'record',
    fields: [...RECORD_FIELDS, ...ERROR_FIELDS],
    columns: RECORD_COLUMNS,
    formats: ['zone', 'value'],
  },
  examples: {
    'mailclaim claims record example.com': 'what to type, and where',
    'mailclaim claims record example.com --format value': 'only the value',
    'mailclaim claims record --all --format zone': 'of all open claims, for zone files',
  },
  errors: ['claim', 'follow', 'several'],
  account: 'sometimes',
  async run({ arguments: domains, options }, io) {
    const { format } = io.settings
    const [{ createClaimReader, findClaim }, { requireRecord, toZoneFileLine }, lifecycle, place] =
      await Promise.all([
        import('../../claims/load.ts'),
        import('../../claims/record.ts'),
        import('../../claims/lifecycle.ts'),
        import('../../claims/record-location.ts'),
      ])
    const recordFor = async (target: ClaimTarget, readClaim: ClaimReader, own: Io) => {
      const claim = await readClaim(target)
      const { phase, isOpen, error } = lifecycle.getClaimState(claim, io.clock.now())
      if (!isOpen && error !== undefined) throw error
      const record = requireRecord(claim, target.name)
      const text = format === 'zone' ? `${toZoneFileLine(record)}\n` : `${record.value}\n`
      const found = hasOwnLayout(own.settings) ? await place.findRecordLocation(record.name, own) : undefined
      return { claim, record, text, found, isCompleted: phase === 'completed' }
    }
    if (!isBatch(domains, options)) {
      const target = await findClaim(domains[0], io)
      const readClaim = createClaimReader(io, { renews: true })
      const { claim, text, found, isCompleted } = await recordFor(target, readClaim, io)
      if (isCompleted)
        await io.warn(`the claim is completed: ${lifecycle.describeDomain(claim)} no longer needs its record`)
      if (format === 'zone' || format === 'value') return io.stdout.write(text)
      const host = format === 'table' ? { host: place.explainHost(found) } : {}
      return io.write({ ...claim.record, ...host }, RECORD_COLUMNS)
    }
    const { runBatchCommand } = await import('../../claims/batch.ts')
    await runBatchCommand(
      domains,
      options,
      {
        columns: [...RECORD_COLUMNS, ...BATCH_ERROR_COLUMNS],
        takesIds: true,
        async perform({ domain }, run) {
          const target = await findClaim(domain, run.io)
          const { claim, text, found } = await recordFor(target, run.readClaim, run.io)
          return { label: claim.status ?? 'no status', item: { ...claim.record, host: found?.host }, text }
        },
      },
      io,
    )
  },
})
