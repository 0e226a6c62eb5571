import type { ClaimReader, SeenClaim } from '../../claims/current-claim.ts'
import { conclusionOf } from '../../claims/precheck.ts'
import { readValue } from '../../claims/read-value.ts'
import { recordOf } from '../../claims/record.ts'
import { claimElsewhere, resolveClaimOrDomain } from '../../claims/resolve.ts'
import type { Context } from '../../context.ts'
import { checkName } from '../../dns/wire/name.ts'
import { usageError } from '../../errors.ts'
import { looksLikeId } from '../../service/claims.ts'
import type { Settings } from '../../settings/settings.ts'
import { hint, warn } from '../../terminal/notices.ts'

/** The TXT record that `claims check` looks for. */
export interface CheckTarget {
  readonly name: string
  /** Null: whatever is there. */
  readonly value: string | null
  /** Whether a person gave the value, which may be wrong, unlike a claim's. */
  readonly isGiven: boolean
  /** The claim that the record is of. */
  readonly seen?: SeenClaim
}

/** What the command line names. @throws CliError exit 2; else as `findTarget` */
export async function typedTarget(
  argument: string | undefined,
  { name, value: given }: { readonly name?: string; readonly value?: string },
  context: Context,
  settings: Settings,
): Promise<CheckTarget> {
  const value = given === undefined ? null : await typedValue(given, context, settings)
  if (name !== undefined) {
    if (argument !== undefined) throw usageError("a domain and --name can't be used together")
    if (value === null)
      throw usageError(
        '--name needs --value',
        `add --value with the complete TXT value, or see what is there: mailclaim claims check <domain>`,
      )
    return { name, value, isGiven: true }
  }
  if (argument === undefined && value !== null)
    throw usageError('--value needs a domain', 'give it as in: mailclaim claims check example.com --value …')
  return findTarget(argument, value, context, settings)
}

/**
 * The record of the claim that is meant, as the ledger or else the service has it; of a domain without a known claim, the
 * domain's own name.
 *
 * @param value what a person expects instead of the claim's value; null: nothing
 * @throws CliError exit 2, 5, or what the service answers
 */
export async function findTarget(
  argument: string | undefined,
  value: string | null,
  context: Context,
  settings: Settings,
): Promise<CheckTarget> {
  const isGiven = value !== null
  const found = await resolveClaimOrDomain(argument, context, settings)
  if ('domain' in found) {
    // Only the profile and the service with the claim know which value to expect.
    const elsewhere = isGiven ? undefined : await claimElsewhere(found.domain, context, settings)
    if (elsewhere !== undefined) await hint(elsewhere.hint, context, settings)
    return { name: found.domain, value, isGiven }
  }
  // With a value nothing is needed from the service, and without a base URL nobody can ask it: a mistyped domain, not an id.
  const domain = checkName(argument ?? '')
  const isWord = found.entry === undefined && !looksLikeId(found.domainId)
  if (isWord && !domain.ok && (isGiven || settings.baseUrl === undefined))
    throw usageError(domain.problem, domain.fix)
  const { claimWithRecord } = await import('../../claims/known-claim.ts')
  const seen = await claimWithRecord(found, context, settings)
  const { claim } = seen
  // The record of a claim that is over makes no difference, so it may be missing.
  const isOver = !isGiven && conclusionOf(claim, context.clock.now()) !== undefined
  const record = isOver
    ? { name: claim.record?.name || claim.name || found.domainId, value: claim.record?.value ?? null }
    : recordOf(claim)
  return isGiven ? { name: record.name, value, isGiven } : { ...record, isGiven, seen }
}

/** The record as the service has it now, or had it `maxAgeMs` ago, if it is that of a claim. */
export async function latestTarget(
  target: CheckTarget,
  latest: ClaimReader | undefined,
  { clock }: Pick<Context, 'clock'>,
  maxAgeMs?: number,
): Promise<CheckTarget> {
  if (target.seen === undefined || latest === undefined) return target
  const seen = await latest(target.seen, maxAgeMs)
  // Nothing says that a claim which is over still has its record.
  const isOpen = conclusionOf(seen.claim, clock.now()) === undefined
  return { ...target, ...(isOpen && seen.claim.record?.value && recordOf(seen.claim)), seen }
}

async function typedValue(given: string, context: Context, settings: Settings): Promise<string> {
  const value = readValue(given, '--value')
  if (value !== given)
    await warn(
      'ignoring spaces, quotation marks, or invisible characters in --value that cannot belong to it',
      context,
      settings,
    )
  return value
}
