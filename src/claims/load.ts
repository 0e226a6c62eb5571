import { parseDomainName } from '../dns/wire/name.ts'
import { CliError, Exit, InterruptedError, usageError } from '../errors.ts'
import { createOrGetClaim, fetchLatestClaim, isUuid, requestClaimVerification } from '../service/claims.ts'
import type { RequestLimits, ServiceClient } from '../service/client.ts'
import { WrongResourceError } from '../service/problems.ts'
import type { CreateClaimRequest, DomainClaim } from '../service/types.ts'
import { openClient } from '../session/client.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { clip, sanitizeLine } from '../terminal/sanitize.ts'
import { formatRelativeTime } from '../terminal/time.ts'
import { type Deadline, remainingMsOrMin } from '../timeout.ts'
import {
  describeLedger,
  findClaimByDomainId,
  findClaimsByDomain,
  getBaseUrlIfSet,
  type LedgerEntry,
  locateInOtherLedgers,
  readAllClaims,
  toComparableDomain,
  trySaveClaim,
} from './ledger.ts'
import { describeDomain, domainArg, getClaimState } from './lifecycle.ts'
import { requireRecord } from './record.ts'

/** A claim to work on, by its `domain_id`; with its domain and its ledger entry if they are known. */
export interface ClaimTarget {
  /**
   * The claim's `domain_id`: the id of the domain that the service created with the claim. Paths of claim operations contain it,
   * not the claim's `id`.
   */
  readonly domainId: string
  /**
   * The claim's domain, as `toComparableDomain` returns it; a response with another name is refused. Undefined if only the id is
   * known, until a response has the name.
   */
  name: string | undefined
  /** The ledger's entry of the claim; undefined if the ledger has none or wasn't read. */
  readonly entry: LedgerEntry | undefined
}

/**
 * Finds the newest claim of a domain, or the claim with a `domain_id`; lets the user pick a claim if the argument is missing.
 * Accepts an id that the ledger doesn't have, because the claim may have been created on another machine.
 *
 * @throws CliError `claim_unknown`, exit 5, for a domain without a claim in the ledger; exit 2 as `resolveToClaimOrDomain`
 */
export async function findClaim(argument: string | undefined, io: Io): Promise<ClaimTarget> {
  const found = await resolveToClaimOrDomain(argument, io)
  if ('domainId' in found) return found
  const hint =
    'if it was made elsewhere, give its domain_id once; to list known claims: mailclaim claims list'
  throw await unknownClaimError(found.domain, hint, io)
}

/**
 * Returns the error for a claim that the ledger in use doesn't have. If other ledgers on this machine have a claim of the domain,
 * the error's hint names them.
 *
 * @param domain the claim's domain, or its `domain_id` if the user gave that
 * @param hint used if no other ledger has a claim of the domain
 */
export async function unknownClaimError(domain: string, hint: string, io: Io): Promise<CliError> {
  const others = await locateInOtherLedgers((other) => findClaimsByDomain(domain, other), io)
  return new CliError('claim_unknown', `no claim of ${domain} is known ${describeLedger(io)}`, {
    hint: others.length === 0 ? hint : `there is one ${others.join(', ')}`,
  })
}

/**
 * Finds a claim as `findClaim`, or returns the ASCII form of a domain without a claim in the ledger.
 *
 * @throws CliError exit 2 for an argument that can't be a domain or an id, or for a missing argument if the user can't pick a
 *   claim
 */
export async function resolveToClaimOrDomain(
  argument: string | undefined,
  io: Io,
): Promise<ClaimTarget | { readonly domain: string }> {
  const onDamaged = (error: CliError) => io.warn(`${error.message}; skipping it`)
  if (argument === undefined) return pick(await readAllClaims(io, onDamaged), io)
  const name = parseDomainName(argument)
  const byName = name.ok ? (await findClaimsByDomain(name.ascii, io, onDamaged))[0] : undefined
  if (name.ok && byName !== undefined) return { ...toTarget(byName), name: name.ascii }
  const byId = await findClaimByDomainId(argument, io, onDamaged)
  if (byId !== undefined) return toTarget(byId)
  // An argument that is neither a domain name nor a UUID may still be an id. Without a base URL, there is no service that could
  // know the id, so report the malformed domain name below.
  const isId = !name.ok && getBaseUrlIfSet(io.settings) !== undefined && /^[\w-]{1,128}$/.test(argument)
  if (isId || isUuid(argument)) return { domainId: argument, name: undefined, entry: undefined }
  if (name.ok) return { domain: name.ascii }
  throw usageError(name.problem, name.fix)
}

