import type { DnsAddress } from '../../context.ts'
import type { Message } from '../wire/message.ts'
import { isWithin, labelCount } from '../wire/name.ts'
import { addressesIn } from './host-addresses.ts'

/** A zone and its name servers by the parent's or the zone's NS records: hosts in that order, with the addresses known so far. */
export interface Delegation {
  readonly zone: string
  readonly hosts: ReadonlyMap<string, readonly DnsAddress[]>
}

/** Working zones have fewer; a hostile one could name thousands. */
export const MAX_HOSTS = 26

/** The NS records of exactly this zone, from the answer or from a referral. */
export function delegationFrom(message: Message, zone: string, port: number): Delegation | undefined {
  if (message.rcode !== 'NOERROR') return undefined
  const answer = [...message.answers, ...message.authority].filter((r) => r.type === 'NS' && r.name === zone)
  const hosts = answer.slice(0, MAX_HOSTS).flatMap((record) => (record.type === 'NS' ? [record.target] : []))
  if (hosts.length === 0) return undefined
  return { zone, hosts: new Map(hosts.map((host) => [host, addressesIn(message, host, port)])) }
}

/** A referral: NS records of a zone further down towards the name (RFC 1034 section 4.3.2). */
export function referralFrom(
  message: Message,
  zone: string,
  name: string,
  port: number,
): Delegation | undefined {
  const owner = message.authority.find(
    (record) =>
      record.type === 'NS' &&
      isWithin(name, record.name) &&
      labelCount(record.name) > labelCount(zone) &&
      isWithin(record.name, zone),
  )?.name
  return owner === undefined || message.answers.length > 0 ? undefined : delegationFrom(message, owner, port)
}
