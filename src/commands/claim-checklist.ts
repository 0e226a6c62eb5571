import { judge, nameOf } from '../claims/lifecycle.ts'
import { findPlace, hostText } from '../claims/place.ts'
import { recordOf } from '../claims/record.ts'
import type { ClaimEvent } from '../claims/workflow.ts'
import type { Presenter } from '../claims/write.ts'
import type { Io } from '../terminal/io.ts'
import { sanitizeLines } from '../terminal/sanitize.ts'
import { formatDuration } from '../terminal/time.ts'

/** The steps of the workflow that people see ticked off. */
const TITLES: Partial<Record<ClaimEvent['event'], string>> = {
  created: 'Claim',
  published: 'Published',
  dns: 'Seen in DNS',
  verification: 'Verification',
  done: 'Completed',
}

/**
 * How a person follows the workflow of a claim on stderr: a line for each step that is done, and what it waits for.
 *
 * @param publishes whether a command adds the record, rather than the person
 */
export function createChecklist(publishes: boolean, io: Io): Presenter {
  const showRecord = async ({ claim }: ClaimEvent) => {
    const { name, value } = recordOf(claim)
    const place = await findPlace(name, io)
    const lines = [
      publishes ? 'The TXT record:' : 'Add this TXT record to DNS:',
      `  host       ${hostText(place)}`,
      `  full name  ${name}`,
      `  value      ${value}`,
      ...(place?.dnsHost === undefined ? [] : [`  DNS host   ${place.dnsHost}`]),
    ]
    // Uncut, to be copied.
    if (!io.settings.quiet) await io.stderr.write(`${sanitizeLines(lines.join('\n'))}\n`)
  }
  return {
    isFull: true,
    async show(event) {
      const { claim, text, error, nextInMs } = event
      switch (event.event) {
        case 'warning':
          // What it waited for before may no longer be so.
          await io.progress.end()
          return io.warn(text)
        case 'record':
          return judge(claim, io.clock.now()).needsRecord ? showRecord(event) : undefined
        case 'waiting':
        case 'status': {
          const next = nextInMs === undefined ? '' : `; next check in ${formatDuration(nextInMs / 1000)}`
          return io.progress.update(`${text}${next}`)
        }
        default: {
          const title = TITLES[event.event]
          const isCompleted = judge(claim, io.clock.now()).phase === 'completed'
          // The claim that follows says what that means.
          const what = isCompleted
            ? nameOf(claim)
            : event.event === 'created'
              ? `${nameOf(claim)}, ${text}`
              : text
          if (error === undefined && !(isCompleted && event.event === 'created'))
            await io.progress.succeed(`${title}: ${what}`)
        }
      }
    },
  }
}
