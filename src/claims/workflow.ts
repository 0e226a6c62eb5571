import { type CheckReport, exitErrorOf } from '../dns/report.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { follow } from '../service/follow.ts'
import { unexpectedAnswer } from '../service/problems.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { clip } from '../terminal/sanitize.ts'
import { deadlineIn, timeFor } from '../timeout.ts'
import type { CLAIM_EVENTS } from './definition.ts'
import { asciiName, findClaimsByName } from './ledger.ts'
import { asArgument, judge, nameOf } from './lifecycle.ts'
import {
  briefRequest,
  type ClaimAccess,
  fetchClaim,
  isGone,
  requestClaim,
  requestVerification,
  type ServiceAccess,
  unknownClaimError,
} from './load.ts'
import type { Publish } from './publish.ts'
import { expectedRecord, recordOf } from './record.ts'
import { type CheckOptions, checkOnce, isWorthVerifying, toTimeoutError, watchDns } from './watch-dns.ts'

/** What a command tells of its work on a claim: a step that is done, a wait, a warning, or the end. */
export interface ClaimEvent {
  readonly event: keyof typeof CLAIM_EVENTS
  readonly claim: DomainClaim
  /** For people. */
  readonly text: string
  /** While it waits for DNS. */
  readonly report?: CheckReport | undefined
  /** The milliseconds until the next check of DNS. */
  readonly nextInMs?: number | undefined
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

/** Events that end with the claim to work on. */
type ClaimSearch = AsyncGenerator<ClaimEvent, DomainClaim, void>

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
export async function* runClaim(request: ClaimRequest, setup: Omit<ClaimWork, 'known'>): ClaimEvents {
  const { options, io } = setup
  const claim = yield* createOrResume(request, options, setup)
  const name = asciiName(request.name)
  const work = { ...setup, known: { domainId: claim.domain_id ?? '', name, entry: undefined } }
  if (!judge(claim, io.clock.now()).isOpen) return yield* followClaim(work, claim)
  const record = recordOf(claim, name)
  yield { event: 'record', claim, text: `TXT  ${record.name}  ${record.value}` }
  if (!needsRecord(claim, io)) return yield* followClaim(work, claim)
  if (options.publish !== undefined) {
    try {
      yield { event: 'published', claim, text: await options.publish(record) }
    } catch (error) {
      if (!(error instanceof CliError) || error instanceof InterruptedError) throw error
      return { claim, error }
    }
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
  access: ServiceAccess,
): ClaimSearch {
  const { io } = access
  const { name, region } = request
  const [entry] = await findClaimsByName(name, io)
  const isOtherRegion = (entry?.claim.region ?? region) !== (region ?? entry?.claim.region)
  // An open claim in another region than the one asked for isn't resumed.
  const isReplaced = isOtherRegion && entry !== undefined && judge(entry.claim, io.clock.now()).isOpen
  if (entry !== undefined && (resumeOnly || !isReplaced)) {
    const known = { domainId: entry.claim.domain_id ?? '', name, entry }
    const limit = { timeoutMs: timeFor(deadline) }
    const claim = await fetchClaim({ ...access, known }, limit).catch((error: unknown) => {
      if (resumeOnly || !isGone(error)) throw error
    })
    const { phase, text } = judge(claim ?? entry.claim, io.clock.now())
    if (claim && (resumeOnly || (phase !== 'expired' && phase !== 'ended')))
      return yield* continueClaim(request, claim, `resumed: ${text}`)
  }
  if (resumeOnly) throw await unknownClaimError(name, `to start one: mailclaim claim ${name}`, io)
  const claim = yield* startClaim(request, access)
  if (!claim.domain_id)
    throw unexpectedAnswer(`it sent no domain_id for ${nameOf(claim)}, so the claim can't be followed`)
  return claim
}

/** Starts a claim, which the service may already have. @param before the one that this machine knows, open or not */
export async function* startClaim(request: ClaimRequest, access: ServiceAccess): ClaimSearch {
  const { io } = access
  const [before] = await findClaimsByName(request.name, io)
  const earlier =
    before !== undefined && judge(before.claim, io.clock.now()).isOpen ? before.claim : undefined
  const { claim, created } = await requestClaim(request, access)
  if (!created) return yield* continueClaim(request, claim, 'the claim was already pending')
  const value = earlier === undefined ? before?.claim.record?.value : undefined
  const after = value ? `; remove the TXT value "${clip(value, MAX_TEXT)}" of the earlier one` : ''
  yield { event: 'created', claim, text: `a new claim${after}`, ...(earlier && { earlier }) }
  if (earlier !== undefined) {
    const why = `an open claim of ${nameOf(earlier)} may end in favor of this one`
    yield { event: 'warning', claim, text: why, error: new CliError('claim_replaced', why) }
  }
  return claim
}

/** Goes on with a claim that already exists, and warns of options that have no effect on it: the service shows only its region. */
async function* continueClaim(request: ClaimRequest, claim: DomainClaim, text: string): ClaimSearch {
  yield { event: 'created', claim, text }
  const why = describeIgnoredOptions(request, claim)
  if (why !== undefined)
    yield { event: 'warning', claim, text: why, error: new CliError('options_ignored', why) }
  return claim
}

/** Which options of a request do nothing to a claim that already exists, if any. */
export function describeIgnoredOptions({ name: _, ...options }: ClaimRequest, { region }: DomainClaim) {
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
  const lag = deadlineIn(Math.min(MAX_LAG_MS, options.deadline.leftMs() / 2), io.clock)
  const read = () =>
    fetchClaim(work, briefRequest(options.deadline)).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      if (error.exit !== Exit.unavailable && error.exit !== Exit.refused) throw error
      return undefined
    })
  let last: ClaimEnd = { claim: begun }
  for await (const step of watchDns(
    expectedRecord(begun, work.known.name),
    { claim: begun, read },
    options,
    io,
  )) {
    const { report, claim = begun, nextInMs, news: text } = step
    if (!needsRecord(claim, io)) return { claim }
    const failure = exitErrorOf(report)
    if (failure === undefined) {
      yield recordSeen(claim, report)
      return { claim }
    }
    last = { claim, error: toTimeoutError(failure, options.deadline), report }
    if (report.verdict === 'unknown' || isWorthVerifying(report, lag.leftMs() <= 0)) {
      yield dnsWarning(claim, `${failure.message}; asking the service anyway`, failure)
      return { claim, report }
    }
    if (text !== undefined) yield { event: 'waiting', claim, text, report, nextInMs: nextInMs ?? undefined }
  }
  return last
}

