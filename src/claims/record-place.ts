import type { Context } from '../context.ts'
import { dnsHostOf } from '../dns/hosts.ts'
import { type FoundZone, findZone } from '../dns/resolution/find-zone.ts'
import { dnsEffects } from '../dns/wire/effects.ts'
import { checkName, relativeName } from '../dns/wire/name.ts'
import type { DnsSettings } from './precheck.ts'

/** Where a record goes at a DNS provider, which asks for a zone and a host. */
export interface RecordPlace {
  readonly zone: string
  /** The name relative to the zone; `@` if it is the zone itself. */
  readonly host: string
  /** Who hosts the zone, if its name servers tell. */
  readonly dnsHost?: string | undefined
}

export type PlaceContext = Pick<Context, 'clock' | 'dns' | 'interrupts' | 'random'>

/** The longest that a command waits to show a host, in milliseconds. */
const TIMEOUT_MS = 4000

/**
 * Finds the zone that holds a record; undefined if DNS doesn't show it within four seconds, or if the name is invalid.
 *
 * @param zone if it's known already
 */
export async function findPlace(
  name: string,
  context: PlaceContext,
  settings: DnsSettings,
  zone?: string,
): Promise<RecordPlace | undefined> {
  const checked = checkName(name)
  if (!checked.ok) return undefined
  const { resolvers = 'system', authoritativePort } = settings
  const found: FoundZone | undefined =
    zone === undefined
      ? await findZone(
          checked.ascii,
          { resolvers, authoritativePort, timeoutMs: TIMEOUT_MS },
          dnsEffects(context),
        )
      : { zone, nameservers: [] }
  if (found === undefined) return undefined
  return {
    zone: found.zone,
    host: relativeName(checked.ascii, found.zone),
    dnsHost: dnsHostOf(found.nameservers) ?? undefined,
  }
}

/** What to type into a provider's "host" field. */
export function hostText(place: RecordPlace | undefined): string {
  return place === undefined
    ? 'the name without your zone, @ for the zone itself'
    : `${place.host}   (in the zone ${place.zone})`
}
