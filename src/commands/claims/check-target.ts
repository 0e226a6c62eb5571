import { otherProfilesWith } from '../../claims/ledger.ts'
import { endOf } from '../../claims/lifecycle.ts'
import { readValue } from '../../claims/read-value.ts'
import { recordOf } from '../../claims/record.ts'
import { resolveClaimOrDomain } from '../../claims/resolve.ts'
import type { Context } from '../../context.ts'
import { checkName } from '../../dns/wire/name.ts'
import { type CliError, usageError } from '../../errors.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import { hint, warn } from '../../terminal/notices.ts'

/** The TXT record that `claims check` looks for. */
export interface CheckTarget {
  readonly name: string
  /** Null: whatever is there. */
  readonly value: string | null
  /** Whether a person gave the value, which may be wrong, unlike a claim's. */
  readonly isGiven: boolean
  /** How the claim of the record ended. */
  readonly end?: CliError | undefined
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
    if (!isGiven) await hintAtOtherProfiles(found.domain, context, settings)
    return { name: found.domain, value, isGiven }
  }
  // With a value nothing is needed from the service, and without a base URL nobody can ask it: a mistyped domain, not an id.
  const domain = checkName(argument ?? '')
  if (found.entry === undefined && !domain.ok && (isGiven || settings.baseUrl === undefined))
    throw usageError(domain.problem, domain.fix)
  const { claimWithRecord, warnIfCompleted } = await import('../../claims/known-claim.ts')
  const claim = await claimWithRecord(found, context, settings)
  const record = recordOf(claim)
  if (isGiven) return { name: record.name, value, isGiven }
  const end = endOf(claim, context.clock.now())
  if (end === undefined) await warnIfCompleted(claim, context, settings)
  return { ...record, isGiven, end }
}

/** Only the profile that made a claim knows which value to expect. */
async function hintAtOtherProfiles(domain: string, context: Context, settings: Settings): Promise<void> {
  const [other] = await otherProfilesWith(domain, context, settings)
  if (other === undefined) return
  const command = commandLine(['claims', 'check', domain, '--profile', other], context.platform)
  await hint(`profile ${other} has a claim of ${domain}: ${command}`, context, settings)
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