const recordSeen = (claim: DomainClaim, { name }: CheckReport): ClaimEvent => {
  return { event: 'dns', claim, text: `the record is visible at ${name}` }
}

const dnsWarning = (claim: DomainClaim, text: string, error: CliError): ClaimEvent => {
  return { event: 'warning', claim, text, error, hint: error.hint }
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
      fetch: (request) => requestVerification(work, claim, request),
      describe: (seen) =>
        seen === claim
          ? { status: 'unasked', text: 'the service has confirmed no request to verify it' }
          : { status: 'asked', text: 'verification requested', end: {} },
      timeout: () => inFlight(claim, `to ask again: mailclaim claims verify${asArgument(claim)} --wait`),
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
      timeout(claim) {
        const flag = options.throughBlocked ? ' --through-blocked' : ''
        const watch = `it continues; to keep watching: mailclaim claims watch${asArgument(claim)}${flag}`
        return inFlight(claim, maybeUnasked(claim) ? askFirst(claim) : watch)
      },
    },
    io,
  )
  for (;;) {
    const { done, value: step } = await events.next()
    if (done) return { claim: step.value, error: step.error }
    const { value: claim, ...event } = step
    const isFirst = event.event === 'status' && maybeUnasked(claim)
    yield { ...event, claim, hint: isFirst ? askFirst(claim) : undefined }
  }
}

const inFlight = (claim: DomainClaim, hint: string) =>
  ({ code: 'claim_in_flight', what: nameOf(claim), hint }) as const

/** What to do about a claim that the service never looks at if nobody asks it to. */
const askFirst = (claim: DomainClaim): string =>
  `if the service hasn't been asked to verify it: mailclaim claims verify${asArgument(claim)} --wait`

/**
 * Checks DNS once, asks the service to verify, and with `wait` follows the claim. A mistake in the record stops it before the service
 * is asked; what only this machine can't see, or caches still have, doesn't.
 */
export async function* checkAndVerify(work: ClaimWork): ClaimEvents {
  const { known, options, io } = work
  const before = await fetchClaim(work, { timeoutMs: timeFor(options.deadline) })
  const { phase, isOpen, text, error } = judge(before, io.clock.now())
  if (!isOpen || phase === 'accepted') {
    if (options.wait) return yield* followClaim(work, before)
    yield { event: isOpen ? 'verification' : 'done', claim: before, text, error }
    return { claim: before, error }
  }
  let unseen: CheckReport | undefined
  if (options.check) {
    const report = await checkOnce(expectedRecord(before, known.name), options, io)
    const failure = exitErrorOf(report)
    if (report.verdict === 'fix') {
      const message = `${failure?.message}; the service wasn't asked to verify`
      return { claim: before, error: failure?.with({ message }), report }
    }
    unseen = failure && report
    yield failure === undefined
      ? recordSeen(before, report)
      : dnsWarning(before, `DNS: ${failure.message}`, failure)
  }
  // A blocked claim is asked about as well: the service may have lifted the block.
  if (options.wait) return yield* verifyAndFollow(work, { claim: before, report: unseen })
  const claim = await requestVerification(work, before)
  const after = judge(claim, io.clock.now())
  yield { event: 'verification', claim, text: 'verification requested' }
  if (after.phase === 'completed' || after.error !== undefined)
    yield { event: 'done', claim, text: after.text, error: after.error }
  return { claim, error: after.error, report: unseen }
}
