import type { Context } from '../context.ts'
import type { CheckReport, CheckReportJson } from '../dns/report.ts'
import { exitErrorOf, reportJson } from '../dns/report.ts'
import { waitForRecord } from '../dns/wait.ts'
import { dnsEffects } from '../dns/wire/ask.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { lastRequestFailed, newsOnly, timeFor } from '../service/polling.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import { clip } from '../terminal/sanitize.ts'
import { type ClaimReader, currentClaim, type SeenClaim } from './current-claim.ts'
import {
  claimsOf,
  isOpenEntry,
  type LedgerContext,
  type LedgerSettings,
  readLedger,
  recordClaim,
} from './ledger.ts'
import {
  asArgument,
  besideWarning,
  endedError,
  nameOf,
  needsRecord,
  stateOf,
  unappliedWarning,
} from './lifecycle.ts'
import { startClaim } from './other-machines.ts'
import { checkRequest, type DnsSettings, isWorthVerifying } from './precheck.ts'
import type { Publication } from './publish.ts'
import { recordOf, type TxtRecord } from './record.ts'
import { requestVerification, watchClaim } from './watch.ts'

/** The steps, in order. */
export type Step = 'created' | 'record' | 'published' | 'dns' | 'verification' | 'completed'

/** The events of `claim --format jsonl`. */
export const WORKFLOW_EVENTS = {
  created:
    'the claim exists: a new one, or the one in progress; with the earlier claim, if there was one that ended or is gone',
  record: 'the TXT record to add to DNS',
  published: 'the program of --publish ended without an error, or the record was in DNS already',
  waiting:
    'what the program waits for, when that changes or a minute has passed; while it waits for DNS, with the report of the check',
  warning: 'a problem that does not stop it, such as a failed poll, which is repeated',
  dns: 'the record is visible in DNS',
  verification: 'the service was asked to verify, or is already past that',
  completed: 'the domain is yours',
  unpublished:
    'after completion: the record is gone, or the program of --unpublish ended without an error and nobody can see DNS',
  ended: 'the claim is blocked or ended unsuccessfully: exit code 9',
} as const

/** What `claim --format jsonl` writes, one per line: a step that is done, a wait, or a warning. */
export interface WorkflowEvent {
  readonly event: keyof typeof WORKFLOW_EVENTS
  /** ISO 8601. */
  readonly at: string
  readonly message: string
  readonly claim: DomainClaim
  /** While waiting for DNS. */
  readonly report?: CheckReportJson
  /** When a claim was started because this earlier one had ended or was gone: nobody checks its record anymore. */
  readonly earlier?: DomainClaim
}

export interface WorkflowOptions {
  /** For all steps together. */
  readonly timeoutMs: number
  /** When that time began, on `clock.monotonic()`; now if absent. */
  readonly since?: number
  readonly throughBlocked: boolean
  /** Whether to end, rather than start a claim, if the known one has ended or is gone; then no region is asked for, either. */
  readonly resumeOnly?: boolean
  /** Whether to wait for DNS before asking the service to verify. */
  readonly check: boolean
  /** A fixed delay between checks and between polls, in milliseconds; undefined: growing delays. */
  readonly intervalMs?: number | undefined
  /** Whether to query public resolvers as well. */
  readonly publicResolvers?: boolean
  /** Called after each check of DNS with the milliseconds until the next one, and what it found. */
  readonly onCheck?: (nextInMs: number, report: CheckReport) => void
  /** Called if the service is asked although this check didn't show the record. */
  readonly onUnseen?: (report: CheckReport) => void
  /** Asks the service about the claim while DNS doesn't have its record: it may have ended, or be completed, by then. */
  readonly latest: ClaimReader
  /** Adds the record to DNS. */
  readonly publish?: ChangeDns | undefined
  /** Removes the record after completion. */
  readonly unpublish?: ChangeDns | undefined
}

