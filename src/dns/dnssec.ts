import { createHash } from 'node:crypto'
import type { DnsServerAddress } from '../context.ts'
import { type CheckRun, isAnswerOrDenial } from './locate.ts'
import type { FoundZone, ZoneDnssecObservation } from './observations.ts'
import { queryDns } from './wire/ask.ts'
import type { DnsReply, RecordOf } from './wire/message.ts'

/**
 * Key algorithms that validators must or should support (RFC 8624 section 3.1). They treat a zone as unsigned if all its DS
 * records have other algorithms (RFC 4035 section 5.2).
 */
const ALGORITHMS: readonly number[] = [5, 7, 8, 10, 13, 14, 15, 16]
const DIGESTS: Readonly<Record<number, string>> = { 1: 'sha1', 2: 'sha256', 4: 'sha384' }

/**
 * Compares the DS records at the parent zone with the DNSKEY records of the zone, and checks whether the signatures of the zone's
 * SOA record have expired. Returns null if the state is unknown, for example after a timeout.
 *
 * @param server an authoritative server of the zone
 */
export async function observeDnssec(
  { zone, parent }: FoundZone,
  server: DnsServerAddress,
  check: CheckRun,
): Promise<ZoneDnssecObservation | null> {
  if (parent === null) return null
  const ds = await queryDns(parent, { name: zone, type: 'DS', dnssecOk: true }, check)
  // A truncated response might lack the DS record that matches the zone's DNSKEY. And only NOERROR and NXDOMAIN prove the absence
  // of DS records.
  if (ds?.aa !== true || ds.tc || !isAnswerOrDenial(ds)) return null
  const signers = recordsOf(ds, 'DS').filter(
    ({ algorithm, digestType }) => ALGORITHMS.includes(algorithm) && digestType in DIGESTS,
  )
  const observed = (state: ZoneDnssecObservation['state'], keys?: DnsReply) => ({
    state,
    keyTags: signers.map(({ keyTag }) => keyTag),
    keys: [ds, keys].flatMap((message) => (message === undefined ? [] : toComparableKeyData(message))),
  })
  if (signers.length === 0) return observed('unsigned')
  const signed = (type: 'DNSKEY' | 'SOA') => queryDns(server, { name: zone, type, dnssecOk: true }, check)
  const [dnskey, soa] = await Promise.all([signed('DNSKEY'), signed('SOA')])
  // Without a complete authoritative response, the DNSKEY that matches the DS record might be missing, so the state is unknown.
  if (dnskey?.aa !== true || dnskey.tc || dnskey.rcode !== 'NOERROR') return null
  const keys = recordsOf(dnskey, 'DNSKEY')
  if (keys.length === 0) return observed('no_key')
  if (!signers.some((signer) => keys.some((key) => isDigestOf(signer, key, zone))))
    return observed('wrong_ds')
  if (soa?.aa !== true) return null
  const signatures = recordsOf(soa, 'RRSIG').filter(({ typeCovered }) => typeCovered === 'SOA')
  if (signatures.length === 0) return null
  const now = Math.floor(check.effects.clock.now() / 1000)
  // One unexpired signature suffices, so use the latest expiration. `| 0` compares times as serial numbers modulo 2^32 (RFC 4034
  // section 3.1.5).
  const latest = Math.max(...signatures.map(({ expiration }) => (expiration - now) | 0))
  return observed(latest < 0 ? 'expired' : 'ok', dnskey)
}

/**
 * Returns the DS and DNSKEY records in the answers of a response, and the signatures over DNSKEY, as texts to compare: without
 * TTLs, because a resolver's cache counts these down.
 */
export function toComparableKeyData({ answers }: DnsReply): string[] {
  const ofKeys = answers.filter(
    (one) =>
      one.type === 'DS' || one.type === 'DNSKEY' || (one.type === 'RRSIG' && one.typeCovered === 'DNSKEY'),
  )
  return ofKeys.map(({ ttl: _ttl, ...record }) => JSON.stringify(record))
}

function recordsOf<T extends 'DS' | 'DNSKEY' | 'RRSIG'>({ answers }: DnsReply, type: T): RecordOf<T>[] {
  return answers.filter((record): record is RecordOf<T> => record.type === type)
}

/** Whether a DS record holds the digest of a key (RFC 4034 section 5.1.4). */
function isDigestOf(ds: RecordOf<'DS'>, key: RecordOf<'DNSKEY'>, zone: string): boolean {
  const hash = DIGESTS[ds.digestType]
  if (hash === undefined || ds.algorithm !== key.algorithm) return false
  const labels = zone.split('.').map((label) => Buffer.from(label, 'latin1'))
  const owner = labels.flatMap((label) => [Buffer.from([label.length]), label])
  // Start of the DNSKEY RDATA: flags, protocol (always 3) and algorithm; the key follows (RFC 4034 section 2.1).
  const data = Buffer.from([key.flags >> 8, key.flags & 0xff, 3, key.algorithm])
  return createHash(hash)
    .update(Buffer.concat([...owner, Buffer.from([0]), data, key.key]))
    .digest()
    .equals(ds.digest)
}
