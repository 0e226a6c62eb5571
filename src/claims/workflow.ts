import { type CheckReport, exitErrorOf } from '../dns/report.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { followResource } from '../service/follow.ts'
import { invalidResponseError } from '../service/problems.ts'
import type { CreateClaimRequest, DomainClaim } from '../service/types.ts'
import type { Io } from '../terminal/io.ts'
import { clip } from '../terminal/sanitize.ts'
import { createDeadline, remainingMsOrMin } from '../timeout.ts'
import type { CLAIM_EVENT_MEANINGS } from './definition.ts'
import { findClaimsByDomain, toComparableDomain } from './ledger.ts'
import { describeDomain, domainArg, getClaimState } from './lifecycle.ts'
import {
  bestEffortOptions,
  type ClaimTargetWithClient,
  type ClientWithIo,
  claimDomain,
  isNotFoundError,
  refreshClaim,
  requestVerification,
  unknownClaimError,
} from './load.ts'
import type { PublishFunction } from './publish.ts'
import { requireExpectedTxt, requireRecord } from './record.ts'
import { checkDnsOnce, type DnsCheckOptions, mayVerifyInWait, toTimeoutError, watchDns } from './watch-dns.ts'

/** An event of the work on a claim. `CLAIM_EVENT_MEANINGS` describes each kind. */
export interface ClaimEvent {
  readonly event: keyof typeof CLAIM_EVENT_MEANINGS
  readonly claim: DomainClaim
  /**
   * Message for the user. A warning's text can stand alone; the text of any other event follows the claim's domain, as in
   * `example.com: …`.
   */
  readonly text: string
  /** The last DNS check; present in the `waiting` events of a wait for DNS. */
  readonly report?: CheckReport | undefined
  /** Milliseconds until the next DNS check; present together with `report`, except after the last check. */
  readonly nextInMs?: number | undefined
  /** The problem that a warning reports, or the reason why the claim isn't completed. */
  readonly error?: CliError | undefined
  /** Action that the user may have to take, in one line. */
  readonly hint?: string | undefined
  /** An open claim of the same domain, which the service may have superseded when it created the new claim. */
  readonly earlier?: DomainClaim
}

/** A claim as last seen, and how the work on it ended. */
export interface ClaimWorkResult {
  readonly claim: DomainClaim
  /**
   * Why the claim isn't completed. Undefined if it is completed, if it is in progress after `claims verify` without `--wait`, or
   * in the result of the generator `waitForDns` if its caller goes on to verify or follow the claim.
   */
  readonly error?: CliError | undefined
  /** Report of the last DNS check, if that check didn't find the record visible in DNS. */
  readonly report?: CheckReport | undefined
}

/** The work on a claim as a generator: yields events, and returns the result. */
export type ClaimEvents = AsyncGenerator<ClaimEvent, ClaimWorkResult, void>

/** A claim to work on, with the client for its requests, the `Io`, and the options of the work. */
export interface ClaimTask extends ClaimTargetWithClient {
  readonly options: ClaimWorkflowOptions
}

/** A generator that yields the events of creating or resuming a claim, and returns the claim. */
type ClaimOpening = AsyncGenerator<ClaimEvent, DomainClaim, void>

/** Options of the work on one claim; booleans default to false. */
export interface ClaimWorkflowOptions extends DnsCheckOptions {
  /** Whether to keep waiting while the claim is blocked. */
  readonly throughBlocked?: boolean | undefined
  /** Whether to check DNS before the verification request. */
  readonly check?: boolean
  /** Whether to only resume the domain's newest claim in the ledger, and never start a new claim. */
  readonly resumeOnly?: boolean
  /** Adds the record to DNS; undefined if the user adds the record. */
  readonly publish?: PublishFunction | undefined
}

/** Milliseconds between polls of a claim, and between attempts of a verification request: growing from `firstMs` to `maxMs`. */
const WATCH_DELAYS = { firstMs: 2000, maxMs: 30_000 } as const
/**
 * Delays in milliseconds between the polls of `followClaim` if it was given a claim, as after a verification request. The first
 * `steady` delays are short, because a verification usually ends within seconds.
 */
const VERIFYING_DELAYS = { firstMs: 1000, steady: 3, maxMs: 30_000 } as const
/**
 * Milliseconds from the start of the wait for DNS until lagging name servers no longer delay the verification request; at most
 * half of the time from that start to the deadline.
 */
const MAX_LAG_MS = 10 * 60 * 1000
/** Maximum characters of a TXT value in a message. */
const MAX_VALUE_LENGTH = 255

