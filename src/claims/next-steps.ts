import type { Context } from '../context.ts'
import type { DomainClaim } from '../service/types.ts'
import type { Settings } from '../settings/settings.ts'
import { note } from '../terminal/notices.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { nameOf } from './lifecycle.ts'

/**
 * What is left to do after completion: the domain arrives brand new, so the records of its old owner are of no use
 * (interface, section 3.4). The operations for it are outside this program.
 */
export function nextSteps(claim: DomainClaim): readonly string[] {
  return [
    `Fetch the domain ${nameOf(claim)} from the API or the dashboard: it has new DKIM keys of its own.`,
    'Publish its new DKIM record(s) in DNS. The records of the previous owner cannot be reused.',
    'Ask the service to verify the domain. Only then can it send and receive e-mail.',
    `The TXT record ${claim.record?.name ?? nameOf(claim)} has done its work and can be removed.`,
  ]
}

/** Says on stderr what is left to do, a numbered line each. */
export async function sayNextSteps(claim: DomainClaim, context: Context, settings: Settings): Promise<void> {
  const { wrap } = await import('../terminal/measure.ts')
  const columns = context.stderr.columns ?? Number.POSITIVE_INFINITY
  const steps = nextSteps(claim).map((step, at) => {
    const [first = '', ...rest] = wrap(sanitizeLine(step), columns - 5)
    return [`  ${at + 1}. ${first}`, ...rest.map((piece) => `     ${piece}`)].join('\n')
  })
  const heading = wrap(`${sanitizeLine(nameOf(claim))} is yours. What is left to do:`, columns)
  await note(['', ...heading, ...steps].join('\n'), context, settings)
}
