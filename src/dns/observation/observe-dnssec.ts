import { createHash } from 'node:crypto'
import type { DnsAddress } from '../../context.ts'
import { askResolver } from '../resolution/ask-resolver.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask, type Reply } from '../wire/exchange.ts'
import type { DelegationSigner, Message, Signature, ZoneKey } from '../wire/message.ts'

/**
 * What the DS records in the parent zone and the zone's own keys and signatures say, without verifying signatures:
 *
 * - `unsigned`: no DS record, so nothing has to be signed
 * - `ok`: a DS record matches a key, and the signatures are valid by their dates
 * - `no-key`: there is a DS record, but the zone has no key, so it isn't signed
 * - `wrong-ds`: there are keys, but no DS record matches one
 * - `no-signature`: a DS record matches a key, but the zone's SOA record isn't signed
 * - `expired`, `not-yet-valid`: all signatures of the SOA record are, by their dates
 */
export interface DnssecObservation {
  readonly state: 'unsigned' | 'ok' | 'no-key' | 'wrong-ds' | 'no-signature' | 'expired' | 'not-yet-valid'
  readonly keyTags: readonly number[]
  /** When the last signature expired, or the first one becomes valid; in seconds since 1970. */
  readonly date: number | undefined
  /** By this machine's clock, the parent zone's signatures aren't valid either: the clock is wrong. */
  readonly wrongClock?: true
  /** The servers whose signatures aren't valid today, if those of another server are. */
  readonly outdated?: readonly OutdatedSignatures[]
}

/** A server with signatures that aren't valid today. */
export interface OutdatedSignatures {
  readonly server: DnsAddress
  readonly state: 'no-signature' | 'expired' | 'not-yet-valid'
  readonly date: number | undefined
}

const DNSSEC_MS = 2000
/** The signatures of this many servers are checked, with one query each. */
const MAX_SIGNATURES = 8
/** What validators support (RFC 8624 sections 3.1 and 3.3). */
const ALGORITHMS: readonly number[] = [5, 7, 8, 10, 13, 14, 15, 16]
const DIGESTS: Readonly<Record<number, string>> = { 1: 'sha1', 2: 'sha256', 4: 'sha384' }

/** The DS records in the parent zone, and whether the parent's signatures of them are valid today. */
export interface SignedDelegation {
  readonly signers: readonly DelegationSigner[]
  readonly state: OutdatedSignatures['state'] | 'ok'
}

/** The DS records of the zone in its parent zone; undefined if nobody could be asked. */
export async function observeDelegationSigners(
  { delegation, parent, standIn }: Located,
  context: ResolutionContext,
): Promise<SignedDelegation | undefined> {
  const read = (message: Message): SignedDelegation => {
    const signatures = pick(message, 'RRSIG').filter(({ covers }) => covers === 'DS')
    const { state } = signatureState(signatures, Math.floor(context.effects.clock.now() / 1000))
    return { signers: pick(message, 'DS'), state }
  }
  // Then the zone is only the name itself, which may not exist.
  if (standIn) return undefined
  const question = { name: delegation.zone, type: 'DS' } as const
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + DNSSEC_MS)
  if (parent !== undefined) {
    const reply = await ask(parent.server, question, { deadline, dnssecOk: true }, context.effects)
    const message = messageOf(reply)
    return message?.aa === true ? read(message) : undefined
  }
  // Validating resolvers ask for DS records anyway, so this caches nothing new.
  const [resolver] = context.resolvers
  if (resolver === undefined) return undefined
  const message = messageOf(await askResolver(resolver, question, { ...context, deadline }))
  return message?.ra === true && message.rcode === 'NOERROR' ? read(message) : undefined
}

/**
 * Compares the DS records with the keys at one server that has any, and checks the dates of the signatures at each server.
 *
 * @param servers authoritative for the zone.
 */
export async function observeDnssec(
  zone: string,
  signers: readonly DelegationSigner[],
  servers: readonly [DnsAddress, ...DnsAddress[]],
  context: ResolutionContext,
): Promise<DnssecObservation | undefined> {
  // A DS record that validators don't support doesn't make a zone signed (RFC 4035 section 5.2, RFC 6840 section 5.2).
  const supported = signers.filter(
    ({ algorithm, digestType }) => ALGORITHMS.includes(algorithm) && digestType in DIGESTS,
  )
  const keyTags = supported.map((signer) => signer.keyTag)
  if (supported.length === 0) return { state: 'unsigned', keyTags, date: undefined }
  const { clock } = context.effects
  const deadline = Math.min(context.deadline, clock.monotonic() + DNSSEC_MS)
  const askSigned = async (server: DnsAddress, type: 'DNSKEY' | 'SOA') =>
    messageOf(await ask(server, { name: zone, type }, { deadline, dnssecOk: true }, context.effects))
  const now = Math.floor(clock.now() / 1000)
  const [keys, ...dated] = await Promise.all([
    askSigned(servers[0], 'DNSKEY'),
    ...servers.slice(0, MAX_SIGNATURES).map(async (server) => {
      const soa = await askSigned(server, 'SOA')
      // Answers without EDNS have no signatures.
      if (soa?.aa !== true || soa.rcode !== 'NOERROR' || soa.tc || !soa.edns) return []
      const signatures = pick(soa, 'RRSIG').filter(({ covers }) => covers === 'SOA')
      return [{ server, ...signatureState(signatures, now) }]
    }),
  ])
  const states = dated.flat()
  const keysOf = (message: Message | undefined) =>
    // A truncated answer may lack the matching key.
    message?.aa !== true || message.tc || message.rcode !== 'NOERROR' ? undefined : pick(message, 'DNSKEY')
  // If the first server's copy isn't signed, that of another provider may be.
  const signed =
    states.find(({ state }) => state === 'ok') ?? states.find(({ state }) => state !== 'no-signature')
  const firstKeys = keysOf(keys)
  const zoneKeys =
    firstKeys?.length === 0 && signed !== undefined
      ? keysOf(await askSigned(signed.server, 'DNSKEY'))
      : firstKeys
  if (zoneKeys === undefined) return undefined
  if (zoneKeys.length === 0) return { state: 'no-key', keyTags, date: undefined }
  if (!supported.some((signer) => zoneKeys.some((key) => isDigestOf(signer, key, zone))))
    return { state: 'wrong-ds', keyTags, date: undefined }
  const best = signed ?? states[0]
  if (best === undefined) return undefined
  const outdated =
    best.state === 'ok'
      ? states.flatMap(({ server, state, date }) => (state === 'ok' ? [] : [{ server, state, date }]))
      : []
  return { keyTags, state: best.state, date: best.date, ...(outdated.length > 0 ? { outdated } : {}) }
}

function messageOf(reply: Reply): Message | undefined {
  return reply.kind === 'answer' ? reply.message : undefined
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

/** One valid signature is enough. Times are serial numbers (RFC 4034 section 3.1.5). */
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
