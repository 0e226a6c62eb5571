import { findHostAddresses, findServersAbove, walkToHost } from './host-walk.ts'
import type { ResolutionContext } from './resolution-context.ts'

export function createResolutionContext(
  options: Omit<ResolutionContext, 'resolveHost' | 'walkToHost' | 'responsive'>,
): ResolutionContext {
  // The hosts of one provider share a zone.
  const serversAbove = once((domain) => findServersAbove(domain, context))
  const context: ResolutionContext = {
    ...options,
    responsive: new Set(),
    resolveHost: once((host) => findHostAddresses(host, context)),
    walkToHost: once((host) => walkToHost(host, serversAbove, context)),
  }
  return context
}

/** Looks each name up once. */
function once<T>(lookUp: (name: string) => Promise<T>): (name: string) => Promise<T> {
  const running = new Map<string, Promise<T>>()
  return (name) => {
    const found = running.get(name) ?? lookUp(name)
    // Callers that still wait see the rejection.
    found.catch(() => undefined)
    running.set(name, found)
    return found
  }
}
