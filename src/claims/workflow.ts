import { type CheckReport, exitErrorOf } from '../dns/report.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { follow } from '../service/follow.ts'
import { unexpectedAnswer } from '../service/problems.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { clip } from '../terminal/sanitize.ts'
import { createDeadline, stepTimeout } from '../timeout.ts'
import type { CLAIM_EVENTS } from './definition.ts'
import { asciiName, claimsNamed } from './ledger.ts'
import { asArgument, judge, nameOf } from './lifecycle.ts'
import { askToVerify, briefly, type ClaimAccess, claimUnknown, fetchClaim, startClaim } from './load.ts'
import type { Publish } from './publish.ts'
import { recordOf, wantedBy } from './record.ts'
import { type CheckOptions, checkOnce, isWorthVerifying, notInTime, watchDns } from './watch-dns.ts'

/** What a command tells of its work on a claim: a step that is done, a wait, a warning, or the end. */
export interface ClaimEvent {
  readonly event: keyof typeof CLAIM_EVENTS
  readonly claim: DomainClaim
  /** For people. */
  readonly text: string
  /** While it waits for DNS. */
  readonly report?: CheckReport | undefined
  /** The milliseconds until the next check of DNS. */
  readonly nextInMs?: number
  /** What a warning is about; why the claim isn't completed. */
  readonly error?: CliError | undefined
  /** What people may have to do first. */
  readonly hint?: string | undefined
  /** The open claim that the service may have ended in favor of a new one. */
  readonly earlier?: DomainClaim
}

/** How the work on a claim ended. */
export interface ClaimEnd {
  readonly claim: DomainClaim
  /** Why it isn't completed: exit 9 if it ended or is blocked, exit 8 when the time is up; or why publishing failed. */
  readonly error?: CliError | undefined
  /** The last check that didn't show the record. */
  readonly report?: CheckReport | undefined
}

export type ClaimEvents = AsyncGenerator<ClaimEvent, ClaimEnd, void>

/** The work on one claim, with what it uses. */
export interface ClaimWork extends ClaimAccess {
  readonly options: ClaimOptions
}

/** How a claim is worked on; whether is no if it isn't said. */
export interface ClaimOptions extends CheckOptions {
  /** Whether to keep waiting while the claim is blocked. */
  readonly throughBlocked?: boolean
  /** Whether DNS is checked before the service is asked to verify. */
  readonly check?: boolean
  /** Whether to end, rather than start a claim, if the known one has ended or is gone. */
  readonly resumeOnly?: boolean
  /** Adds the record to DNS. */
  readonly publish?: Publish | undefined
}

/** Milliseconds between polls of a claim, and right after a verification request, which often takes only a second or two. */
const WATCH_DELAYS = { first: 2000, max: 30_000 } as const
const VERIFYING_DELAYS = { first: 1000, steady: 3, max: 30_000 } as const
/** How long to wait for name servers that don't have the record yet, in milliseconds. */
const MAX_LAG_MS = 10 * 60 * 1000
/** Characters of a TXT value in a message. */
const MAX_TEXT = 255

/**
 * Runs a claim from start to finish: creates it or resumes the one in progress, waits until DNS has the record, asks the service to
 * verify, and follows the claim until it is settled. It can be interrupted and run again at any point: the ledger and the service
 * know how far it got. A claim that a newer one replaced isn't started again: that would end the newer one, which may be somebody
 * else's.
 *
 * @throws CliError what the operations throw; exit 5 with `resumeOnly` if there is no claim
 */
export async function* runClaim(
  request: ClaimRequest,
  options: ClaimOptions,
  client: ServiceClient,
  io: Io,
): ClaimEvents {
  const claim = yield* createOrResume(request, options, client, io)
  const name = asciiName(request.name)
  const known = { domainId: claim.domain_id ?? '', name, entry: undefined }
  const work = { known, options, client, io }
  if (!judge(claim, io.clock.now()).isOpen) return yield* followClaim(work, claim)
  const record = recordOf(claim, name)
  yield { event: 'record', claim, text: `TXT  ${record.name}  ${record.value}` }
  if (!needsRecord(claim, io)) return yield* followClaim(work, claim)
  if (options.publish !== undefined) {
    const done = await options.publish(record).catch((failure: unknown) => {
      if (failure instanceof CliError && !(failure instanceof InterruptedError)) return failure
      throw failure
    })
    if (done instanceof CliError) return { claim, error: done }
    yield { event: 'published', claim, text: done }
  }
  const seen = options.check ? yield* waitForDns(claim, work) : { claim }
  if (seen.error !== undefined) return seen
  return yield* needsRecord(seen.claim, io) ? verifyAndFollow(work, seen) : followClaim(work, seen.claim)
}

const needsRecord = (claim: DomainClaim, { clock }: Io): boolean => judge(claim, clock.now()).needsRecord

