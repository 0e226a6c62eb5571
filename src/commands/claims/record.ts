import { ERROR_COLUMNS, ERROR_FIELDS } from '../../claims/columns.ts'
import { isMany, MANY_OPTIONS } from '../../claims/definition.ts'
import type { ClaimReader, KnownClaim } from '../../claims/load.ts'
import type { Column } from '../../terminal/columns.ts'
import type { Io } from '../../terminal/io.ts'
import { CLAIM_ARGUMENTS, defineCommand } from '../definition.ts'

/** The fields of a claim's record. */
const RECORD_FIELDS = ['type', 'name', 'value', 'ttl'] as const

const COLUMNS: readonly Column[] = [
  { field: 'type' },
  { field: 'host', title: 'Host', kind: 'id', only: 'people', value: (item) => (item as Card).host },
  { field: 'name', title: 'Full name', kind: 'id' },
  { field: 'value', kind: 'id', paint: (_value, { palette }) => palette.strong },
  { field: 'ttl', title: 'TTL' },
]

/** A record as people see it. */
interface Card {
  readonly host?: string
}

export const command = defineCommand({
  description: 'Prints the TXT record that proves ownership, as it has to be added to DNS.',
  arguments: [CLAIM_ARGUMENTS],
  options: MANY_OPTIONS,
  output: {
    schema: 'record',
    fields: [...RECORD_FIELDS, ...ERROR_FIELDS],
    columns: COLUMNS,
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
    const [{ createClaimReader, findClaim }, { recordOf, zoneLine }, { judge, nameOf }, place] =
      await Promise.all([
        import('../../claims/load.ts'),
        import('../../claims/record.ts'),
        import('../../claims/lifecycle.ts'),
        import('../../claims/place.ts'),
      ])
    const recordFor = async (known: KnownClaim, readClaim: ClaimReader, own: Io) => {
      const claim = await readClaim(known)
      const { phase, isOpen, error } = judge(claim, io.clock.now())
      if (!isOpen && error !== undefined) throw error
      const record = recordOf(claim, known.name)
      const text = format === 'zone' ? `${zoneLine(record)}\n` : `${record.value}\n`
      const isShown = format === 'table' && own.settings.fields === undefined
      const found = isShown ? await place.findPlace(record.name, own) : undefined
      return { claim, record, text, found, isCompleted: phase === 'completed' }
    }
    if (!isMany(domains, options)) {
      const known = await findClaim(domains[0], io)
      const { claim, text, found, isCompleted } = await recordFor(
        known,
        createClaimReader(io, { renews: true }),
        io,
      )
      if (isCompleted) await io.warn(`the claim is completed: ${nameOf(claim)} no longer needs its record`)
      if (format === 'zone' || format === 'value') return io.stdout.write(text)
      await io.write(
        format === 'table' ? { ...claim.record, host: place.hostText(found) } : { ...claim.record },
        COLUMNS,
      )
      if (found?.dnsHost !== undefined && !io.settings.quiet) await io.hint(`add it at ${found.dnsHost}`)
      return
    }
    const { runForAll } = await import('../../claims/many.ts')
    await runForAll(
      domains,
      options,
      {
        columns: [...COLUMNS, ...ERROR_COLUMNS],
        takesIds: true,
        async perform({ domain }, run) {
          const { claim, text, found } = await recordFor(
            await findClaim(domain, run.io),
            run.readClaim,
            run.io,
          )
          const host = found === undefined ? {} : { host: found.host }
          return { label: claim.status ?? 'no status', item: { ...claim.record, ...host }, text }
        },
      },
      io,
    )
  },
})
