import { RECORD_COLUMNS } from '../claims/columns.ts'
import { describeDomain, getClaimState } from '../claims/lifecycle.ts'
import { requireRecord } from '../claims/record.ts'
import { explainHost, findRecordLocation } from '../claims/record-location.ts'
import { createDnsWaitPrinter } from '../claims/watch-dns.ts'
import type { ClaimEvent } from '../claims/workflow.ts'
import { type ClaimEventPresenter, printEventText } from '../claims/write.ts'
import type { Io } from '../terminal/io.ts'
import { createRenderContext } from '../terminal/output.ts'

/** Titles of the completed steps, by the event that completes the step. */
const STEP_TITLES: Partial<Record<ClaimEvent['event'], string>> = {
  created: 'Claim',
  published: 'Published',
  dns: 'Seen in DNS',
  verification: 'Verification',
  done: 'Completed',
}

/**
 * Creates the presenter for the command `mailclaim claim`. Shows progress on stderr: a checked-off line per completed step, and a
 * progress line that says what is awaited.
 *
 * @param publishes whether a `--publish` command adds the record; if not, the user is told to add it
 */
export function createChecklist(publishes: boolean, io: Io): ClaimEventPresenter {
  const showRecord = async ({ claim }: ClaimEvent) => {
    const { name, value } = requireRecord(claim)
    const location = await findRecordLocation(name, io)
    if (io.settings.quiet) return
    await io.say(publishes ? 'The TXT record:' : 'Add this TXT record to DNS:')
    const { renderDetailView } = await import('../terminal/detail-view.ts')
    const record = { ...claim.record, host: explainHost(location), name, value }
    const layout = await createRenderContext(io, io.stderr)
    await io.stderr.write(renderDetailView(record, RECORD_COLUMNS, layout))
  }
  const reportWait = createDnsWaitPrinter(io)
  return {
    showsClaim: true,
    async show(event) {
      const { claim, text, error, report, nextInMs } = event
      switch (event.event) {
        case 'warning':
          // Remove the progress line before the warning: the wait that it describes may be over.
          await io.progress.end()
          return printEventText(event, io)
        case 'record':
          return getClaimState(claim, io.clock.now()).needsRecord ? showRecord(event) : undefined
        case 'waiting':
        case 'status':
          return report ? reportWait(report, text, nextInMs) : io.progress.update(text)
        default: {
          const title = STEP_TITLES[event.event]
          const isCompleted = getClaimState(claim, io.clock.now()).phase === 'completed'
          const news = event.event === 'created' ? `${describeDomain(claim)}, ${text}` : text
          // For a completed claim, show the domain name instead of the status, which stdout shows at the end.
          const what = isCompleted ? describeDomain(claim) : news
          if (error === undefined && !(isCompleted && event.event === 'created'))
            await io.progress.succeed(`${title}: ${what}`)
        }
      }
    },
  }
}
