import type { DnsAddress } from '../../context.ts'
import { findHostAddresses } from './host-walk.ts'
import type { HostAddresses, ResolutionContext } from './resolution-context.ts'

export function createResolutionContext(
  options: Omit<ResolutionContext, 'resolveHost' | 'responsive'>,
): ResolutionContext {
  const responsive = new Set<DnsAddress>()
  const hosts = new Map<string, Promise<HostAddresses>>()
  const resolveHost = (host: string): Promise<HostAddresses> => {
    const running = hosts.get(host) ?? findHostAddresses(host, context)
    // Callers that still wait see the rejection.
    running.catch(() => undefined)
    hosts.set(host, running)
    return running
  }
  const context = { ...options, responsive, resolveHost }
  return context
}