/** The claim in progress, as the ledger or the service knows it, or a new one, with its event. */
async function* createOrResume(
  request: ClaimRequest,
  { resumeOnly, deadline }: ClaimOptions,
  client: ServiceClient,
  io: Io,
): AsyncGenerator<ClaimEvent, DomainClaim, void> {
  const { name, region } = request
  const [entry] = await claimsNamed(name, io)
  // An open claim in another region than the one asked for isn't resumed.
  const isElsewhere =
    !resumeOnly &&
    entry !== undefined &&
    judge(entry.claim, io.clock.now()).isOpen &&
    (entry.claim.region ?? region) !== (region ?? entry.claim.region)
  if (entry !== undefined && !isElsewhere) {
    const known = { domainId: entry.claim.domain_id ?? '', name, entry }
    const claim = await fetchClaim({ known, client, io }, { timeoutMs: stepTimeout(deadline) }).catch(
      (error: unknown) => {
        if (!resumeOnly && error instanceof CliError && error.exit === Exit.notFound) return undefined
        throw error
      },
    )
    const { phase, text } = judge(claim ?? entry.claim, io.clock.now())
    const isRestarted = (phase === 'expired' || phase === 'ended') && !resumeOnly
    if (claim && !isRestarted) return yield* goOn(request, claim, `resumed: ${text}`)
  }
  if (resumeOnly) throw await claimUnknown(name, `to start one: mailclaim claim ${name}`, io)
  const claim = yield* beginClaim(request, entry?.claim, client, io)
  if (!claim.domain_id)
    throw unexpectedAnswer(`it sent no domain_id for ${nameOf(claim)}, so the claim can't be followed`)
  return claim
}

/** Starts a claim, which the service may already have. @param before the one that this machine knows, open or not */
export async function* beginClaim(
  request: ClaimRequest,
  before: DomainClaim | undefined,
  client: ServiceClient,
  io: Io,
): AsyncGenerator<ClaimEvent, DomainClaim, void> {
  const earlier = before !== undefined && judge(before, io.clock.now()).isOpen ? before : undefined
  const { claim, created } = await startClaim(request, client, io)
  if (!created) return yield* goOn(request, claim, 'the claim was already pending')
  const value = earlier === undefined ? before?.record?.value : undefined
  const after = value ? `; remove the TXT value "${clip(value, MAX_TEXT)}" of the earlier one` : ''
  yield { event: 'created', claim, text: `a new claim${after}`, ...(earlier && { earlier }) }
  if (earlier !== undefined) {
    const why = `an open claim of ${nameOf(earlier)} may end in favor of this one`
    yield { event: 'warning', claim, text: why, error: new CliError('claim_replaced', why) }
  }
  return claim
}

/** Goes on with a claim that already exists, and warns of options that have no effect on it: the service shows only its region. */
function* goOn(
  request: ClaimRequest,
  claim: DomainClaim,
  text: string,
): Generator<ClaimEvent, DomainClaim, void> {
  yield { event: 'created', claim, text }
  const why = withoutEffect(request, claim)
  if (why !== undefined)
    yield { event: 'warning', claim, text: why, error: new CliError('options_ignored', why) }
  return claim
}

/** Which options of a request do nothing to a claim that already exists, if any. */
export function withoutEffect({ name: _, ...options }: ClaimRequest, { region }: DomainClaim) {
  const flags = Object.entries(options)
    .filter(([key, value]) => key !== 'region' || value !== region)
    .map(([key, value]) => `--${value === false ? 'no-' : ''}${key.replaceAll('_', '-')}`)
  return flags.length === 0 ? undefined : `no effect on a claim that already exists: ${flags.join(', ')}`
}

/**
 * Waits until the record is in DNS, or there is no point in waiting.
 *
 * @returns the claim, which may no longer need the record, and the last check if that didn't show it; with an error if the time is up
 */
async function* waitForDns(begun: DomainClaim, work: ClaimWork): ClaimEvents {
  const { options, io } = work
  const { clock } = io
  const lag = createDeadline(Math.min(MAX_LAG_MS, options.deadline.remainingMs() / 2), clock)
  const read = () =>
    fetchClaim(work, briefly(options.deadline)).catch((error: unknown) => {
      if (error instanceof CliError && (error.exit === Exit.unavailable || error.exit === Exit.refused))
        return undefined
      throw error
    })
  let last: ClaimEnd = { claim: begun }
  for await (const step of watchDns(wantedBy(begun, work.known.name), { claim: begun, read }, options, io)) {
    const { report, claim = begun, nextInMs, news: text } = step
    if (!needsRecord(claim, io)) return { claim }
    const failure = exitErrorOf(report)
    if (failure === undefined) {
      yield { event: 'dns', claim, text: `the record is visible at ${report.name}` }
      return { claim }
    }
    last = { claim, error: notInTime(failure, options.deadline), report }
    if (report.verdict === 'unknown' || isWorthVerifying(report, lag.remainingMs() <= 0)) {
      const text = `${failure.message}; asking the service anyway`
      yield { event: 'warning', claim, text, error: failure, hint: failure.hint }
      return { claim, report }
    }
    if (text !== undefined)
      yield { event: 'waiting', claim, text, report, ...(nextInMs !== null && { nextInMs }) }
  }
  return last
}

