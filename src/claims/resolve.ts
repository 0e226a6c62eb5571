import type { Context } from '../context.ts'
import { checkName } from '../dns/wire/name.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import { looksLikeId } from '../service/claims.ts'
import type { Settings } from '../settings/settings.ts'
import { commandWith } from '../settings/suggested-commands.ts'
import { warn } from '../terminal/notices.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import {
  claimsOf,
  isOpenEntry,
  issuerIn,
  type LedgerContext,
  type LedgerEntry,
  type LedgerSettings,
  ledgerPages,
  otherProfilesWith,
  readLedger,
  statusOf,
} from './ledger.ts'
import { GONE, nameOf, stateOf } from './lifecycle.ts'

/** The claim that a person means by `<claim>`. */
export interface ResolvedClaim {
  /** The placeholder domain id, which identifies the claim at the service. */
  readonly domainId: string
  /** The ledger's entry, if there is one. */
  readonly entry: LedgerEntry | undefined
  /** If it was found by its name: the ids of the domain's other open claims, the newest first. */
  readonly others?: readonly string[]
  /** If it's a word that was typed and that looks like no id: what to do if the service doesn't know it. */
  readonly notFoundHint?: string
}

type ResolveContext = LedgerContext & Pick<Context, 'prompts' | 'platform'>
type ResolveSettings = LedgerSettings & Pick<Settings, 'interactive'>

/**
 * Resolves a domain name in the ledger (to its newest open claim, or else to its newest one), or else a placeholder domain
 * id. Without an argument, the person picks a claim if there is a terminal.
 *
 * @throws CliError `claim_unknown`, exit 5, for a domain name that is not in the ledger; exit 2 without an argument and a
 *   terminal
 */
export async function resolveClaim(
  argument: string | undefined,
  context: ResolveContext,
  settings: ResolveSettings,
): Promise<ResolvedClaim> {
  const resolved = await resolveClaimOrDomain(
    argument,
    context,
    settings,
    '; to start one: mailclaim claim <domain>',
  )
  if ('domainId' in resolved) return resolved
  const { domain } = resolved
  const elsewhere = await claimElsewhere(domain, context, settings)
  if (elsewhere !== undefined)
    throw new CliError('claim_unknown', Exit.notFound, elsewhere.problem, { hint: elsewhere.hint })
  throw new CliError('claim_unknown', Exit.notFound, `no claim for ${argument} is known on this machine`, {
    hint: `if the claim was created elsewhere, give its placeholder domain id once; to start one: mailclaim claim ${domain}; to see what is in DNS: mailclaim claims check ${domain}`,
  })
}

/**
 * Where this machine knows a claim of the domain, if that's at another service or in another profile: to start another claim here
 * would be a mistake. Undefined if there is none.
 *
 * @param domain in its ASCII form
 * @returns what is wrong, and the command that was typed, for that service or profile
 */
export async function claimElsewhere(
  domain: string,
  context: Pick<Context, 'directories' | 'clock' | 'platform'>,
  settings: Pick<Settings, 'baseUrl' | 'profile' | 'argv'>,
): Promise<{ readonly problem: string; readonly hint: string } | undefined> {
  const { profile, argv } = settings
  const again = (option: string, value: string) => commandWith(argv, { [option]: value }, context.platform)
  const anywhere = await readLedger(context, { profile, baseUrl: undefined }, async () => {}, domain)
  const [claim] = claimsOf(anywhere, domain, context.clock.now())
  const here = issuerIn(settings)
  if (here !== undefined && claim !== undefined) {
    const { issuer } = claim
    return {
      problem: `no claim of ${domain} at ${here} is known on this machine; another service, ${issuer}, has one`,
      hint: `for the claim at ${issuer}: ${again('--base-url', issuer)}`,
    }
  }
  const [other] = await otherProfilesWith(domain, context, settings)
  if (other === undefined) return undefined
  return {
    problem: `profile ${profile.value} has no claim of ${domain}`,
    hint: `profile ${other} has a claim of ${domain}: ${again('--profile', other)}`,
  }
}

/**
 * The names of all claims that were open when the service last answered, by service; with a base URL, only that service's.
 */
export async function openClaims(
  context: Pick<Context, 'directories' | 'clock'>,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const now = context.clock.now()
  const open = new Map<string, Set<string>>()
  for await (const page of ledgerPages(context, settings, async () => {}))
    for (const entry of page) {
      if (!isOpenEntry(entry, now)) continue
      const { issuer, claim } = entry
      open.set(issuer, (open.get(issuer) ?? new Set()).add(claim.name ?? claim.domain_id ?? ''))
    }
  return open
}

