import { CLAIM_COLUMNS } from '../../claims/columns.ts'
import { claimsOf, readLedger, recordClaim } from '../../claims/ledger.ts'
import { besideWarning, isOpen, nameOf, stateOf, unappliedWarning } from '../../claims/lifecycle.ts'
import { startClaim } from '../../claims/other-machines.ts'
import { writeClaim } from '../../claims/write-claim.ts'
import type { Context } from '../../context.ts'
import { checkName } from '../../dns/wire/name.ts'
import { usageError } from '../../errors.ts'
import { CLAIM_FIELDS, type ClaimRequest, type DomainClaim, REGIONS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import type { Settings } from '../../settings/settings.ts'
import { commandLine } from '../../shell-quote.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { defineCommand, SERVICE_EXITS } from '../definition.ts'

export interface CreateFlags {
  readonly region?: string
  readonly customReturnPath?: string
  readonly openTracking?: boolean
  readonly clickTracking?: boolean
  readonly trackingSubdomain?: string
}

/** The options of `claims create`; `claim` takes them too. */
export const CREATE_OPTIONS = [
  {
    flags: '--region <region>',
    description: 'region that serves the domain',
    choices: REGIONS,
    default: 'us-east-1',
  },
  {
    flags: '--custom-return-path <label>',
    description: 'label of the Return-Path address',
    default: 'send',
    parse: label('--custom-return-path'),
  },
  { flags: '--open-tracking', description: 'track opens; requires a verified tracking subdomain' },
  { flags: '--no-open-tracking', description: "don't track opens" },
  { flags: '--click-tracking', description: 'track clicks; requires a verified tracking subdomain' },
  { flags: '--no-click-tracking', description: "don't track clicks" },
  {
    flags: '--tracking-subdomain <label>',
    description: 'label of the tracking subdomain',
    parse: label('--tracking-subdomain'),
  },
] as const

export const command = defineCommand<CreateFlags>({
  description: `Starts a claim to a domain that another team has verified, and prints the TXT record that proves ownership.
The service creates a placeholder domain in your team; the claim is open until it expires. A new claim may end an earlier
one of the same domain and has its own TXT record, so continue an open claim with "mailclaim claim" instead.`,
  arguments: [{ syntax: '[domain]', description: 'the domain to claim', asked: true }],
  options: CREATE_OPTIONS,
  examples: {
    'mailclaim claims create example.com': 'start a claim',
    'mailclaim claims create example.com --region eu-west-1 --json': 'in another region, for a script',
  },
  output: { schema: 'claim', fields: CLAIM_FIELDS, columns: CLAIM_COLUMNS },
  exits: SERVICE_EXITS,
  account: 'signed_in',
  async run({ arguments: [domain], options }, context, settings) {
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
    if (created && earlier !== undefined && isOpen(earlier.claim, context.clock.now()))
      await warn(besideWarning(earlier.claim), context, settings)
    await writeClaim(claim, context, settings)
    await hint(nextStep(claim, remembered ? request.name : (claim.domain_id ?? '')), context, settings)
  },
})

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

/** The request that starts a claim: only what was given, so that the service's defaults apply. @throws CliError exit 2. */
export function claimRequest(domain: string, flags: CreateFlags): ClaimRequest {
  const name = checkName(domain)
  if (!name.ok) throw usageError(name.problem, name.fix)
  return {
    name: name.ascii,
    ...(flags.region === undefined ? {} : { region: flags.region }),
    ...(flags.customReturnPath === undefined ? {} : { custom_return_path: flags.customReturnPath }),
    ...(flags.openTracking === undefined ? {} : { open_tracking: flags.openTracking }),
    ...(flags.clickTracking === undefined ? {} : { click_tracking: flags.clickTracking }),
    ...(flags.trackingSubdomain === undefined ? {} : { tracking_subdomain: flags.trackingSubdomain }),
  }
}

function label(option: string): (text: string) => string {
  return (text) => {
    if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(text)) return text
    throw usageError(
      `${option}: ${JSON.stringify(text)} is not a DNS label`,
      'use up to 63 letters, digits and hyphens, with no hyphen at the start or the end',
    )
  }
}