/** Parses a domain name into its ASCII form (A-labels). @throws CliError exit 2 for an invalid name */
export function parseDomain(text: string): string {
  const name = parseDomainName(text)
  if (name.ok) return name.ascii
  const hint = isUuid(text) ? `to continue with that claim: mailclaim claims verify ${text} --wait` : name.fix
  throw usageError(name.problem, hint)
}

export function toTarget(entry: LedgerEntry): ClaimTarget {
  const { name, domain_id } = entry.claim
  // The ledger saves only claims with a `domain_id`, so the empty string is never used; the type allows claims without it.
  return { domainId: domain_id ?? '', name: name ? toComparableDomain(name) : undefined, entry }
}

/** Lets the user pick a claim. @throws CliError exit 2 if the command isn't interactive or the ledger is empty */
async function pick(entries: readonly LedgerEntry[], io: Io): Promise<ClaimTarget> {
  if (!io.settings.interactive || entries.length === 0)
    throw usageError(
      'which claim? give its domain name or its domain_id',
      entries.length > 0
        ? 'to list known claims: mailclaim claims list'
        : `none is known ${describeLedger(io)}; to see what is in DNS: mailclaim claims check example.com`,
    )
  const now = io.clock.now()
  const choices = entries.map((entry) => ({
    name: sanitizeLine(`${describeDomain(entry.claim)}  ${entry.claim.status ?? ''}`),
    value: toTarget(entry),
    description: sanitizeLine(getClaimState(entry.claim, now).text),
  }))
  return io.prompts.select({ message: 'Which claim?', choices })
}

/**
 * Checks that a response is about the requested claim, and saves the claim in the ledger. A missing name or id isn't a mismatch.
 * If `target` has no name, sets it from the response, so that a later response with another name is refused.
 *
 * @returns the claim, with the name of `target` if the response has none
 * @throws CliError `unexpected_answer`, exit 7, for another claim
 */
async function acceptResponse(answer: DomainClaim, target: Partial<ClaimTarget>, io: Io) {
  const { name, domainId } = target
  if (name !== undefined && answer.name && toComparableDomain(answer.name) !== name)
    throw new WrongResourceError(`asked for the claim of ${name}, got that of ${clip(answer.name, 255)}`)
  if (domainId !== undefined && answer.domain_id && answer.domain_id !== domainId)
    throw new WrongResourceError(
      `asked for the claim ${domainId}, got the claim ${clip(answer.domain_id, 255)}`,
    )
  if (answer.name) target.name ??= toComparableDomain(answer.name)
  const claim = answer.name || target.name === undefined ? answer : { ...answer, name: target.name }
  await trySaveClaim(claim, io)
  return claim
}

/** The client for requests to the service, with the `Io` for the ledger, the clock and warnings. */
export interface ClientWithIo {
  readonly client: ServiceClient
  readonly io: Io
}

/** A claim to work on, with the client for requests about it and the `Io`. */
export interface ClaimTargetWithClient extends ClientWithIo {
  readonly target: ClaimTarget
}

/** Gets the claim from the service, and saves it in the ledger. @throws CliError as `fetchLatestClaim` and `acceptResponse` */
export async function refreshClaim(
  { target, client, io }: ClaimTargetWithClient,
  options?: RequestLimits,
): Promise<DomainClaim> {
  const answer = await fetchLatestClaim(client, target.domainId, options).catch((error: unknown) => {
    throw isNotFoundError(error) && target.entry !== undefined ? goneError(target.entry.claim, error) : error
  })
  return acceptResponse(answer, target, io)
}

/**
 * Creates a claim at the service, and saves the claim in the ledger. The hint of a conflict (409) tells how to continue a claim
 * that another machine has created.
 *
 * @returns `claim`: the claim; `created`: whether it is new, false if the service responded with an existing claim (200)
 * @throws CliError as `createOrGetClaim`, `acceptResponse` and `requireRecord`
 */
export async function claimDomain(request: CreateClaimRequest, { client, io }: ClientWithIo) {
  try {
    const { claim: answer, created } = await createOrGetClaim(client, request)
    const name = toComparableDomain(request.name)
    const claim = await acceptResponse(answer, { name }, io)
    // Refuse the claim's record if it is invalid, before it is printed: otherwise a script could take a record outside of the
    // domain from the JSON output, and add it to DNS.
    if (getClaimState(claim, io.clock.now()).needsRecord) requireRecord(claim, name)
    return { claim, created }
  } catch (error) {
    if (!(error instanceof CliError) || error.status !== 409) throw error
    const hint =
      'if another machine has claimed it, continue with its domain_id: mailclaim claims get DOMAIN_ID'
    throw error.with({ hint })
  }
}