/**
 * Asks the service to verify the claim, again after failures of the network, until the time is up (asking twice does no harm), and
 * follows it until it is settled.
 */
async function* verifyAndFollow(work: ClaimWork, { claim, report }: ClaimEnd): ClaimEvents {
  const { options, io } = work
  const events = follow<DomainClaim>(
    {
      ...options,
      delays: WATCH_DELAYS,
      known: claim,
      fetch: (request) => askToVerify(work, claim, request),
      describe: (seen) =>
        seen === claim
          ? { status: 'unasked', text: 'the service has confirmed no request to verify it' }
          : { status: 'asked', text: 'verification requested', end: {} },
      timeout: () => ({
        code: 'claim_in_flight',
        what: nameOf(claim),
        hint: `to ask again: mailclaim claims verify${asArgument(claim)} --wait`,
      }),
    },
    io,
  )
  for (;;) {
    const { done, value: step } = await events.next()
    if (done && step.error !== undefined) return { claim, error: step.error, report }
    if (done) return { ...(yield* followClaim(work, step.value)), report }
    const { value, event, text, error } = step
    yield { event: event === 'done' ? 'verification' : event, claim: value, text, error }
  }
}

/**
 * Follows a claim until it is completed, blocked (unless `throughBlocked`) or ended.
 *
 * @param first the claim if the service has just been asked to verify it
 */
export async function* followClaim(work: ClaimWork, first?: DomainClaim): ClaimEvents {
  const { options, io } = work
  // Its status is the same before and after that.
  const maybeUnasked = ({ status }: DomainClaim) => first === undefined && status === 'pending'
  let next = first
  const events = follow<DomainClaim>(
    {
      ...options,
      delays: first === undefined ? WATCH_DELAYS : VERIFYING_DELAYS,
      async fetch(request) {
        const claim = next ?? (await fetchClaim(work, request))
        next = undefined
        return claim
      },
      describe(claim) {
        const { phase, isOpen, text, error } = judge(claim, io.clock.now())
        const isEnd = !isOpen || (phase === 'blocked' && !options.throughBlocked)
        const isAsked = first !== undefined && phase === 'pending' && !claim.failure_reason
        return {
          status: `${claim.status} ${claim.blocked_reason} ${claim.failure_reason} ${phase}`,
          text: isAsked ? 'waiting for the service to check the TXT record' : text,
          ...(isEnd && { end: { error } }),
        }
      },
      timeout: (claim) => ({
        code: 'claim_in_flight',
        what: nameOf(claim),
        hint: maybeUnasked(claim)
          ? askFirst(claim)
          : `it continues; to keep watching: mailclaim claims watch${asArgument(claim)}${options.throughBlocked ? ' --through-blocked' : ''}`,
      }),
    },
    io,
  )
  for (;;) {
    const { done, value: step } = await events.next()
    if (done) return { claim: step.value, error: step.error }
    const { value: claim, ...event } = step
    const isFirst = event.event === 'status' && maybeUnasked(claim)
    yield { ...event, claim, ...(isFirst && { hint: askFirst(claim) }) }
  }
}

/** What to do about a claim that the service never looks at if nobody asks it to. */
const askFirst = (claim: DomainClaim): string =>
  `if the service hasn't been asked to verify it: mailclaim claims verify${asArgument(claim)} --wait`

/**
 * Checks DNS once, asks the service to verify, and with `wait` follows the claim. A mistake in the record stops it before the service
 * is asked; what only this machine can't see, or caches still have, doesn't.
 */
export async function* verifyClaimOf(work: ClaimWork): ClaimEvents {
  const { known, options, io } = work
  const { clock } = io
  const before = await fetchClaim(work, { timeoutMs: stepTimeout(options.deadline) })
  const { phase, isOpen, text, error } = judge(before, clock.now())
  if (!isOpen || phase === 'accepted') {
    if (options.wait) return yield* followClaim(work, before)
    yield { event: isOpen ? 'verification' : 'done', claim: before, text, error }
    return { claim: before, error }
  }
  let unseen: CheckReport | undefined
  if (options.check) {
    const report = await checkOnce(wantedBy(before, known.name), options, io)
    const failure = exitErrorOf(report)
    if (report.verdict === 'fix') {
      const message = `${failure?.message}; the service wasn't asked to verify`
      return { claim: before, error: failure?.with({ message }), report }
    }
    unseen = failure && report
    if (failure === undefined)
      yield { event: 'dns', claim: before, text: `the record is visible at ${report.name}` }
    else {
      const { hint } = failure
      yield { event: 'warning', claim: before, text: `DNS: ${failure.message}`, error: failure, hint }
    }
  }
  // A blocked claim is asked about as well: the service may have lifted the block.
  if (options.wait) return yield* verifyAndFollow(work, { claim: before, report: unseen })
  const claim = await askToVerify(work, before)
  const after = judge(claim, clock.now())
  yield { event: 'verification', claim, text: 'verification requested' }
  if (after.phase === 'completed' || after.error !== undefined)
    yield { event: 'done', claim, text: after.text, error: after.error }
  return { claim, error: after.error, report: unseen }
}
