import { dnsHostOf } from '../dns/hosts.ts'
import { lookUpTxt } from '../dns/lookup.ts'
import { dnsEffects } from '../dns/wire/ask.ts'
import { checkName, relativeName } from '../dns/wire/name.ts'
import { dnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { createDeadline } from '../timeout.ts'

/** Where a record goes at a DNS provider, which asks for a zone and a host. */
export interface RecordPlace {
  readonly zone: string
  /** The name relative to the zone; `@` if it is the zone itself. */
  readonly host: string
  /** Who hosts the zone, if its name servers tell. */
  readonly dnsHost?: string | undefined
}

/** The longest that a command waits to show a host, in milliseconds. */
const TIMEOUT_MS = 4000

/** Finds the zone that holds a record; undefined if DNS doesn't show it within four seconds, or if the name is invalid. */
export async function findPlace(name: string, io: Io): Promise<RecordPlace | undefined> {
  const checked = checkName(name)
  if (!checked.ok) return undefined
  const request = { ...dnsSettings(io.settings), deadline: createDeadline(TIMEOUT_MS, io.clock) }
  const found = await lookUpTxt(checked.ascii, request, dnsEffects(io))
  const { zone, nameservers } = found
  if (zone === null) return undefined
  return {
    zone,
    host: relativeName(checked.ascii, zone),
    dnsHost: dnsHostOf(nameservers) ?? undefined,
  }
}

/** What to type into a provider's "host" field. */
export function hostText(place: RecordPlace | undefined): string {
  return place === undefined
    ? 'the name without your zone, @ for the zone itself'
    : `${place.host}   (in the zone ${place.zone}${place.dnsHost ? `, hosted by ${place.dnsHost}` : ''})`
}