/**
 * Runs a claim from start to finish: creates or resumes the claim, publishes the record (with `publish`), waits for DNS (with
 * `check`), requests verification, and follows the claim as `followClaim` does. Each step can be repeated, so after an
 * interruption the same command continues the claim.
 *
 * @throws CliError as `createOrResume` and `requireRecord`; the errors of requests
 */
export async function* runClaim(request: CreateClaimRequest, setup: Omit<ClaimTask, 'target'>): ClaimEvents {
  const { options, io } = setup
  const claim = yield* createOrResume(request, options, setup)
  const name = toComparableDomain(request.name)
  const task = { ...setup, target: { domainId: claim.domain_id ?? '', name, entry: undefined } }
  if (!getClaimState(claim, io.clock.now()).isOpen) return yield* followClaim(task, claim)
  const record = requireRecord(claim, name)
  yield { event: 'record', claim, text: `TXT  ${record.name}  ${record.value}` }
  if (!needsRecord(claim, io)) return yield* followClaim(task, claim)
  if (options.publish !== undefined) {
    try {
      yield { event: 'published', claim, text: await options.publish(record) }
    } catch (error) {
      if (!(error instanceof CliError) || error instanceof InterruptedError) throw error
      return { claim, error }
    }
  }
  const seen = options.check ? yield* waitForDns(claim, task) : { claim }
  if (seen.error !== undefined) return seen
  return yield* needsRecord(seen.claim, io) ? verifyAndFollow(task, seen) : followClaim(task, seen.claim)
}

const needsRecord = (claim: DomainClaim, { clock }: Io): boolean =>
  getClaimState(claim, clock.now()).needsRecord

/**
 * Resumes the newest claim of the domain in the ledger. Unless `resumeOnly`, starts a new claim if the ledger has none, if the
 * claim is gone from the service or in the phase `expired` or `ended`, or if it is open in another region than requested. A
 * superseded claim isn't restarted: the new claim would end the newer one, which may belong to another team.
 *
 * @throws CliError `claim_unknown`, exit 5, with `resumeOnly` and no claim in the ledger; `unexpected_answer`, exit 7, for a new
 *   claim without a `domain_id`
 */
async function* createOrResume(
  request: CreateClaimRequest,
  { resumeOnly, deadline }: ClaimWorkflowOptions,
  access: ClientWithIo,
): ClaimOpening {
  const { io } = access
  const { name, region } = request
  const [entry] = await findClaimsByDomain(name, io)
  const isOtherRegion = (entry?.claim.region ?? region) !== (region ?? entry?.claim.region)
  // An open claim in another region can't be moved: the requested region needs a new claim, which supersedes the open one. So
  // don't resume the open one below, unless `resumeOnly` is set.
  const needsNewRegion = isOtherRegion && entry && getClaimState(entry.claim, io.clock.now()).isOpen
  if (entry !== undefined && (resumeOnly || !needsNewRegion)) {
    const target = { domainId: entry.claim.domain_id ?? '', name, entry }
    const limit = { timeoutMs: remainingMsOrMin(deadline) }
    const claim = await refreshClaim({ ...access, target }, limit).catch((error: unknown) => {
      if (resumeOnly || !isNotFoundError(error)) throw error
    })
    const { phase, text } = getClaimState(claim ?? entry.claim, io.clock.now())
    if (claim && (resumeOnly || (phase !== 'expired' && phase !== 'ended')))
      return yield* continueClaim(request, claim, `resumed: ${text}`)
  }
  if (resumeOnly) throw await unknownClaimError(name, `to start one: mailclaim claim ${name}`, io)
  const claim = yield* requestNewClaim(request, access)
  if (!claim.domain_id)
    throw invalidResponseError(
      `it sent no domain_id for ${describeDomain(claim)}, so the claim can't be followed`,
    )
  return claim
}

/**
 * Requests a new claim. Yields `created`, and a warning if the service may have superseded an open claim, or if it responded with
 * an existing claim on which options of the request have no effect.
 */