/**
 * Sends a verification request, and saves the claim in the ledger. The service may refuse because verification is already running
 * or finished, so after a refusal, gets the claim, and returns it if its status has changed.
 *
 * @param before the claim as last seen
 * @throws CliError the refusal, if the status hasn't changed or can't be read; exit 5 if the service no longer has the claim;
 *   other errors of the request
 */
export async function requestVerification(
  access: ClaimTargetWithClient,
  before: DomainClaim,
  options?: RequestLimits,
): Promise<DomainClaim> {
  const { target, client, io } = access
  try {
    return await acceptResponse(await requestClaimVerification(client, target.domainId, options), target, io)
  } catch (refusal) {
    if (isNotFoundError(refusal)) throw goneError(before, refusal)
    if (!(refusal instanceof CliError) || refusal.exit !== Exit.refused) throw refusal
    const claim = await refreshClaim(access, options).catch((error: unknown) => {
      throw error instanceof InterruptedError || isNotFoundError(error) ? error : refusal
    })
    if (claim.status === before.status) throw refusal
    return claim
  }
}

/** Whether an error has exit 5, as for a claim that the service doesn't have (404). */
export const isNotFoundError = (error: unknown): error is CliError =>
  error instanceof CliError && error.exit === Exit.notFound

/** Returns a 404 error with its message and hint replaced: they say that the service no longer has the claim. */
function goneError(claim: DomainClaim, error: CliError): CliError {
  const message = `the service no longer has the claim of ${describeDomain(claim)}`
  const hint = `its placeholder domain may have been deleted; to start another: mailclaim claims create${domainArg(claim)}`
  return error.with({ message, hint })
}

const BEST_EFFORT_TIMEOUT_MS = 5000
/**
 * Milliseconds in which a `ClaimReader` returns ledger copies without a request, after a failure that other requests
 * would probably share.
 */
const FAILURE_PAUSE_MS = 30_000

/** Returns the options of a request whose response the command can do without: one attempt with a short timeout. */
export const bestEffortOptions = (deadline: Deadline | undefined): RequestLimits => ({
  maxAttempts: 1,
  timeoutMs: Math.min(
    BEST_EFFORT_TIMEOUT_MS,
    deadline === undefined ? BEST_EFFORT_TIMEOUT_MS : remainingMsOrMin(deadline),
  ),
})

/**
 * Function that gets a claim from the service, or from the ledger if the request fails or none is needed. Throws the error of a
 * failed request if the ledger has no copy, the service no longer has the claim, or the response is unusable.
 */
export type ClaimReader = (target: ClaimTarget, deadline?: Deadline) => Promise<DomainClaim>

/**
 * Creates a `ClaimReader`, for commands that also work with the ledger's copies. A claim that was completed when last
 * seen isn't requested again. A failed request can pause further ones, so that a service that is down doesn't delay each claim.
 * The first ledger copy returned after a failed request causes a warning, later ones don't.
 *
 * @param renews whether an expired access token may be renewed
 * @param warn prints the warning, if `io` prints none because it belongs to a run over several domains
 */
export function createClaimReader(
  io: Io,
  { renews, warn = io.warn }: { readonly renews: boolean; readonly warn?: Io['warn'] },
): ClaimReader {
  let client: ServiceClient | undefined
  let pauseEnd = Number.NEGATIVE_INFINITY
  let isWarned = false
  const { clock } = io
  return async (target, deadline) => {
    const { entry } = target
    const isCompleted = entry !== undefined && getClaimState(entry.claim, clock.now()).phase === 'completed'
    if (entry !== undefined && (isCompleted || clock.monotonic() < pauseEnd)) return entry.claim
    try {
      client ??= openClient(createIo(io, { ...io.settings, quiet: true, silent: true }), { renews })
      return await refreshClaim({ target, client, io }, entry && bestEffortOptions(deadline))
    } catch (error) {
      if (!(error instanceof CliError) || error instanceof InterruptedError || entry === undefined)
        throw error
      if (error.exit === Exit.notFound || error.code === 'unexpected_answer') throw error
      if (error.exit !== Exit.refused) pauseEnd = clock.monotonic() + FAILURE_PAUSE_MS
      const { claim, seen_at } = entry
      if (isWarned) return claim
      isWarned = true
      const seen = formatRelativeTime(Date.parse(seen_at), clock.now())
      await warn(
        `couldn't ask the service about the claim of ${describeDomain(claim)}, last seen ${seen}: ${error.message}`,
      )
      return claim
    }
  }
}
