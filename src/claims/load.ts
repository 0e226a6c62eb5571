import { checkName } from '../dns/wire/name.ts'
import { CliError, Exit, InterruptedError, usageError } from '../errors.ts'
import { createClaim, getClaim, isUuid, verifyClaim } from '../service/claims.ts'
import type { RequestOptions, ServiceClient } from '../service/client.ts'
import { MismatchError } from '../service/problems.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { clip, sanitizeLine } from '../terminal/sanitize.ts'
import { relativeTime } from '../terminal/time.ts'
import { type Deadline, timeFor } from '../timeout.ts'
import {
  asciiName,
  claimsNamed,
  claimWithId,
  everyClaim,
  issuerIn,
  type LedgerEntry,
  ledgerInForce,
  otherLedgers,
  remember,
} from './ledger.ts'
import { asArgument, judge, nameOf } from './lifecycle.ts'
import { recordOf } from './record.ts'

/** The claim that a person means by `<claim>`. */
export interface KnownClaim {
  /** The placeholder domain id, which identifies the claim at the service. */
  readonly domainId: string
  /** The domain's name in its ASCII form, if it was typed or the ledger has it: that of every answer has to be the same. */
  name: string | undefined
  /** What the ledger has of it. */
  readonly entry: LedgerEntry | undefined
}

/** The claim by its name or its id; picked from a list if nothing was typed. @throws CliError `claim_unknown`, exit 5; exit 2 */
export async function findClaim(argument: string | undefined, io: Io): Promise<KnownClaim> {
  const found = await findClaimOrDomain(argument, io)
  if ('domainId' in found) return found
  const { domain } = found
  throw await claimUnknown(
    domain,
    'if it was made elsewhere, give its domain_id once; to list known claims: mailclaim claims list',
    io,
  )
}

/** No claim of the domain is known in the profile in force. @param hint what to do if it isn't known in another one either */
export async function claimUnknown(domain: string, hint: string, io: Io): Promise<CliError> {
  const others = await otherLedgers((other) => claimsNamed(domain, other), io)
  return new CliError('claim_unknown', `no claim of ${domain} is known ${ledgerInForce(io)}`, {
    hint: others.length === 0 ? hint : `there is one ${others.join(', ')}`,
  })
}

/** As `findClaim`, but a domain without a known claim stands for itself, in its ASCII form. @throws CliError exit 2 */
export async function findClaimOrDomain(
  argument: string | undefined,
  io: Io,
): Promise<KnownClaim | { readonly domain: string }> {
  const onDamaged = (error: CliError) => io.warn(`${error.message}; skipping it`)
  if (argument === undefined) return pick(await everyClaim(io, onDamaged), io)
  const name = checkName(argument)
  const byName = name.ok ? (await claimsNamed(name.ascii, io, onDamaged))[0] : undefined
  if (name.ok && byName !== undefined) return { ...knownOf(byName), name: name.ascii }
  const byId = await claimWithId(argument, io, onDamaged)
  if (byId !== undefined) return knownOf(byId)
  if (isUuid(argument)) return { domainId: argument, name: undefined, entry: undefined }
  if (name.ok) return { domain: name.ascii }
  // Without a service there is none that could know it as an id.
  if (issuerIn(io.settings) !== undefined && /^[\w-]{1,128}$/.test(argument))
    return { domainId: argument, name: undefined, entry: undefined }
  throw usageError(name.problem, name.fix)
}

/** The ASCII form of a domain to claim. @throws CliError exit 2 */
export function parseDomain(text: string): string {
  const name = checkName(text)
  if (name.ok) return name.ascii
  const hint = isUuid(text) ? `to continue with that claim: mailclaim claims verify ${text} --wait` : name.fix
  throw usageError(name.problem, hint)
}

/** The claim that the ledger has. */
export function knownOf(entry: LedgerEntry): KnownClaim {
  const { name, domain_id } = entry.claim
  // Every claim in the ledger has an id.
  return { domainId: domain_id ?? '', name: name ? asciiName(name) : undefined, entry }
}

async function pick(entries: readonly LedgerEntry[], io: Io): Promise<KnownClaim> {
  if (!io.settings.interactive || entries.length === 0)
    throw usageError(
      'which claim? give its domain name or its domain_id',
      entries.length > 0
        ? 'to list known claims: mailclaim claims list'
        : `none is known ${ledgerInForce(io)}; to see what is in DNS: mailclaim claims check example.com`,
    )
  const now = io.clock.now()
  const choices = entries.map((entry) => ({
    name: sanitizeLine(`${nameOf(entry.claim)}  ${entry.claim.status ?? ''}`),
    value: knownOf(entry),
    description: sanitizeLine(judge(entry.claim, now).text),
  }))
  return io.prompts.select({ message: 'Which claim?', choices })
}

/**
 * Refuses a claim that isn't the one asked for: its name counts in lower case, A-labels, without the final dot. What the service
 * doesn't send can't differ. Asked for by its id alone, the first name that comes is the one that counts from then on.
 *
 * @returns the claim, with the name that is known if the service doesn't send it
 * @throws CliError `unexpected_answer`, exit 7
 */
function requireAsked(
  claim: DomainClaim,
  known: Partial<Pick<KnownClaim, 'name' | 'domainId'>>,
): DomainClaim {
  const { name, domainId } = known
  if (name !== undefined && claim.name && asciiName(claim.name) !== name)
    throw new MismatchError(`asked for the claim of ${name}, got that of ${clip(claim.name, 255)}`)
  if (domainId !== undefined && claim.domain_id && claim.domain_id !== domainId)
    throw new MismatchError(`asked for the claim ${domainId}, got the claim ${clip(claim.domain_id, 255)}`)
  if (claim.name) known.name ??= asciiName(claim.name)
  return claim.name || known.name === undefined ? claim : { ...claim, name: known.name }
}

