import { toReportJson } from '../dns/report.ts'
import { CliError } from '../errors.ts'
import { showEvents } from '../service/follow.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { hasOwnLayout } from '../terminal/output.ts'
import { SINGLE_CLAIM_COLUMNS } from './columns.ts'
import { describeDomain, getClaimState } from './lifecycle.ts'
import { requireRecord, type TxtRecord } from './record.ts'
import { explainHost, findRecordLocation } from './record-location.ts'
import type { ClaimEvent, ClaimEvents } from './workflow.ts'

/**
 * Writes a claim to stdout. The table without `--fields` leaves out the record of a claim that isn't open and, with a warning, an
 * invalid record; it adds the host to enter at the DNS provider.
 */
export async function printClaim(claim: DomainClaim, io: Io): Promise<void> {
  if (!hasOwnLayout(io.settings)) return io.write(claim, SINGLE_CLAIM_COLUMNS)
  const { isOpen } = getClaimState(claim, io.clock.now())
  let record: TxtRecord | undefined
  try {
    if (isOpen && claim.record?.value) record = requireRecord(claim)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await io.warn(`the claim's record isn't shown: ${error.message}`)
  }
  const withoutRecord = SINGLE_CLAIM_COLUMNS.filter(({ field }) => !/^record\.(name|value)$/.test(field))
  if (record === undefined) return io.write(claim, withoutRecord)
  const location = await findRecordLocation(record.name, io)
  const host: Column = { field: 'record.host', title: 'Record host', value: () => explainHost(location) }
  const at = SINGLE_CLAIM_COLUMNS.findIndex(({ field }) => field === 'record.name')
  await io.write(claim, SINGLE_CLAIM_COLUMNS.toSpliced(at, 0, host))
}

function writeEvent({ event, claim, report, error, earlier }: ClaimEvent, io: Io): Promise<void> {
  const fields = { claim, ...(earlier && { earlier }), ...(report && { report: toReportJson(report) }) }
  return io.writeEvent(event, { ...fields, ...error?.toJSON() })
}

/** Prints the events of a claim on stderr, in all formats but `jsonl`. */
export interface ClaimEventPresenter {
  readonly show: (event: ClaimEvent) => Promise<void>
  /** Whether `show` prints the claim's record and status, so that a table of the claim after an error would only repeat them. */
  readonly showsClaim?: boolean
}

/**
 * Runs the work on a claim to its end. Prints its events, then the claim, then the next steps of a newly completed claim. Doesn't
 * print the claim in `jsonl`, nor as a table after an error if the events have shown it (`showsClaim`).
 *
 * @param before the claim in the ledger before the work, if any
 * @returns the claim as last seen
 * @throws CliError the reason why the claim isn't completed
 */
export async function printEventsThenClaim(
  events: ClaimEvents,
  { show, showsClaim = false }: ClaimEventPresenter,
  before: DomainClaim | undefined,
  io: Io,
): Promise<DomainClaim> {
  const { format } = io.settings
  const isEvents = format === 'jsonl'
  const { claim, error } = await showEvents(events, (event) =>
    isEvents ? writeEvent(event, io) : show(event),
  ).finally(() => io.progress.end())
  const isShown = showsClaim && error !== undefined && format === 'table'
  if (!isEvents && !isShown) await printClaim(claim, io)
  if (error !== undefined) throw error
  const isCompleted = (one: DomainClaim) => getClaimState(one, io.clock.now()).phase === 'completed'
  if (isCompleted(claim) && !(before && isCompleted(before))) await writeNextSteps(claim, io)
  return claim
}

/**
 * Prints an event on stderr, as a warning or as a line with the domain, with its hint below. Skips the text of a `done` event,
 * because the claim or the error follows.
 */
export async function printEventText({ event, claim, text, hint }: ClaimEvent, io: Io): Promise<void> {
  if (event === 'warning') await io.warn(text)
  else if (event !== 'done') await io.say(`${describeDomain(claim)}: ${text}`)
  if (hint !== undefined && !io.settings.quiet) await io.hint(hint)
}

/**
 * Prints the next steps of a newly completed claim, for which this program has no commands. The service transfers the domain as a
 * new one with its own DKIM keys, so the previous owner's DKIM records are useless.
 */
async function writeNextSteps(claim: DomainClaim, io: Io): Promise<void> {
  if (io.settings.quiet) return
  const name = describeDomain(claim)
  await io.say(
    '',
    'Next steps:',
    `1. Fetch the domain ${name} from the API or the dashboard: it has new DKIM keys.`,
    "2. Publish its new DKIM records in DNS. The previous owner's records can't be reused.",
    '3. Ask the service to verify the domain. Only then can it send and receive e-mail.',
    `4. The TXT record at ${claim.record?.name ?? name} is no longer needed; remove it if you like.`,
  )
}
