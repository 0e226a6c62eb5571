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
  /** The servers whose signatures aren't valid, if those of another server are. */
  readonly invalid?: readonly InvalidSignatures[]
  /** The name has TXT records without a signature, while the zone's SOA record has one. */
  readonly unsignedTxt?: true
}

/** By the dates of signatures. */
type DateState = 'ok' | 'no-signature' | 'expired' | 'not-yet-valid'

/**
 * A server with signatures that aren't valid: by their dates, because no DS record covers its keys (`other-keys`), or because
 * another server with a DS record of its own doesn't publish the key that made them (`unshared-keys`; RFC 8901 section 2.1).
 */
export interface InvalidSignatures {
  readonly server: DnsAddress
  readonly state: Exclude<DateState, 'ok'> | 'other-keys' | 'unshared-keys'
  readonly date: number | undefined
  /** With `unshared-keys`: the key that made the signatures, and the server that lacks it. */
  readonly missing?: { readonly keyTag: number; readonly at: DnsAddress }
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
  readonly state: DateState
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
 * Compares the DS records with the keys at one server that has any and at those that sign with others, checks the dates and keys
 * of the SOA record's signatures at each server, and looks for a signature of the name's TXT records.
 *
 * @param servers authoritative for the zone; the first one is asked for the TXT records.
 */
export async function observeDnssec(
  { name, zone }: { readonly name: string; readonly zone: string },
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
  const askSigned = async (server: DnsAddress, type: 'DNSKEY' | 'SOA' | 'TXT') => {
    const question = { name: type === 'TXT' ? name : zone, type }
    const message = messageOf(await ask(server, question, { deadline, dnssecOk: true }, context.effects))
    // A truncated answer may lack the matching key.
    return message?.aa === true && message.rcode === 'NOERROR' && !message.tc ? message : undefined
  }
  const readKeys = async (server: DnsAddress) => {
    const message = await askSigned(server, 'DNSKEY')
    return message && pick(message, 'DNSKEY')
  }
  const now = Math.floor(clock.now() / 1000)
  const [firstKeys, txt, ...dated] = await Promise.all([
    readKeys(servers[0]),
    askSigned(servers[0], 'TXT'),
    ...servers.slice(0, MAX_SIGNATURES).map(async (server) => {
      const soa = await askSigned(server, 'SOA')
      // Answers without EDNS have no signatures.
      if (soa?.edns !== true) return []
      const signatures = pick(soa, 'RRSIG').filter(({ covers }) => covers === 'SOA')
      return [{ server, signatures, ...signatureState(signatures, now) }]
    }),
  ])
  const states = dated.flat()
  if (firstKeys === undefined) return undefined
  const hasSigner = (keys: readonly ZoneKey[]) =>
    supported.some((signer) => keys.some((key) => isDigestOf(signer, key, zone)))
  const signedByOthers = (keys: readonly ZoneKey[]) =>
    states.filter(({ state, signatures }) => state === 'ok' && !signatures.some((one) => isMadeBy(one, keys)))
  // If the first server's copy isn't signed, or no DS record covers its keys, that of another provider may be right.
  const signed =
    states.find(({ state }) => state === 'ok') ?? states.find(({ state }) => state !== 'no-signature')
  const others = firstKeys.length === 0 ? [signed] : hasSigner(firstKeys) ? [] : signedByOthers(firstKeys)
  const other = others.find((one) => one !== undefined && one.server !== servers[0])
  const otherKeys = other && (await readKeys(other.server))
  const isOther = other !== undefined && (firstKeys.length === 0 || (otherKeys && hasSigner(otherKeys)))
  const zoneKeys = isOther ? otherKeys : firstKeys
  if (zoneKeys === undefined) return undefined
  if (zoneKeys.length === 0) return { state: 'no-key', keyTags, date: undefined }
  if (!hasSigner(zoneKeys)) return { state: 'wrong-ds', keyTags, date: undefined }
  const best = signed ?? states[0]
  if (best === undefined) return undefined
  const reference = isOther ? other.server : servers[0]
  const own = states.find(({ server }) => server === reference)
  const otherSigners = states.filter(
    ({ state, server, signatures }) =>
      state === 'ok' &&
      server !== reference &&
      !signatures.some((one) => own?.signatures.some(isSameSigner(one))),
  )
  const mismatches = await Promise.all(
    otherSigners.map(async (signer): Promise<InvalidSignatures[]> => {
      const { server } = signer
      const keys = server === servers[0] ? firstKeys : await readKeys(server)
      if (keys === undefined) return []
      const unpublished = missingKey(signer, { at: reference, keys: zoneKeys })
      if (!hasSigner(keys)) return unpublished.map(() => ({ server, state: 'other-keys', date: undefined }))
      // During a key rollover, a copy that is behind or ahead still shares a key that a DS record covers.
      const shared = keys.filter((key) => zoneKeys.some((one) => isSameKey(one, key)))
      return hasSigner(shared) ? [] : [...unpublished, ...missingKey(own, { at: server, keys })]
    }),
  )
  const invalid: InvalidSignatures[] = [
    ...states.flatMap(({ server, state, date }) => (state === 'ok' ? [] : [{ server, state, date }])),
    ...mismatches.flat(),
  ]
  return {
    keyTags,
    state: best.state,
    date: best.date,
    ...(best.state === 'ok' && invalid.length > 0 ? { invalid } : {}),
    ...(states[0]?.server === servers[0] && states[0].state === 'ok' && lacksSignature(txt, name)
      ? { unsignedTxt: true }
      : {}),
  }
}

/** Whether an answer has TXT records at the name itself, but no signature of them. */
function lacksSignature(message: Message | undefined, name: string): boolean {
  return (
    message?.edns === true &&
    message.answers.some((record) => record.type === 'TXT' && record.name === name) &&
    !pick(message, 'RRSIG').some((record) => record.covers === 'TXT' && record.name === name)
  )
}

function messageOf(reply: Reply): Message | undefined {
  return reply.kind === 'answer' ? reply.message : undefined
}

function pick<T extends 'DS' | 'DNSKEY' | 'RRSIG'>(message: Message, type: T) {
  return message.answers.filter(
    (record): record is Extract<Message['answers'][number], { type: T }> => record.type === type,
  )
}

interface Signer {
  readonly server: DnsAddress
  readonly signatures: readonly Signature[]
}

/** The signer, if another server doesn't publish any key that made its signatures. */
function missingKey(
  signer: Signer | undefined,
  { at, keys }: { readonly at: DnsAddress; readonly keys: readonly ZoneKey[] },
): InvalidSignatures[] {
  const [signature] = signer?.signatures ?? []
  if (signer === undefined || signature === undefined) return []
  if (signer.signatures.some((one) => isMadeBy(one, keys))) return []
  const missing = { keyTag: signature.keyTag, at }
  return [{ server: signer.server, state: 'unshared-keys', date: undefined, missing }]
}

const isSameSigner = (one: Signature) => (other: Signature) =>
  one.keyTag === other.keyTag && one.algorithm === other.algorithm

function isMadeBy({ keyTag, algorithm }: Signature, keys: readonly ZoneKey[]): boolean {
  return keys.some((key) => key.algorithm === algorithm && keyTagOf(key) === keyTag)
}

function isSameKey(one: ZoneKey, other: ZoneKey): boolean {
  return one.algorithm === other.algorithm && Buffer.from(one.key).equals(other.key)
}

/** RFC 4034 appendix B. */
function keyTagOf(key: ZoneKey): number {
  const sum = keyData(key).reduce((total, byte, index) => total + (index % 2 === 0 ? byte << 8 : byte), 0)
  return (sum + (sum >>> 16)) & 0xffff
}

/** RFC 4034 section 2.1. */
const keyData = ({ flags, algorithm, key }: ZoneKey) =>
  Buffer.concat([Buffer.from([flags >> 8, flags & 0xff, 3, algorithm]), key])

/** RFC 4034 section 5.1.4. */
function isDigestOf(signer: DelegationSigner, key: ZoneKey, zone: string): boolean {
  const algorithm = DIGESTS[signer.digestType]
  if (algorithm === undefined || signer.algorithm !== key.algorithm) return false
  const owner = zone
    .split('.')
    .flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')])
  const digest = createHash(algorithm)
    .update(Buffer.concat([...owner, Buffer.from([0]), keyData(key)]))
    .digest()
  return digest.equals(signer.digest)
}

/** One valid signature is enough. Times are serial numbers (RFC 4034 section 3.1.5). */
function signatureState(
  signatures: readonly Signature[],
  now: number,
): { state: DateState; date: number | undefined } {
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