export async function* requestNewClaim(request: CreateClaimRequest, access: ClientWithIo): ClaimOpening {
  const { io } = access
  const [before] = await findClaimsByDomain(request.name, io)
  const earlier = before && getClaimState(before.claim, io.clock.now()).isOpen ? before.claim : undefined
  // Unless the user set a region, request the region of the domain's open claim: otherwise the service would start the new claim
  // in its default region.
  const { claim, created } = await claimDomain({ region: earlier?.region ?? undefined, ...request }, access)
  if (!created) return yield* continueClaim(request, claim, 'the claim was already pending')
  const value = earlier === undefined ? before?.claim.record?.value : undefined
  const after = value ? `; remove the TXT value "${clip(value, MAX_VALUE_LENGTH)}" of the earlier one` : ''
  yield { event: 'created', claim, text: `a new claim${after}`, ...(earlier && { earlier }) }
  if (earlier !== undefined) {
    const why = `an open claim of ${describeDomain(earlier)} may end in favor of this one`
    yield { event: 'warning', claim, text: why, error: new CliError('claim_replaced', why) }
  }
  return claim
}

/** Yields the event `created` for an existing claim, and a warning if options of the request have no effect on the claim. */
async function* continueClaim(request: CreateClaimRequest, claim: DomainClaim, text: string): ClaimOpening {
  yield { event: 'created', claim, text }
  const why = describeIgnoredOptions(request, claim)
  if (why !== undefined)
    yield { event: 'warning', claim, text: why, error: new CliError('options_ignored', why) }
  return claim
}

/**
 * Returns a message that names the request's options that have no effect on an existing claim; undefined without such options. Of
 * the options, a claim object has only the region, so the others are named even if the claim was created with them.
 */
export function describeIgnoredOptions({ name: _, ...options }: CreateClaimRequest, { region }: DomainClaim) {
  const flags = Object.entries(options)
    .filter(([key, value]) => key !== 'region' || value !== region)
    .map(([key, value]) => `--${value === false ? 'no-' : ''}${key.replaceAll('_', '-')}`)
  return flags.length === 0 ? undefined : `no effect on a claim that already exists: ${flags.join(', ')}`
}

/**
 * Waits until DNS has the record, the claim no longer needs the record, or the deadline passes. Also stops if a verification
 * request may succeed anyway: with verdict `unknown`, or as `mayVerifyInWait` says.
 *
 * @returns `claim` as last seen; `report` if the claim needs a record that the last check didn't prove visible in DNS;
 *   `error` if the deadline ended the wait
 * @throws CliError as `requireExpectedTxt`; an error of a request for the claim, unless the service refused the request (exit 6)
 *   or was unavailable (exit 7)
 */
async function* waitForDns(begun: DomainClaim, task: ClaimTask): ClaimEvents {
  const { options, io } = task
  const lag = createDeadline(Math.min(MAX_LAG_MS, options.deadline.remainingMs() / 2), io.clock)
  const read = () =>
    refreshClaim(task, bestEffortOptions(options.deadline)).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      if (error.exit !== Exit.unavailable && error.exit !== Exit.refused) throw error
      return undefined
    })
  let last: ClaimWorkResult = { claim: begun }
  for await (const step of watchDns(
    requireExpectedTxt(begun, task.target.name),
    { claim: begun, read },
    options,
    io,
  )) {
    const { report, claim = begun, nextInMs, news: text } = step
    if (!needsRecord(claim, io)) return { claim }
    const failure = exitErrorOf(report)
    if (failure === undefined) {
      yield recordReadyEvent(claim, report)
      return { claim }
    }
    last = { claim, error: toTimeoutError(failure, options.deadline), report }
    if (report.verdict === 'unknown' || mayVerifyInWait(report, lag.remainingMs() <= 0)) {
      yield dnsWarningEvent(claim, `${failure.message}; asking the service anyway`, failure)
      return { claim, report }
    }
    if (text !== undefined) yield { event: 'waiting', claim, text, report, nextInMs: nextInMs ?? undefined }
  }
  return last
}

const recordReadyEvent = (claim: DomainClaim, { name }: CheckReport): ClaimEvent => {
  return { event: 'dns', claim, text: `the record is visible at ${name}` }
}

/** Creates the warning about a DNS problem that doesn't prevent a verification request. */
const dnsWarningEvent = (claim: DomainClaim, text: string, error: CliError): ClaimEvent => {
  return { event: 'warning', claim, text, error, hint: error.hint }
}

/**
 * Sends the verification request, and then follows the claim as `followClaim` does. The request is idempotent, so it is repeated
 * while the service is unavailable (exit 7), within the limits of `followResource`.
 */