/** @throws CliError if DNS wasn't changed */
type ChangeDns = (record: TxtRecord) => Promise<Publication>

/** The claim at the end of the workflow. */
export interface WorkflowResult {
  readonly claim: DomainClaim
  /** Why the claim isn't completed: exit 8 when the time is up, exit 9 if it ended unsuccessfully, or why `publish` failed. */
  readonly error?: CliError | undefined
  /** Whether the record is no longer in DNS. */
  readonly unpublished?: boolean
  /** Why it still is, although it was to be removed: the claim is completed all the same. */
  readonly leftover?: string
  /** When the time is up: the step that is missing and, for DNS, the last check. */
  readonly missing?: { readonly step: 'dns' | 'verification' | 'completed'; readonly report?: CheckReport }
}

type WorkflowContext = LedgerContext & Pick<Context, 'random' | 'interrupts' | 'dns'>
type WorkflowSettings = LedgerSettings & DnsSettings

/**
 * Runs a claim from start to finish: creates it or resumes the one in progress, waits until DNS has the record, asks the
 * service to verify, and follows the claim until it is settled. It can be interrupted and run again at any point: the
 * ledger and the service know how far it got. A claim that a newer one replaced is the end: starting another would end that
 * newer one, which may be somebody else's.
 *
 * @throws CliError what the operations throw; exit 5 with `resumeOnly` if there is no claim
 */
export async function* runWorkflow(
  request: ClaimRequest,
  options: WorkflowOptions,
  client: ServiceClient,
  context: WorkflowContext,
  settings: WorkflowSettings,
): AsyncGenerator<WorkflowEvent, WorkflowResult, void> {
  const { timeoutMs, since = context.clock.monotonic() } = options
  const timed = { ...options, intervalMs: options.intervalMs, since }
  const limitMs = timeFor(timed, context.clock)
  const begin = await startOrResume(request, options.resumeOnly === true, limitMs, client, context, settings)
  let { claim } = begin
  const { origin, warning, earlier, error: ended } = begin
  const state = stateOf(claim)
  if (ended !== undefined) {
    yield eventOf('ended', state.description, claim, context)
    return { claim, error: ended }
  }
  yield { ...eventOf('created', origin, claim, context), ...(earlier && { earlier }) }
  if (warning !== undefined) yield eventOf('warning', warning, claim, context)
  if (state.phase === 'completed') {
    yield eventOf('completed', state.description, claim, context)
    return { claim, ...(yield* unpublish(claim, options, context)) }
  }
  const record = recordOf(claim)
  yield eventOf('record', `TXT  ${record.name}  ${record.value}`, claim, context)

  const domainId = claim.domain_id ?? ''
  const seen = { domainId, claim, seenAt: context.clock.now() }
  // Once the service has accepted the record or blocked the claim, DNS no longer matters.
  let needsDns = needsRecord(claim)
  if (needsDns) {
    if (options.publish !== undefined) {
      const published = await options.publish(record).catch(expectedFailure)
      if (published instanceof CliError) return { claim, error: published }
      yield eventOf('published', published.message, claim, context)
    }
    if (options.check) {
      const left = { ...options, timeoutMs: Math.max(1, since + timeoutMs - context.clock.monotonic()) }
      const waited = yield* waitForDns(seen, record, left, context, settings)
      if (waited.error !== undefined) return waited
      claim = waited.claim
      needsDns = needsRecord(claim)
    }
  }
  let refusal: CliError | undefined
  if (needsDns) {
    const asked = yield* requestVerification({ domainId, claim }, timed, client, context)
    claim = asked.claim
    await recordClaim(claim, context, settings)
    if (asked.error !== undefined) return stillInProgress('verification', claim, asked.error)
    refusal = asked.refusal
    if (refusal === undefined) yield eventOf('verification', 'verification requested', claim, context)
  } else if (stateOf(claim).phase !== 'blocked') {
    yield eventOf('dns', 'the service found the record', claim, context)
    yield eventOf('verification', stateOf(claim).description, claim, context)
  }

  const watch = watchClaim(
    async (options) => (await currentClaim({ domainId, claim }, client, context, settings, options)).claim,
    { ...timed, verifying: claim, refusal, isJustSeen: !needsDns },
    context,
  )
  const result = yield* followWatch(watch, context, settings)
  return result.error === undefined
    ? { ...result, ...(yield* unpublish(result.claim, options, context)) }
    : result
}

