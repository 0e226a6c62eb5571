import type { Context } from '../context.ts'
import { getClaim } from '../service/claims.ts'
import type { ServiceClient } from '../service/client.ts'
import { drain } from '../service/polling.ts'
import type { Settings } from '../settings/settings.ts'
import { note, warn } from '../terminal/notices.ts'
import { writeJsonLine, writeObject } from '../terminal/output.ts'
import { CLAIM_COLUMNS } from './columns.ts'
import { recordClaim } from './ledger.ts'
import { endedError, nameOf } from './lifecycle.ts'
import { sayNextSteps } from './next-steps.ts'
import { type WatchEvent, watchClaim } from './watch.ts'

export interface FollowFlags {
  /** Seconds. */
  readonly interval?: number
  /** Seconds. */
  readonly timeout?: number
  readonly throughBlocked?: true
}

/**
 * Watches a claim and writes what happens: events as JSON lines on stdout, or words on stderr and the claim on stdout
 * at the end. Settles when the claim is completed.
 *
 * @throws CliError exit 9 for a negative end, exit 8 when the time ran out, and what `watchClaim` throws.
 */
export async function followClaim(
  domainId: string,
  flags: FollowFlags,
  client: ServiceClient,
  context: Context,
  settings: Settings,
): Promise<void> {
  const events = watchClaim(
    () => getClaim(client, domainId, { tries: 1 }),
    {
      intervalMs: flags.interval === undefined ? undefined : flags.interval * 1000,
      timeoutMs: flags.timeout === undefined ? undefined : flags.timeout * 1000,
      throughBlocked: flags.throughBlocked === true,
    },
    context,
  )
  const { claim, standing } = await drain(events, (event) => show(event, context, settings))
  await recordClaim(claim, context, settings)
  if (settings.format !== 'jsonl') await writeObject(context, settings, claim, CLAIM_COLUMNS)
  if (standing.phase !== 'completed') throw endedError(claim, standing)
  await sayNextSteps(claim, context, settings)
}

async function show(
  { event, at, message, claim }: WatchEvent,
  context: Context,
  settings: Settings,
): Promise<void> {
  if (settings.format === 'jsonl') await writeJsonLine(context, { event, at, message, claim })
  else if (event === 'warning') await warn(message, context, settings)
  else if (event !== 'done')
    await note(`${nameOf(claim)}: ${claim.status ?? 'no status'} – ${message}`, context, settings)
}
