import { CLAIM_COLUMNS, ERROR_FIELDS, MANY_CLAIM_COLUMNS } from '../../claims/columns.ts'
import { isMany, type ManyFlags } from '../../claims/definition.ts'
import { Exit } from '../../errors.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import type { Io } from '../../terminal/io.ts'
import { defineCommand, SERVICE_EXITS } from '../definition.ts'
import { askForDomain, CREATE_OPTIONS, type CreateFlags, claimRequest } from './create-options.ts'
import { MANY_OPTIONS } from './many-options.ts'

interface Flags extends CreateFlags, ManyFlags {}

export const command = defineCommand<Flags>({
  description: 'Starts a claim to a domain that another team has verified, and prints the TXT record.',
  arguments: [{ syntax: '[domain...]', description: 'the domain to claim, or several', asked: true }],
  options: [...CREATE_OPTIONS, ...MANY_OPTIONS.filter(({ flags }) => flags !== '--all')],
  examples: {
    'mailclaim claims create example.com': 'start a claim',
    'mailclaim claims create example.com --region eu-west-1 --json': 'in another region, for a script',
    'mailclaim claims create --from domains.csv --format jsonl': 'for every domain of a list',
  },
  output: { schema: 'claim', fields: [...CLAIM_FIELDS, ...ERROR_FIELDS], columns: CLAIM_COLUMNS },
  exits: [...SERVICE_EXITS, Exit.negativeEnd],
  account: 'signed_in',
  changes: true,
  async run({ arguments: domains, options }, io) {
    if (isMany(domains, options)) return createSeveral(domains, options, io)
    const [
      { claimsNamed },
      { judge },
      { domainToClaim },
      { drain, resumable },
      { beginClaim },
      write,
      session,
    ] = await Promise.all([
      import('../../claims/ledger.ts'),
      import('../../claims/lifecycle.ts'),
      import('../../claims/load.ts'),
      import('../../service/polling.ts'),
      import('../../claims/workflow.ts'),
      import('../../claims/write.ts'),
      import('../../session/connect.ts'),
    ])
    const request = claimRequest(domainToClaim(domains[0] ?? (await askForDomain(io))), options)
    const { name } = request
    const [newest] = await claimsNamed(name, io)
    const events = beginClaim(request, newest?.claim, session.connect(io), io)
    const claim = await drain(events, (event) => write.noteEvent(event, io)).catch(resumable)
    await write.writeClaim(claim, io)
    if (io.settings.quiet) return
    if (judge(claim, io.clock.now()).needsRecord)
      await io.hint(`add the TXT record, then run: mailclaim claim ${name}`)
    else await io.hint(`to follow it: mailclaim claims watch ${name}`)
  },
})

/** Starts the claims of several domains. An open claim isn't started again: the new one would end it. */
async function createSeveral(domains: readonly string[], flags: Flags, io: Io): Promise<void> {
  const [{ completedBefore, runForAll }, { claimsNamed }, { judge }, { startClaim }] = await Promise.all([
    import('../../claims/many.ts'),
    import('../../claims/ledger.ts'),
    import('../../claims/lifecycle.ts'),
    import('../../claims/load.ts'),
  ])
  // The record is what people need next.
  const columns = [
    ...CLAIM_COLUMNS.slice(0, 2),
    ...CLAIM_COLUMNS.filter(({ field }) => field === 'record'),
    ...MANY_CLAIM_COLUMNS.slice(2),
  ]
  await runForAll(
    domains,
    flags,
    {
      columns,
      takesIds: false,
      async perform({ domain, region = flags.region }, { io, client }) {
        const now = io.clock.now()
        const [newest] = await claimsNamed(domain, io)
        const done = completedBefore(newest, now)
        if (done !== undefined) return done
        const before = newest && judge(newest.claim, now)
        if (before?.isOpen)
          return { label: 'open before', item: { ...newest?.claim, seen_at: newest?.seen_at } }
        // Another claim would end the newer one, which may be somebody else's: that takes the command for this domain.
        if (newest !== undefined && before?.phase === 'superseded')
          return { label: 'superseded', item: newest.claim, error: before.error }
        const request = claimRequest(domain, { ...flags, ...(region === undefined ? {} : { region }) })
        const { claim, created } = await startClaim(request, client(), io)
        return { label: created ? 'created' : 'open before', item: claim }
      },
    },
    io,
  )
}