async function* verifyAndFollow(task: ClaimTask, { claim, report }: ClaimWorkResult): ClaimEvents {
  const { options, io } = task
  const events = followResource<DomainClaim>(
    {
      ...options,
      delays: WATCH_DELAYS,
      known: claim,
      fetch: (request) => requestVerification(task, claim, request),
      describe: (seen) =>
        seen === claim
          ? { status: 'unasked', text: 'the service has confirmed no request to verify it' }
          : { status: 'asked', text: 'verification requested', end: {} },
      timeout: () => inFlightError(claim, `to ask again: mailclaim claims verify${domainArg(claim)} --wait`),
    },
    io,
  )
  for (;;) {
    const { done, value: step } = await events.next()
    if (done && step.error !== undefined) return { claim, error: step.error, report }
    if (done) return { ...(yield* followClaim(task, step.value)), report }
    const { value, event, text, error } = step
    yield { event: event === 'done' ? 'verification' : event, claim: value, text, error }
  }
}

/**
 * Polls a claim until it is completed, blocked (unless `throughBlocked`) or ended, or the deadline passes.
 *
 * @param first the claim as just received, such as in the response to the verification request; undefined to begin with a poll
 */
export async function* followClaim(task: ClaimTask, first?: DomainClaim): ClaimEvents {
  const { options, io } = task
  // A claim is `pending` before and after its verification request. Without the parameter `first`, as in `claims watch`, this run
  // has sent no request, so a pending claim may lack one.
  const mayLackRequest = ({ status }: DomainClaim) => first === undefined && status === 'pending'
  let next = first
  const events = followResource<DomainClaim>(
    {
      ...options,
      delays: first === undefined ? WATCH_DELAYS : VERIFYING_DELAYS,
      async fetch(request) {
        const claim = next ?? (await refreshClaim(task, request))
        next = undefined
        return claim
      },
      describe(claim) {
        const { phase, isOpen, text, error } = getClaimState(claim, io.clock.now())
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
        const watch = `it continues; to keep watching: mailclaim claims watch${domainArg(claim)}${flag}`
        return inFlightError(claim, mayLackRequest(claim) ? verifyHint(claim) : watch)
      },
    },
    io,
  )
  for (;;) {
    const { done, value: step } = await events.next()
    if (done) return { claim: step.value, error: step.error }
    const { value: claim, ...event } = step
    const isFirst = event.event === 'status' && mayLackRequest(claim)
    yield { ...event, claim, hint: isFirst ? verifyHint(claim) : undefined }
  }
}

/** Creates the code, domain and hint of the error for a deadline that passes before the claim has ended. */
const inFlightError = (claim: DomainClaim, hint: string) =>
  ({ code: 'claim_in_flight', what: describeDomain(claim), hint }) as const

/** Returns the hint for a pending claim: the service looks for the record only after a verification request. */
const verifyHint = (claim: DomainClaim): string =>
  `if the service hasn't been asked to verify it: mailclaim claims verify${domainArg(claim)} --wait`

/**
 * Checks DNS once (with `check`), sends the verification request, and with `wait` follows the claim. Sends no request if the
 * record must be fixed first (verdict `fix`), or if the service has accepted the claim or the claim has ended. With verdict
 * `wait` or `unknown`, sends the request all the same, since the service may see the record.
 */
export async function* checkDnsOnceAndVerify(task: ClaimTask): ClaimEvents {
  const { target, options, io } = task
  const before = await refreshClaim(task, { timeoutMs: remainingMsOrMin(options.deadline) })
  const { phase, isOpen, text, error } = getClaimState(before, io.clock.now())
  if (!isOpen || phase === 'accepted') {
    if (options.wait) return yield* followClaim(task, before)
    yield { event: isOpen ? 'verification' : 'done', claim: before, text, error }
    return { claim: before, error }
  }
  let unseen: CheckReport | undefined
  if (options.check) {
    const report = await checkDnsOnce(requireExpectedTxt(before, target.name), options, io)
    const failure = exitErrorOf(report)
    if (report.verdict === 'fix') {
      const message = `${failure?.message}; the service wasn't asked to verify`
      return { claim: before, error: failure?.with({ message }), report }
    }
    unseen = failure && report
    yield failure === undefined
      ? recordReadyEvent(before, report)
      : dnsWarningEvent(before, `DNS: ${failure.message}`, failure)
  }
  // Send the verification request even for a blocked claim: the service may have lifted the block.
  if (options.wait) return yield* verifyAndFollow(task, { claim: before, report: unseen })
  const claim = await requestVerification(task, before)
  const after = getClaimState(claim, io.clock.now())
  yield { event: 'verification', claim, text: 'verification requested' }
  if (after.phase === 'completed' || after.error !== undefined)
    yield { event: 'done', claim, text: after.text, error: after.error }
  return { claim, error: after.error, report: unseen }
}
