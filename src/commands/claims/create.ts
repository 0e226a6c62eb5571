import { CLAIM_COLUMNS } from '../../claims/columns.ts'
import { recordClaim } from '../../claims/ledger.ts'
import { nameOf, stateOf } from '../../claims/lifecycle.ts'
import type { Context } from '../../context.ts'
import { checkName } from '../../dns/wire/name.ts'
import { Exit, usageError } from '../../errors.ts'
import { createClaim } from '../../service/claims.ts'
import { type ClaimRequest, type DomainClaim, REGIONS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import type { Settings } from '../../settings/settings.ts'
import { hint, note } from '../../terminal/notices.ts'
import { writeObject } from '../../terminal/output.ts'
import { defineCommand } from '../definition.ts'

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
    says: 'where the domain is served from (the service takes us-east-1)',
    choices: REGIONS,
  },
  {
    flags: '--custom-return-path <label>',
    says: 'label of the Return-Path address (the service takes send)',
    parse: label('--custom-return-path'),
  },
  { flags: '--open-tracking', says: 'track opens; needs a verified tracking subdomain' },
  { flags: '--no-open-tracking', says: 'do not track opens' },
  { flags: '--click-tracking', says: 'track clicks; needs a verified tracking subdomain' },
  { flags: '--no-click-tracking', says: 'do not track clicks' },
  {
    flags: '--tracking-subdomain <label>',
    says: 'label of the tracking subdomain',
    parse: label('--tracking-subdomain'),
  },
] as const

export const command = defineCommand<CreateFlags>({
  description: `Starts a claim to a domain that another team has verified, and prints the TXT record that proves ownership.
The service creates a placeholder domain in your team; the claim is open until it expires. Where an identical claim is
pending, that one is returned. A claim is canceled by deleting its placeholder domain, outside this program.`,
  arguments: [{ syntax: '[domain]', says: 'the domain to claim' }],
  options: CREATE_OPTIONS,
  examples: [
    { command: 'mailclaim claims create example.com', says: 'start a claim' },
    {
      command: 'mailclaim claims create example.com --region eu-west-1 --json',
      says: 'in another region, for a script',
    },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.refused, Exit.unavailable],
  async run({ arguments: [domain], options }, context, settings) {
    const request = claimRequest(domain ?? (await askForDomain(context, settings)), options)
    const { claim, created } = await createClaim(connect(context, settings), request)
    const remembered = await recordClaim(claim, context, settings)
    if (!created)
      await note(
        `${nameOf(claim)} was already being claimed (${stateOf(claim).description}); this is that claim.`,
        context,
        settings,
      )
    await writeObject(context, settings, claim, CLAIM_COLUMNS)
    await hint(nextStep(claim, remembered ? request.name : (claim.domain_id ?? '')), context, settings)
  },
})

/** @param known what the next command finds the claim by */
function nextStep(claim: DomainClaim, known: string): string {
  if (stateOf(claim).phase === 'blocked')
    return `a block can lift by itself; to wait for that: mailclaim claims watch ${known} --through-blocked`
  if (claim.status === 'verified')
    return `the transfer is running; follow it with: mailclaim claims watch ${known}`
  return `add the TXT record, then run: mailclaim claims check ${known}`
}

/** Asks a person for the domain that was left out. @throws CliError exit 2 where nobody can be asked. */
export async function askForDomain(context: Context, settings: Settings): Promise<string> {
  if (!settings.interactive)
    throw usageError('which domain? It is missing', 'give it as in: mailclaim claims create example.com')
  return context.prompts.input({
    message: 'Domain to claim:',
    validate: (text) => {
      const name = checkName(text)
      return name.ok || `${name.problem}. ${name.fix}`
    },
  })
}

/** What is sent to start a claim: only what was asked for, so that the service's defaults hold. @throws CliError exit 2. */
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
      'use letters, digits and, inside, hyphens; 63 at most',
    )
  }
}
