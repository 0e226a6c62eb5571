import type { Context } from '../../context.ts'
import { registeredDomainOf } from '../../dns/resolution/registry.ts'
import { rememberAnswers } from '../../dns/resolution/remember-answers.ts'
import { shareNetwork } from '../../dns/wire/shared-network.ts'

/** What the work on several domains shares: one network for DNS with what it has learned, and the signal that stops the run. */
export function shareContext(context: Context, jobs: number, signal: AbortSignal): Context {
  const { clock, dns, interrupts } = context
  return {
    ...context,
    dns: rememberAnswers(shareNetwork(dns, clock, { checks: jobs, zoneOf: registeredDomainOf }), clock),
    interrupts: { ...interrupts, signal },
  }
}

/** Requests of which those that change something get their answer although the run stops: otherwise nobody would know of it. */
export function answered({ http, interrupts }: Pick<Context, 'http' | 'interrupts'>): Context['http'] {
  return {
    close: () => http.close(),
    send(request) {
      const { method, signal } = request
      return http.send(
        method === 'GET' || signal === undefined ? request : { ...request, signal: interrupts.signal },
      )
    },
  }
}

/**
 * Programs that change DNS, of which none begins once the run stops. Those that run then are waited for, unless a person
 * interrupts them: a change that is stopped halfway is worse than a late one.
 */
export function keepPrograms(
  { programs, interrupts }: Pick<Context, 'programs' | 'interrupts'>,
  stop: AbortSignal,
): Context['programs'] & { running(): number } {
  let running = 0
  return {
    ...programs,
    running: () => running,
    async run(request) {
      stop.throwIfAborted()
      running += 1
      try {
        return await programs.run({ ...request, signal: interrupts.signal })
      } finally {
        running -= 1
      }
    },
  }
}
