import { createHash } from 'node:crypto'
import type { DnsAddress } from '../../context.ts'
import { askResolver } from '../resolution/ask-resolver.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask, type Reply } from '../wire/exchange.ts'
import type { DelegationSigner, Message, Signature, ZoneKey } from '../wire/message.ts'

/**
 * What the DS records in the parent zone and the zone's own keys and signatures say, without checking any signature:
 *
 * - `unsigned`: no DS record, so nothing has to be signed
 * - `ok`: a DS record fits a key, and the signatures are of today
 * - `no-key`: there is a DS record, but the zone has no key: it is not signed (any more)
 * - `wrong-ds`: there are keys, and no DS record fits one
 * - `no-signature`: a DS record fits a key, but the zone's SOA record is not signed
 * - `expired`, `not-yet-valid`: by their dates, all signatures of the SOA record are
 */
export interface DnssecObservation {
  readonly state: 'unsigned' | 'ok' | 'no-key' | 'wrong-ds' | 'no-signature' | 'expired' | 'not-yet-valid'
  readonly keyTags: readonly number[]
  /** Seconds since 1970: the latest end, or the earliest start, of a signature. */
  readonly date: number | undefined
  /** The servers whose signatures are not valid today, where those of another server are. */
  readonly outdated?: readonly OutdatedSignatures[]
}

/** Signatures of one server, by their dates. */
export interface OutdatedSignatures {
  readonly server: DnsAddress
  readonly state: 'no-signature' | 'expired' | 'not-yet-valid'
  readonly date: number | undefined
}

const DNSSEC_MS = 2000
/** The signatures of so many servers are looked at, with one question each. */
const MOST_SIGNATURES = 8
/** What validators implement (RFC 8624 sections 3.1 and 3.3). */
const ALGORITHMS: readonly number[] = [5, 7, 8, 10, 13, 14, 15, 16]
const DIGESTS: Readonly<Record<number, string>> = { 1: 'sha1', 2: 'sha256', 4: 'sha384' }

/** Whether the parent zone has DS records for this one; undefined where nobody says so. */
export async function observeDelegationSigners(
  { delegation, parent, standIn }: Located,
  context: ResolutionContext,
): Promise<readonly DelegationSigner[] | undefined> {
  // The name stands for the zone there, and it may not exist.
  if (standIn) return undefined
  const question = { name: delegation.zone, type: 'DS' } as const
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + DNSSEC_MS)
  if (parent !== undefined) {
    const reply = await ask(parent.server, question, { deadline }, context.effects)
    const { message } = answered(reply)
    return message?.aa === true ? pick(message, 'DS') : undefined
  }
  // Every validating resolver asks for it by itself: no cache learns anything new.
  const [resolver] = context.resolvers
  if (resolver === undefined) return undefined
  const { message } = answered(await askResolver(resolver, question, { ...context, deadline }))
  return message?.ra === true && message.rcode === 'NOERROR' ? pick(message, 'DS') : undefined
}

/**
 * Compares the DS records with the keys that the first of the servers has, and the dates of the signatures that each of
 * them has.
 *
 * @param servers servers that answer for the zone; at least one.
 */
export async function observeDnssec(
  zone: string,
  signers: readonly DelegationSigner[],
  servers: readonly [DnsAddress, ...DnsAddress[]],
  context: ResolutionContext,
): Promise<DnssecObservation | undefined> {
  // A DS record that no validator understands does not make a zone signed (RFC 4035 section 5.2, RFC 6840 section 5.2).
  const understood = signers.filter(
    ({ algorithm, digestType }) => ALGORITHMS.includes(algorithm) && digestType in DIGESTS,
  )
  const keyTags = understood.map((signer) => signer.keyTag)
  if (understood.length === 0) return { state: 'unsigned', keyTags, date: undefined }
  const { clock } = context.effects
  const deadline = Math.min(context.deadline, clock.monotonic() + DNSSEC_MS)
  const askSigned = async (server: DnsAddress, type: 'DNSKEY' | 'SOA') =>
    answered(await ask(server, { name: zone, type }, { deadline, dnssecOk: true }, context.effects)).message
  const now = Math.floor(clock.now() / 1000)
  const [keys, ...dated] = await Promise.all([
    askSigned(servers[0], 'DNSKEY'),
    ...servers.slice(0, MOST_SIGNATURES).map(async (server) => {
      const soa = await askSigned(server, 'SOA')
      // Without EDNS an answer has no signatures.
      if (soa?.aa !== true || soa.rcode !== 'NOERROR' || soa.tc || !soa.edns) return []
      const signatures = pick(soa, 'RRSIG').filter(({ covers }) => covers === 'SOA')
      return [{ server, ...signatureState(signatures, now) }]
    }),
  ])
  // Cut short, it may lack the key that is wanted.
  if (keys?.aa !== true || keys.tc || keys.rcode !== 'NOERROR') return undefined
  const zoneKeys = pick(keys, 'DNSKEY')
  if (zoneKeys.length === 0) return { state: 'no-key', keyTags, date: undefined }
  if (!understood.some((signer) => zoneKeys.some((key) => isDigestOf(signer, key, zone))))
    return { state: 'wrong-ds', keyTags, date: undefined }
  const states = dated.flat()
  const best = states.find(({ state }) => state === 'ok') ?? states[0]
  if (best === undefined) return undefined
  const outdated =
    best.state === 'ok'
      ? states.flatMap(({ server, state, date }) => (state === 'ok' ? [] : [{ server, state, date }]))
      : []
  return { keyTags, state: best.state, date: best.date, ...(outdated.length > 0 ? { outdated } : {}) }
}

function answered(reply: Reply | undefined): { message: Message | undefined } {
  return { message: reply?.kind === 'answer' ? reply.message : undefined }
}

function pick<T extends 'DS' | 'DNSKEY' | 'RRSIG'>(message: Message, type: T) {
  return message.answers.filter(
    (record): record is Extract<Message['answers'][number], { type: T }> => record.type === type,
  )
}

/** RFC 4034 section 5.1.4. */
function isDigestOf(signer: DelegationSigner, key: ZoneKey, zone: string): boolean {
  const algorithm = DIGESTS[signer.digestType]
  if (algorithm === undefined || signer.algorithm !== key.algorithm) return false
  const owner = zone
    .split('.')
    .flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')])
  const head = Buffer.from([key.flags >> 8, key.flags & 0xff, 3, key.algorithm])
  const digest = createHash(algorithm)
    .update(Buffer.concat([...owner, Buffer.from([0]), head, key.key]))
    .digest()
  return digest.equals(signer.digest)
}

/** One signature that is valid today is enough. Times are serial numbers (RFC 4034 section 3.1.5). */
function signatureState(
  signatures: readonly Signature[],
  now: number,
): { state: OutdatedSignatures['state'] | 'ok'; date: number | undefined } {
  const until = (time: number) => (time - now) | 0
  if (signatures.length === 0) return { state: 'no-signature', date: undefined }
  if (signatures.some(({ inception, expiration }) => until(inception) <= 0 && until(expiration) >= 0))
    return { state: 'ok', date: undefined }
  const expired = signatures.filter(({ expiration }) => until(expiration) < 0)
  const [state, moments] =
    expired.length > 0
      ? (['expired', expired.map(({ expiration }) => until(expiration))] as const)
      : (['not-yet-valid', signatures.map(({ inception }) => until(inception))] as const)
  return { state, date: now + Math.max(...moments) }
}