/** A claim at the service that is asked about it. */
export interface ClaimAccess {
  readonly known: KnownClaim
  readonly client: ServiceClient
  readonly io: Io
}

/** Gets the claim from the service, and saves it. @throws CliError as `getClaim`; exit 5 names a claim that this machine has seen */
export async function fetchClaim(
  { known, client, io }: ClaimAccess,
  options?: RequestOptions,
): Promise<DomainClaim> {
  const answer = await getClaim(client, known.domainId, options).catch((error: unknown) => {
    throw isGone(error) && known.entry !== undefined ? goneError(known.entry.claim, error) : error
  })
  const claim = requireAsked(answer, known)
  await remember(claim, io)
  return claim
}

/**
 * Starts a claim, and saves it. A conflict (409) is never taken for success, since the interface doesn't say which there are; its
 * hint says how to find the claim of an earlier run.
 *
 * @returns the claim, and whether it is new
 * @throws CliError as `createClaim`; exit 7 if it isn't the one asked for, or as `recordOf`
 */
export async function startClaim(
  request: ClaimRequest,
  client: ServiceClient,
  io: Io,
): Promise<{ readonly claim: DomainClaim; readonly created: boolean }> {
  try {
    const { claim: answer, created } = await createClaim(client, request)
    const name = asciiName(request.name)
    const claim = requireAsked(answer, { name })
    await remember(claim, io)
    // Nobody is told to add a record that the service has no business to ask for.
    if (judge(claim, io.clock.now()).needsRecord) recordOf(claim, name)
    return { claim, created }
  } catch (error) {
    if (!(error instanceof CliError) || error.status !== 409) throw error
    const hint =
      'if another machine has claimed it, continue with its domain_id: mailclaim claims get DOMAIN_ID'
    throw error.with({ hint })
  }
}

/**
 * Asks the service to verify the claim, and saves it. A refusal may only say that this already runs or is done: then the claim
 * has moved.
 *
 * @throws CliError the refusal if its status is still the same
 */
export async function askToVerify(
  access: ClaimAccess,
  before: DomainClaim,
  options?: RequestOptions,
): Promise<DomainClaim> {
  const { known, client, io } = access
  try {
    const claim = requireAsked(await verifyClaim(client, known.domainId, options), known)
    await remember(claim, io)
    return claim
  } catch (refusal) {
    if (isGone(refusal)) throw goneError(before, refusal)
    if (!(refusal instanceof CliError) || refusal.exit !== Exit.refused) throw refusal
    const claim = await fetchClaim(access, options).catch((error: unknown) => {
      throw error instanceof InterruptedError || isGone(error) ? error : refusal
    })
    if (claim.status === before.status) throw refusal
    return claim
  }
}

const isGone = (error: unknown): error is CliError =>
  error instanceof CliError && error.exit === Exit.notFound

function goneError(claim: DomainClaim, error: CliError): CliError {
  const message = `the service no longer has the claim of ${nameOf(claim)}`
  const hint = `its placeholder domain may have been deleted; to start another: mailclaim claims create${asArgument(claim)}`
  return error.with({ message, hint })
}

/** The longest that who can go on with what is known waits for the service, in milliseconds. */
const BRIEF_MS = 5000
/** A service that failed isn't asked about the next claims for this long. */
const PAUSE_MS = 30_000

/** The request of who can go on without an answer. */
export const briefly = (deadline: Deadline | undefined): RequestOptions => ({
  maxAttempts: 1,
  timeoutMs: Math.min(BRIEF_MS, deadline === undefined ? BRIEF_MS : timeFor(deadline)),
})

/** Asks about a claim: as the service has it, or as it was last seen if the service can't be asked. */
export type ClaimReader = (known: KnownClaim, deadline?: Deadline) => Promise<DomainClaim>

/**
 * Asks the service once about each claim for a command that can go on with what the ledger has, with one warning for all that are
 * shown as last seen. A claim that the ledger has as completed isn't asked about.
 *
 * @param renews whether the session may be renewed
 * @param warn says the warning, if `io` is that of one of several domains
 */
export function createClaimReader(
  io: Io,
  { renews, warn = io.warn }: { readonly renews: boolean; readonly warn?: Io['warn'] },
): ClaimReader {
  let client: ServiceClient | undefined
  let pauseEnd = Number.NEGATIVE_INFINITY
  let isWarned = false
  const { clock } = io
  return async (known, deadline) => {
    const { entry } = known
    const isCompleted = entry !== undefined && judge(entry.claim, clock.now()).phase === 'completed'
    if (entry !== undefined && (isCompleted || clock.monotonic() < pauseEnd)) return entry.claim
    try {
      client ??= connect(createIo(io, { ...io.settings, quiet: true, silent: true }), { renews })
      return await fetchClaim({ known, client, io }, entry && briefly(deadline))
    } catch (error) {
      if (!(error instanceof CliError) || error instanceof InterruptedError || entry === undefined)
        throw error
      if (error.exit === Exit.notFound || error.code === 'unexpected_answer') throw error
      if (error.exit !== Exit.refused) pauseEnd = clock.monotonic() + PAUSE_MS
      const { claim, seen_at } = entry
      const seen = relativeTime(Date.parse(seen_at), clock.now())
      const text = `couldn't ask the service about the claim of ${nameOf(claim)}, last seen ${seen}: ${error.message}`
      const isFirst = !isWarned
      isWarned = true
      if (isFirst) await warn(text)
      return claim
    }
  }
}