/**
 * That no open claim is known at the active service: there is nothing to do, unless the claims are at another one.
 *
 * @returns with a hint if other services have open claims: the command that was typed, for those
 */
export async function noOpenClaims(
  context: Pick<Context, 'directories' | 'clock' | 'platform'>,
  settings: Pick<Settings, 'baseUrl' | 'profile' | 'argv'>,
): Promise<{ readonly problem: string; readonly hint: string | undefined }> {
  const { profile, argv } = settings
  const here = issuerIn(settings)
  const problem = `no open claim${here === undefined ? '' : ` at ${here}`} is known in profile ${profile.value}`
  const others = await openClaims(context, { profile, baseUrl: undefined })
  if (others.size === 0) return { problem, hint: undefined }
  const places = [...others].map(([issuer, { size }]) => `${size} ${size === 1 ? 'is' : 'are'} at ${issuer}`)
  const hints = [...others].map(([issuer, { size }]) => {
    const claims = size === 1 ? 'open claim' : `${size} open claims`
    return `for the ${claims} at ${issuer}: ${commandWith(argv, { '--base-url': issuer }, context.platform)}`
  })
  return { problem: `${problem}; ${places.join(', ')}`, hint: hints.join('\n') }
}

/**
 * As `resolveClaim`, but a domain without a known claim stands for itself. The domain is in its ASCII form.
 *
 * @param start how to start a claim; not for a command that people use on the domains of others
 */
export async function resolveClaimOrDomain(
  argument: string | undefined,
  context: ResolveContext,
  settings: ResolveSettings,
  start = '',
): Promise<ResolvedClaim | { readonly domain: string }> {
  const entries = await readLedger(
    context,
    settings,
    (error) => warn(`${error.message}; skipping it`, context, settings),
    argument === undefined ? undefined : asLedgerKey(argument),
  )
  if (argument === undefined) return pick(entries, context, settings, start)
  const byId = entries.find((entry) => entry.claim.domain_id === argument)
  if (byId !== undefined) return found(byId)
  const name = checkName(argument)
  if (name.ok) {
    const now = context.clock.now()
    const [byName, ...older] = claimsOf(entries, name.ascii, now)
    if (byName === undefined) return { domain: name.ascii }
    const others = older.filter((entry) => isOpenEntry(entry, now)).map((entry) => found(entry).domainId)
    return { ...found(byName), others }
  }
  if (!/^[\w-]{1,128}$/.test(argument)) throw usageError(name.problem, name.fix)
  const resolved = { domainId: argument, entry: undefined }
  if (looksLikeId(argument)) return resolved
  const notFoundHint = `${JSON.stringify(argument)} is not a whole domain name, such as example.com, and not the id of a claim`
  return { ...resolved, notFoundHint }
}

/** The ASCII form of a domain to claim. @throws CliError exit 2 */
export function domainToClaim(text: string): string {
  const name = checkName(text)
  if (name.ok) return name.ascii
  throw usageError(
    name.problem,
    looksLikeId(text) ? `if it is the id of a claim: mailclaim claims verify ${text} --wait` : name.fix,
  )
}

/** The name in its ASCII form, or a placeholder domain id as it is. */
function asLedgerKey(argument: string): string {
  const name = checkName(argument)
  return name.ok ? name.ascii : argument
}

async function pick(
  entries: readonly LedgerEntry[],
  context: ResolveContext,
  settings: ResolveSettings,
  start: string,
): Promise<ResolvedClaim> {
  if (!settings.interactive || entries.length === 0) {
    throw usageError(
      'which claim? give its domain name or placeholder domain id',
      entries.length === 0
        ? `none is known on this machine; to see what is in DNS: mailclaim claims check <domain>${start}`
        : 'to see the claims known on this machine: mailclaim claims list',
    )
  }
  return context.prompts.select({
    message: 'Which claim?',
    choices: entries.map((entry) => ({
      name: sanitizeLine(`${nameOf(entry.claim)}  ${statusOf(entry)}`),
      value: found(entry),
      description: sanitizeLine(entry.gone_at === null ? stateOf(entry.claim).description : GONE),
    })),
  })
}

function found(entry: LedgerEntry): ResolvedClaim {
  // Every claim in the ledger has an id.
  return { domainId: entry.claim.domain_id ?? '', entry }
}