function eventOf(
  event: WorkflowEvent['event'],
  message: string,
  claim: DomainClaim,
  { clock }: Pick<Context, 'clock'>,
): WorkflowEvent {
  return { event, at: new Date(clock.now()).toISOString(), message, claim }
}

/** Follows the claim until it is settled or the time is up. */
async function* followWatch(
  watch: ReturnType<typeof watchClaim>,
  context: LedgerContext,
  settings: LedgerSettings,
): AsyncGenerator<WorkflowEvent, WorkflowResult, void> {
  let step = await watch.next()
  for (; !step.done; step = await watch.next()) {
    const { event, message, claim } = step.value
    if (event !== 'done') yield eventOf(event === 'warning' ? 'warning' : 'waiting', message, claim, context)
  }
  const { claim, state, error } = step.value
  await recordClaim(claim, context, settings)
  if (error?.exit === Exit.notYet) return stillInProgress('completed', claim, error, state)
  yield eventOf(error === undefined ? 'completed' : 'ended', state.description, claim, context)
  return { claim, error }
}

/** The result when the time is up before the claim is settled. */
function stillInProgress(
  step: 'verification' | 'completed',
  claim: DomainClaim,
  { code, exit, hint, retryAfterMs, cause }: CliError,
  { description } = stateOf(claim),
): WorkflowResult {
  const message = `${nameOf(claim)} is still in progress: ${description}${lastRequestFailed(cause)}`
  return { claim, error: new CliError(code, exit, message, { hint, retryAfterMs, cause }), missing: { step } }
}

/** Removes the record of a completed claim, if the options say how. A failure is a warning: the claim stays completed. */
async function* unpublish(
  claim: DomainClaim,
  options: Pick<WorkflowOptions, 'unpublish'>,
  context: Pick<Context, 'clock'>,
): AsyncGenerator<WorkflowEvent, Pick<WorkflowResult, 'unpublished' | 'leftover'>, void> {
  if (options.unpublish === undefined) return {}
  const place = `at ${claim.record?.name ?? nameOf(claim)}: ${claim.record?.value ?? 'unknown'}`
  const removed = await options.unpublish(recordOf(claim)).catch(expectedFailure)
  if (removed instanceof CliError) {
    const message = `the record wasn't removed: ${removed.message}; remove it by hand, or run the same command again (the TXT value ${place})`
    yield eventOf('warning', message, claim, context)
    return { leftover: removed.message }
  }
  const { inDns, message } = removed
  if (inDns) {
    const next = 'it may take a while to disappear; to try again, run the same command again'
    yield eventOf('warning', `${message} ${place}; ${next}`, claim, context)
    return { leftover: message }
  }
  yield eventOf('unpublished', message, claim, context)
  return { unpublished: inDns === false }
}

/** A failure that the workflow goes on after, or ends with, in place of an answer. @throws anything else */
function expectedFailure(error: unknown): CliError {
  if (error instanceof CliError && !(error instanceof InterruptedError)) return error
  throw error
}

/** The claim that the workflow is about, and where it came from. */
interface Beginning {
  readonly claim: DomainClaim
  readonly origin: string
  readonly warning?: string | undefined
  /** The claim that ended, or was gone, before this one was started. */
  readonly earlier?: DomainClaim | undefined
  readonly error?: CliError
}

/**
 * The claim in progress, as the ledger or the service knows it, or a new one. A claim in another region than the one asked
 * for isn't resumed, and a claim that a newer one replaced isn't started again.
 *
 * @param resumeOnly see `WorkflowOptions`
 */
