import type { Context } from '../context.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { note } from '../terminal/notices.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { nameOf } from './lifecycle.ts'
import type { RecordPlace } from './record-place.ts'

/**
 * What to do after completion: the domain arrives brand new, so its previous owner's records are useless (section 3.4).
 * This program doesn't have the operations for it.
 */
export function nextSteps(
  claim: DomainClaim,
  place: RecordPlace | undefined,
  unpublished = false,
): readonly string[] {
  const host = place === undefined ? '' : ` (host ${place.host} in the zone ${place.zone})`
  return [
    `Fetch the domain ${nameOf(claim)} from the API or the dashboard: it has new DKIM keys.`,
    "Publish its new DKIM records in DNS. The previous owner's records can't be reused.",
    'Ask the service to verify the domain. Only then can it send and receive e-mail.',
    ...(unpublished
      ? []
      : [
          `The TXT record at ${claim.record?.name ?? nameOf(claim)}${host} is no longer needed; remove it if you like.`,
        ]),
  ]
}

/** Writes the next steps to stderr, numbered. */
export async function writeNextSteps(
  claim: DomainClaim,
  place: RecordPlace | undefined,
  context: Pick<Context, 'stderr'>,
  settings: Pick<Settings, 'quiet'>,
  unpublished = false,
): Promise<void> {
  const { wrap } = await import('../terminal/measure.ts')
  const columns = context.stderr.columns ?? Number.POSITIVE_INFINITY
  const steps = nextSteps(claim, place, unpublished).map((step, at) => {
    const [first = '', ...rest] = wrap(sanitizeLine(step), columns - 5)
    return [`  ${at + 1}. ${first}`, ...rest.map((line) => `     ${line}`)].join('\n')
  })
  const heading = wrap(`${sanitizeLine(nameOf(claim))} is yours. Next steps:`, columns)
  await note(['', ...heading, ...steps].join('\n'), context, settings)
}
