import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { drain, resumable, statusFirst } from '../service/polling.ts'
import { commandLine } from '../shell-quote.ts'
import { note, warn } from '../terminal/notices.ts'
import { type OutputContext, type OutputSettings, writeJsonLine } from '../terminal/output.ts'
import { currentClaim } from './current-claim.ts'
import { type LedgerContext, type LedgerSettings, recordClaim } from './ledger.ts'
import { nameOf } from './lifecycle.ts'
import { writeNextSteps } from './next-steps.ts'
import { laterJobHint } from './other-machines.ts'
import type { DnsSettings } from './precheck.ts'
import { findPlace, type PlaceContext } from './record-place.ts'
import type { ResolvedClaim } from './resolve.ts'
import { type WatchEvent, type WatchOptions, type WatchResult, watchClaim } from './watch.ts'
import { writeClaim } from './write-claim.ts'

/**
 * Watches a claim and shows its progress: with `--format jsonl` as JSON lines on stdout, else as text on stderr, with the
 * claim on stdout at the end. Returns when the claim is completed.
 *
 * @throws CliError exit 9 if the claim ended unsuccessfully, exit 8 when the time is up, both with the claim on stdout;
 *   what `watchClaim` throws
 */
export async function followClaim(
  resolved: Pick<ResolvedClaim, 'domainId' | 'others'>,
  options: WatchOptions,
  client: ServiceClient,
  context: OutputContext & LedgerContext & PlaceContext & Pick<Context, 'platform'>,
  settings: OutputSettings & LedgerSettings & DnsSettings,
): Promise<void> {
  // To verify again is not what a person wants who only stopped watching.
  const again = options.verifying ? undefined : commandLine(settings.argv, context.platform)
  const events = watchResolved(resolved, { ...options, again }, client, context, settings)
  const { claim } = await showWatch(
    settings.format === 'jsonl' ? statusFirst(events) : events,
    context,
    settings,
  )
  if (settings.format !== 'jsonl') await writeClaim(claim, context, settings)
  if (settings.quiet) return
  await writeNextSteps(
    claim,
    await findPlace(claim.record?.name ?? nameOf(claim), context, settings),
    context,
    settings,
  )
}

/**
 * Shows what happens to a claim, and saves it at the end.
 *
 * @param later what another machine goes on with when the time is up, with `ID` for the claim's placeholder domain id
 * @throws CliError why the claim isn't completed, with the claim on stdout
 */
export async function showWatch<Result extends Pick<WatchResult, 'claim' | 'error'>>(
  events: AsyncGenerator<WatchEvent, Result, void>,
  context: OutputContext & LedgerContext & PlaceContext,
  settings: OutputSettings & LedgerSettings & DnsSettings,
  later = 'mailclaim claims watch ID',
): Promise<Result> {
  const result = await drain(events, (event) =>
    settings.format === 'jsonl' ? writeJsonLine(context, settings, event) : show(event, context, settings),
  ).catch(resumable)
  const { claim, error } = result
  await recordClaim(claim, context, settings)
  if (error === undefined) return result
  if (settings.format !== 'jsonl') await writeClaim(claim, context, settings)
  if (error.exit !== Exit.notYet) throw error
  // A command with the id continues anywhere.
  const isThere = claim.domain_id && error.hint?.includes(claim.domain_id)
  const elsewhere = isThere ? undefined : laterJobHint(claim, later, context)
  throw new CliError(error.code, error.exit, error.message, {
    hint: [error.hint, elsewhere].filter(Boolean).join('\n'),
  })
}

/** Watches one of several claims to its end, and prints nothing. @param show gets each event @throws CliError what `watchClaim` throws */
export async function followQuietly(
  resolved: Pick<ResolvedClaim, 'domainId' | 'others'>,
  options: WatchOptions,
  client: ServiceClient,
  context: LedgerContext & Pick<Context, 'random' | 'interrupts'>,
  settings: LedgerSettings,
  show: (event: WatchEvent) => void,
): Promise<WatchResult> {
  const result = await drain(watchResolved(resolved, options, client, context, settings), async (event) =>
    show(event),
  )
  await recordClaim(result.claim, context, settings)
  return result
}

function watchResolved(
  resolved: Pick<ResolvedClaim, 'domainId' | 'others'>,
  options: WatchOptions,
  client: ServiceClient,
  context: LedgerContext & Pick<Context, 'random' | 'interrupts'>,
  settings: LedgerSettings,
): ReturnType<typeof watchClaim> {
  // The first poll decides which claim a name stands for.
  let target: Parameters<typeof currentClaim>[0] = resolved
  return watchClaim(
    async (request) => {
      const current = await currentClaim(target, client, context, settings, request)
      target = current
      return current.claim
    },
    options,
    context,
  )
}

async function show(event: WatchEvent, context: OutputContext, settings: OutputSettings): Promise<void> {
  const { message, claim } = event
  if (event.event === 'warning') await warn(message, context, settings)
  else if (event.event !== 'done')
    await note(`${nameOf(claim)}: ${claim.status ?? 'no status'} – ${message}`, context, settings)
}
