import { reportJson } from '../dns/report.ts'
import { CliError } from '../errors.ts'
import { consume } from '../service/follow.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { CLAIM_COLUMNS } from './columns.ts'
import { judge, nameOf } from './lifecycle.ts'
import { findPlace, hostText } from './place.ts'
import { recordOf, type TxtRecord } from './record.ts'
import type { ClaimEvent, ClaimEvents } from './workflow.ts'

/**
 * Writes a claim to stdout. People see the record as long as it's needed, with the host to type at a DNS provider, for which DNS is
 * searched; a record that isn't the claim's to ask for is left out, with a warning.
 */
export async function writeClaim(claim: DomainClaim, io: Io): Promise<void> {
  const { format, fields } = io.settings
  if (format !== 'table' || fields !== undefined) return io.write(claim, CLAIM_COLUMNS)
  const { isOpen } = judge(claim, io.clock.now())
  let record: TxtRecord | undefined
  try {
    if (isOpen && claim.record?.value) record = recordOf(claim)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await io.warn(`the claim's record isn't shown: ${error.message}`)
  }
  if (record === undefined)
    return io.write(
      claim,
      CLAIM_COLUMNS.filter(({ field }) => !/^record\.(name|value)$/.test(field)),
    )
  const place = await findPlace(record.name, io)
  const host: Column = { field: 'record.host', title: 'Record host', value: () => hostText(place) }
  const columns = CLAIM_COLUMNS.flatMap((column) =>
    column.field === 'record.name' ? [host, column] : [column],
  )
  await io.write(claim, columns)
}

/** An event as a line of `--format jsonl`. */
function writeEvent({ event, claim, report, error, earlier }: ClaimEvent, io: Io): Promise<void> {
  const fields = { claim, ...(earlier && { earlier }), ...(report && { report: reportJson(report) }) }
  return io.writeEvent(event, { ...fields, ...error?.toJSON() })
}

/** How people follow the work on a claim. */
export interface Presenter {
  readonly show: (event: ClaimEvent) => Promise<void>
  /** Whether it shows all that there is of a claim, but that it is completed. */
  readonly isFull?: boolean
}

/**
 * Shows the work on a claim to its end: each event, the claim, and the next steps unless it was completed before.
 *
 * @param before the claim as this machine knew it, if it did
 * @returns the claim as last seen
 * @throws CliError why the claim isn't completed
 */
export async function showWork(
  events: ClaimEvents,
  { show, isFull = false }: Presenter,
  before: DomainClaim | undefined,
  io: Io,
): Promise<DomainClaim> {
  const { format } = io.settings
  const isEvents = format === 'jsonl'
  const { claim, error } = await consume(events, (event) =>
    isEvents ? writeEvent(event, io) : show(event),
  ).finally(() => io.progress.end())
  const isShown = isFull && error !== undefined && format === 'table'
  if (!isEvents && !isShown) await writeClaim(claim, io)
  if (error !== undefined) throw error
  const isCompleted = (one: DomainClaim) => judge(one, io.clock.now()).phase === 'completed'
  if (isCompleted(claim) && !(before && isCompleted(before))) await writeNextSteps(claim, io)
  return claim
}

/** How people follow a claim without a terminal's help: a line for each event that says something. */
export async function noteEvent({ event, claim, text, hint }: ClaimEvent, io: Io): Promise<void> {
  if (event === 'warning') await io.warn(text)
  else if (event !== 'done') await io.say(`${nameOf(claim)}: ${text}`)
  if (hint !== undefined && !io.settings.quiet) await io.hint(hint)
}

/**
 * Writes the next steps of a claim that has just been completed, numbered: the domain arrives brand new, so its previous owner's
 * records are useless (section 3.4), and this program doesn't have the operations for it.
 */
async function writeNextSteps(claim: DomainClaim, io: Io): Promise<void> {
  if (io.settings.quiet) return
  const name = nameOf(claim)
  await io.say(
    '',
    'Next steps:',
    `1. Fetch the domain ${name} from the API or the dashboard: it has new DKIM keys.`,
    "2. Publish its new DKIM records in DNS. The previous owner's records can't be reused.",
    '3. Ask the service to verify the domain. Only then can it send and receive e-mail.',
    `4. The TXT record at ${claim.record?.name ?? name} is no longer needed; remove it if you like.`,
  )
}
