import type { Context } from '../context.ts'
import { exitErrorOf } from '../dns/diagnosis/exit-status.ts'
import type { CheckReportJson } from '../dns/diagnosis/report.ts'
import { reportJson } from '../dns/diagnosis/report-json.ts'
import { waitForRecord } from '../dns/wait.ts'
import { dnsEffects } from '../dns/wire/effects.ts'
import { CliError, Exit } from '../errors.ts'
import { createClaim, getClaim, verifyClaim } from '../service/claims.ts'
import type { ServiceClient } from '../service/client.ts'
import type { ClaimRequest, DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { readLedger, recordClaim } from './ledger.ts'
import { endedError, nameOf, standingOf } from './lifecycle.ts'
import { checkRequest, isWorthAsking } from './precheck.ts'
import { recordOf } from './record.ts'
import { watchClaim } from './watch.ts'

/** The stations of the road, in order. */
export type Station = 'created' | 'record' | 'dns' | 'verification' | 'completed'

/** What happens on the road; `claim --format jsonl` writes it, a line each. */
export type RoadEvent =
  /** A station is reached. */
  | { readonly event: Station; readonly at: string; readonly message: string; readonly claim: DomainClaim }
  /** Something is waited for: `report` while it is DNS. */
  | {
      readonly event: 'waiting'
      readonly at: string
      readonly message: string
      readonly claim: DomainClaim
      readonly report?: CheckReportJson
    }
  | { readonly event: 'warning'; readonly at: string; readonly message: string; readonly claim: DomainClaim }

export interface RoadOptions {
  /** The whole road, in milliseconds. */
  readonly timeoutMs: number
  readonly throughBlocked: boolean
  /** Whether DNS is waited for before the service is asked. */
  readonly check: boolean
}

/**
 * The whole road of a claim: create it or take up the one that is under way, wait until DNS has the record, ask for
 * verification, follow it to the end. Can be interrupted anywhere and begun again: what has been done is found in the
 * ledger and at the service. Returns the completed claim.
 *
 * @throws CliError exit 9 for a negative end, exit 8 when the time ran out, and what the operations throw.
 */
export async function* travel(
  request: ClaimRequest,
  options: RoadOptions,
  client: ServiceClient,
  context: Context,
  settings: Settings,
): AsyncGenerator<RoadEvent, DomainClaim, void> {
  const end = context.clock.monotonic() + options.timeoutMs
  const left = () => Math.max(1, end - context.clock.monotonic())
  const stamp = () => new Date(context.clock.now()).toISOString()

  const { claim: started, how } = await startOrResume(request, client, context, settings)
  yield { event: 'created', at: stamp(), message: how, claim: started }
  const standing = standingOf(started)
  if (standing.phase === 'completed') {
    yield { event: 'completed', at: stamp(), message: standing.says, claim: started }
    return started
  }
  const record = recordOf(started)
  yield { event: 'record', at: stamp(), message: `TXT  ${record.name}  ${record.value}`, claim: started }

  const domainId = started.domain_id ?? ''
  let claim = started
  // A claim whose record the service has accepted, or that a safety check stopped, does not wait for DNS any more.
  if (started.status === 'pending' || standing.phase === 'unknown') {
    if (options.check) yield* waitForDns(claim, left(), stamp, context, settings)
    claim = await verifyClaim(client, domainId)
    await recordClaim(claim, context, settings)
    yield { event: 'verification', at: stamp(), message: 'the service was asked to verify', claim }
  } else {
    yield { event: 'dns', at: stamp(), message: 'the service has seen the record', claim }
    yield { event: 'verification', at: stamp(), message: standing.says, claim }
  }

  const watch = watchClaim(
    () => getClaim(client, domainId, { tries: 1 }),
    { intervalMs: undefined, timeoutMs: left(), throughBlocked: options.throughBlocked },
    context,
  )
  for (;;) {
    const step = await watch.next()
    if (step.done) {
      await recordClaim(step.value.claim, context, settings)
      if (step.value.standing.phase !== 'completed') throw endedError(step.value.claim, step.value.standing)
      yield { event: 'completed', at: stamp(), message: step.value.standing.says, claim: step.value.claim }
      return step.value.claim
    }
    const { event, at, message, claim: seen } = step.value
    if (event !== 'done')
      yield { event: event === 'warning' ? 'warning' : 'waiting', at, message, claim: seen }
  }
}

/** The claim that is under way, by the ledger or by the service, else a new one. */
async function startOrResume(
  request: ClaimRequest,
  client: ServiceClient,
  context: Context,
  settings: Settings,
): Promise<{ claim: DomainClaim; how: string }> {
  const known = (await readLedger(context, settings, async () => {})).find(
    (entry) => entry.claim.name?.toLowerCase() === request.name,
  )
  if (known?.claim.domain_id) {
    const claim = await getClaim(client, known.claim.domain_id).catch((error: unknown) => {
      if (error instanceof CliError && error.exit === Exit.notFound) return undefined
      throw error
    })
    if (claim !== undefined && standingOf(claim).phase !== 'ended') {
      await recordClaim(claim, context, settings)
      return { claim, how: `taken up again: ${standingOf(claim).says}` }
    }
  }
  const { claim, created } = await createClaim(client, request)
  await recordClaim(claim, context, settings)
  if (!claim.domain_id) {
    throw new CliError(
      'domain_id_missing',
      Exit.unavailable,
      `the service sent no placeholder domain id for ${nameOf(claim)}`,
      {
        hint: 'without it the claim cannot be followed; ask the service for it',
      },
    )
  }
  return { claim, how: created ? 'a new claim' : 'it was already being claimed' }
}

/** How long name servers that have not copied the record yet are waited for, in milliseconds. */
const LAGGING_MS = 10 * 60 * 1000

async function* waitForDns(
  claim: DomainClaim,
  timeoutMs: number,
  stamp: () => string,
  context: Context,
  settings: Settings,
): AsyncGenerator<RoadEvent, void, void> {
  const checks = waitForRecord(checkRequest(recordOf(claim), settings), timeoutMs, dnsEffects(context))
  const patience = context.clock.monotonic() + Math.min(LAGGING_MS, timeoutMs / 2)
  for (;;) {
    const step = await checks.next()
    const report = step.done ? step.value : step.value.report
    const failure = exitErrorOf(report)
    if (failure === undefined) {
      yield { event: 'dns', at: stamp(), message: `the record is visible at ${report.name}`, claim }
      return
    }
    if (report.verdict === 'unknown') {
      // Where DNS cannot be seen from here, the service still can.
      yield {
        event: 'warning',
        at: stamp(),
        message: `DNS cannot be seen from here: ${failure.message}`,
        claim,
      }
      return
    }
    if (isWorthAsking(report, context.clock.monotonic() >= patience)) {
      yield { event: 'warning', at: stamp(), message: failure.message, claim }
      return
    }
    if (step.done) {
      const ask = 'with --no-check the service is asked without this check'
      throw new CliError(failure.code, failure.exit, failure.message, {
        hint: [failure.hint, ask].filter(Boolean).join('\n'),
      })
    }
    yield { event: 'waiting', at: stamp(), message: failure.message, claim, report: reportJson(report) }
  }
}
