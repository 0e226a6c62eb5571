import { CLAIM_COLUMNS, MANY_CLAIM_COLUMNS } from '../../claims/columns.ts'
import { claimsOf, isOpenEntry, readLedger, recordClaim } from '../../claims/ledger.ts'
import { besideWarning, endedError, nameOf, stateOf, unappliedWarning } from '../../claims/lifecycle.ts'
import { startClaim } from '../../claims/other-machines.ts'
import { writeClaim } from '../../claims/write-claim.ts'
import type { Context } from '../../context.ts'
import { checkName } from '../../dns/wire/name.ts'
import { Exit, usageError } from '../../errors.ts'
import { CLAIM_FIELDS, type DomainClaim } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { defineCommand, SERVICE_EXITS } from '../definition.ts'
import { CREATE_OPTIONS, type CreateFlags, claimRequest } from './create-options.ts'
import { ERROR_FIELDS, isMany, MANY_NEW_OPTIONS, type ManyFlags, runForAll } from './many.ts'

interface Flags extends CreateFlags, ManyFlags {}

export const command = defineCommand<Flags>({
  description: `Starts a claim to a domain that another team has verified, and prints the TXT record that proves ownership.
The service creates a placeholder domain in your team; the claim is open until it expires. A new claim may end an earlier
one of the same domain and has its own TXT record, so continue an open claim with "mailclaim claim" instead. Of several
domains, those with an open claim known on this machine are left as they are, and one whose claim a newer one replaced
(superseded) gets no other: exit 9.`,
  arguments: [{ syntax: '[domain...]', description: 'the domain to claim, or several', asked: true }],
  options: [...CREATE_OPTIONS, ...MANY_NEW_OPTIONS],
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
    const [context, settings] = [io, io.settings]
    if (isMany(domains, options)) return createMany(domains, options, context, settings)
    const [domain] = domains
    const request = claimRequest(domain ?? (await askForDomain(context, settings)), options)
    const known = claimsOf(
      await readLedger(context, settings, async () => {}, request.name),
      request.name,
      context.clock.now(),
    )
    const { claim, created } = await startClaim(
      connect(context, settings),
      request,
      known.map((entry) => entry.claim),
    )
    const remembered = await recordClaim(claim, context, settings)
    if (!created) {
      await note(
        `${nameOf(claim)} was already being claimed (${stateOf(claim).description}); showing that claim.`,
        context,
        settings,
      )
      const unapplied = unappliedWarning(request, claim)
      if (unapplied !== undefined) await warn(unapplied, context, settings)
    }
    const [earlier] = known
    if (created && earlier !== undefined && isOpenEntry(earlier, context.clock.now()))
      await warn(besideWarning(earlier.claim), context, settings)
    await writeClaim(claim, context, settings)
    await hint(nextStep(claim, remembered ? request.name : (claim.domain_id ?? '')), context, settings)
  },
})

/** Starts the claims of several domains. An open claim isn't started again: the new one would end it. */
async function createMany(
  domains: readonly string[],
  options: Flags,
  context: Context,
  settings: Settings,
): Promise<void> {
  await runForAll(
    domains,
    options,
    {
      command: 'claims create',
      columns: MANY_CLAIM_COLUMNS,
      rowsForPeople: true,
      resumes: true,
      waits: false,
      takesIds: false,
      notDone: "don't have a claim",
      async perform({ domain, options: own }, { context, settings, client }) {
        const request = claimRequest(domain, { ...options, ...own })
        const now = context.clock.now()
        const entries = await readLedger(context, settings, async () => {}, request.name)
        const ordered = claimsOf(entries, request.name, now)
        const known = ordered.map(({ claim }) => claim)
        const open = ordered.find((entry) => isOpenEntry(entry, now))?.claim
        const completed = known.find((claim) => stateOf(claim).phase === 'completed')
        if (open === undefined && completed !== undefined) return { label: 'completed', item: completed }
        if (open !== undefined)
          return { label: 'open before', item: open, warning: regionWarning(request.region, open) }
        // Another claim would end the newer one, which may be somebody else's: that takes the command for this domain.
        const [latest] = known
        if (latest?.status === 'superseded')
          return { label: latest.status, item: latest, error: endedError(latest, stateOf(latest)) }
        const { claim, created } = await startClaim(client(), request, known)
        const isSaved = await recordClaim(claim, context, settings)
        return {
          label: created ? 'created' : 'open before',
          item: claim,
          warning: isSaved ? undefined : "couldn't save claims on this machine: keep what is printed",
        }
      },
    },
    context,
    settings,
  )
}

function regionWarning(region: string | undefined, claim: DomainClaim): string | undefined {
  if (region === undefined || !claim.region || region === claim.region) return undefined
  return `${nameOf(claim)} keeps its open claim in ${claim.region}; for one in ${region}: mailclaim claims create ${nameOf(claim)} --region ${region}`
}

/** @param known the argument that finds the claim */
function nextStep(claim: DomainClaim, known: string): string {
  if (stateOf(claim).phase === 'blocked')
    return `a block can lift by itself; to wait for that: mailclaim claims watch ${known} --through-blocked`
  if (claim.status === 'verified')
    return `the transfer is running; follow it with: mailclaim claims watch ${known}`
  return `add the TXT record, then run: mailclaim claims check ${known}`
}

/** Asks a person for the missing domain. @throws CliError exit 2 if nobody can be asked. */
export async function askForDomain(context: Context, settings: Settings): Promise<string> {
  if (!settings.interactive)
    throw usageError(
      'the domain is missing',
      `give it as in: ${commandLine([...settings.argv, 'example.com'], context.platform)}`,
    )
  return context.prompts.input({
    message: 'Domain to claim:',
    validate: (text) => {
      const name = checkName(text)
      return name.ok || `${name.problem}. ${name.fix}`
    },
  })
}
