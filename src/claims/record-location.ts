import { formatDnsProviders } from '../dns/hosts.ts'
import { lookUpTxtInZone } from '../dns/lookup.ts'
import { createDnsEffects } from '../dns/wire/ask.ts'
import { formatHostField, parseDomainName } from '../dns/wire/name.ts'
import { getDnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { createDeadline } from '../timeout.ts'

/** Location of a record in the form in which DNS providers ask for it: a zone, and a host within the zone. */
export interface RecordLocation {
  readonly zone: string
  /** The record's name relative to the zone; `@` at the zone's apex. */
  readonly host: string
  /** DNS provider of the zone, according to its name servers; null if unknown. */
  readonly dnsProvider: string | null
}

const TIMEOUT_MS = 4000

/** Finds the zone of a record in DNS; undefined if the zone isn't found in time, or if the name is invalid. */
export async function findRecordLocation(name: string, io: Io): Promise<RecordLocation | undefined> {
  const checked = parseDomainName(name)
  if (!checked.ok) return undefined
  const request = { ...getDnsSettings(io.settings), deadline: createDeadline(TIMEOUT_MS, io.clock) }
  const { zone, nameservers } = await lookUpTxtInZone(checked.ascii, request, createDnsEffects(io))
  if (zone === null) return undefined
  return { zone, host: formatHostField(checked.ascii, zone), dnsProvider: formatDnsProviders(nameservers) }
}

/** Returns what the user enters as "host" at the DNS provider, and in which zone; general instructions without a location. */
export function explainHost(location: RecordLocation | undefined): string {
  if (location === undefined) return 'the name without your zone, @ for the zone itself'
  return `${location.host}   (in the zone ${location.zone}${location.dnsProvider ? `, hosted by ${location.dnsProvider}` : ''})`
}