async function startOrResume(
  request: ClaimRequest,
  resumeOnly: boolean,
  timeoutMs: number,
  client: ServiceClient,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<Beginning> {
  const now = context.clock.now()
  let earlier: DomainClaim | undefined
  let gone: CliError | undefined
  const entries = await readLedger(context, settings, async () => {}, request.name)
  const ordered = claimsOf(entries, request.name, now)
  const known = ordered.map(({ claim }) => claim)
  const open = ordered.filter((entry) => isOpenEntry(entry, now)).map(({ claim }) => claim)
  const { region } = request
  const suitable = open.filter((claim) => resumeOnly || !region || !claim.region || claim.region === region)
  // A claim that was replaced by one of another region isn't started again, either.
  const latest = open.length > 0 ? known.find((claim) => claim.region === region) : known[0]
  const [domainId, ...others] = (suitable.length > 0 ? suitable : [latest]).flatMap((claim) =>
    claim === undefined ? [] : [claim.domain_id ?? ''],
  )
  if (domainId !== undefined) {
    const resolved = { domainId, others }
    const found = await currentClaim(resolved, client, context, settings, { timeoutMs }).catch(
      (error: unknown) => {
        if (error instanceof CliError && error.exit === Exit.notFound) return error
        throw error
      },
    )
    if (found instanceof CliError) {
      gone = found
      earlier = known.find((claim) => claim.domain_id === domainId)
    } else {
      const { claim } = found
      const state = stateOf(claim)
      await recordClaim(claim, context, settings)
      if (state.phase !== 'ended') {
        const unapplied = unappliedWarning(request, claim)
        const create = `to start another, with its own TXT record, use these options with: mailclaim claims create${asArgument(claim)}`
        return {
          claim,
          origin: `resumed: ${state.description}`,
          warning: unapplied && `${unapplied}; ${create}`,
        }
      }
      const error = endedError(claim, state)
      if (claim.status === 'superseded') return { claim, origin: state.description, error }
      if (resumeOnly) return { claim, origin: state.description, error: withStart(error, request) }
      earlier = claim
    }
  }
  if (resumeOnly) {
    const message = `no claim for ${request.name} is known on this machine`
    throw withStart(gone ?? new CliError('claim_unknown', Exit.notFound, message), request)
  }
  const { claim, created } = await startClaim(client, request, known)
  await recordClaim(claim, context, settings)
  if (!claim.domain_id) {
    throw new CliError(
      'domain_id_missing',
      Exit.unavailable,
      `the service sent no placeholder domain id for ${nameOf(claim)}`,
      { hint: "the claim can't be followed without it; ask the service's support for it" },
    )
  }
  const after = earlier === undefined ? '' : `: ${endingOf(earlier, claim, gone !== undefined)}`
  if (!created)
    return {
      claim,
      origin: `the claim was already pending${after}`,
      warning: unappliedWarning(request, claim),
      earlier,
    }
  const beside = open.find((other) => !suitable.includes(other))
  return { claim, origin: `a new claim${after}`, warning: beside && besideWarning(beside), earlier }
}

/** The error of a claim that isn't started again, with how to do that. */
function withStart({ code, exit, message, status, cause }: CliError, { name }: ClaimRequest): CliError {
  const hint = `to start another: mailclaim claim${asArgument({ name })}`
  return new CliError(code, exit, message, { hint, status, cause })
}

/** In characters; longer TXT values don't fit into one string of a record. */
const MAX_VALUE_LENGTH = 255

/** How an earlier claim ended, and what has become of its record. */
function endingOf(earlier: DomainClaim, claim: DomainClaim, isGone: boolean): string {
  const ending = isGone
    ? 'the service no longer has the earlier one'
    : `the earlier one ended (${clip(earlier.status ?? 'no status', MAX_VALUE_LENGTH)})`
  const value = earlier.record?.value
  if (!value || value === claim.record?.value) return ending
  return `${ending}, so nobody checks its TXT value anymore: replace or remove "${clip(value, MAX_VALUE_LENGTH)}"`
}

/** How long to wait for name servers that don't have the record yet, in milliseconds. */
const MAX_LAG_MS = 10 * 60 * 1000

/** A claim that was seen this recently isn't asked about again, whatever has happened, in milliseconds. */
const JUST_SEEN_MS = 10_000

/**
 * Waits until the record is in DNS, or there is no point in waiting. Once a minute it asks the service whether the claim still
 * needs the record; sooner when it is about to call the value in DNS outdated, or the time is up.
 *
 * @returns the claim, which may no longer need the record; with an error if it has ended or the time is up
 * @throws CliError exit 5 if the service no longer has the claim
 */
async function* waitForDns(
  begin: SeenClaim,
  record: TxtRecord,
  { timeoutMs, publicResolvers, onCheck, onUnseen, latest }: WorkflowOptions,
  context: WorkflowContext,
  settings: DnsSettings,
): AsyncGenerator<WorkflowEvent, WorkflowResult, void> {
  let seen = begin
  let isStale = false
  const news = newsOnly(context.clock)
  const request = checkRequest(record, settings, publicResolvers)
  const checks = waitForRecord(request, timeoutMs, dnsEffects(context))
  const lagEnd = context.clock.monotonic() + Math.min(MAX_LAG_MS, timeoutMs / 2)
  for (;;) {
    const step = await checks.next()
    const report = step.done ? step.value : step.value.report
    const failure = exitErrorOf(report)
    if (failure === undefined) {
      yield eventOf('dns', `the record is visible at ${report.name}`, seen.claim, context)
      return seen
    }
    const wasStale = isStale
    isStale ||= report.findings.some(({ code }) => code === 'stale_token')
    const isUrgent = step.done || isStale !== wasStale
    const { unasked, ...asked } = await latest(seen, isUrgent ? JUST_SEEN_MS : undefined)
    if (unasked?.exit === Exit.notFound) throw unasked
    // A service that can't be asked is left alone for a minute, too.
    seen = unasked === undefined ? asked : { ...asked, seenAt: context.clock.now() }
    const { claim } = seen
    const state = stateOf(claim)
    if (state.phase === 'ended') {
      yield eventOf('ended', state.description, claim, context)
      return { claim, error: endedError(claim, state) }
    }
    if (!needsRecord(claim)) return seen
    // Among many domains, a server may not have been asked about this one: that is no reason not to wait.
    const isIncomplete = report.verdict === 'unknown' && context.dns.wasLeftOut?.(report.name) === true
    if (report.verdict === 'unknown' && !isIncomplete) {
      // The service may still see DNS.
      const message = `couldn't query DNS from here, so the service is asked without waiting for the record; add it now if it isn't there, since the service looks again: ${failure.message}`
      onUnseen?.(report)
      yield eventOf('warning', message, claim, context)
      return seen
    }
    if (isWorthVerifying(report, context.clock.monotonic() >= lagEnd)) {
      onUnseen?.(report)
      yield eventOf('warning', failure.message, claim, context)
      return seen
    }
    if (failure.exit !== Exit.notYet && !isIncomplete) throw failure
    if (step.done) return { claim, error: failure, missing: { step: 'dns', report } }
    onCheck?.(step.value.nextInMs ?? 0, report)
    const message = news(stateInDns(report), failure.message)
    if (message !== undefined)
      yield { ...eventOf('waiting', message, claim, context), report: reportJson(report) }
  }
}

/** What of a check counts as a change: neither counters nor times. */
function stateInDns({ verdict, findings, nameservers }: CheckReport): string {
  const servers = nameservers.map(({ host, address, outcome, values }) => [host, address, outcome, values])
  return JSON.stringify([verdict, findings.map(({ code }) => code), servers])
}
