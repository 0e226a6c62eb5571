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
}

const DNSSEC_MS = 2000

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

/** Compares the DS records with the keys and the dates of the signatures that a server of the zone has. */
export async function observeDnssec(
  zone: string,
  signers: readonly DelegationSigner[],
  server: DnsAddress,
  context: ResolutionContext,
): Promise<DnssecObservation | undefined> {
  const keyTags = signers.map((signer) => signer.keyTag)
  if (signers.length === 0) return { state: 'unsigned', keyTags, date: undefined }
  const { clock } = context.effects
  const deadline = Math.min(context.deadline, clock.monotonic() + DNSSEC_MS)
  const [keyReply, soaReply] = await Promise.all(
    (['DNSKEY', 'SOA'] as const).map((type) =>
      ask(server, { name: zone, type }, { deadline, dnssecOk: true }, context.effects),
    ),
  )
  const { message: keys } = answered(keyReply)
  const { message: soa } = answered(soaReply)
  // Without EDNS an answer has no signatures, and cut short it may lack the key that is wanted.
  if (keys?.aa !== true || keys.tc || keys.rcode !== 'NOERROR') return undefined
  const zoneKeys = pick(keys, 'DNSKEY')
  if (zoneKeys.length === 0) return { state: 'no-key', keyTags, date: undefined }
  const fits = signers.map((signer) => zoneKeys.map((key) => isDigestOf(signer, key, zone)))
  if (fits.flat().every((fit) => fit === false)) return { state: 'wrong-ds', keyTags, date: undefined }
  if (soa?.aa !== true || soa.tc || !soa.edns) return undefined
  const signatures = pick(soa, 'RRSIG').filter(({ covers }) => covers === 'SOA')
  return { keyTags, ...signatureState(signatures, Math.floor(clock.now() / 1000)) }
}

function answered(reply: Reply | undefined): { message: Message | undefined } {
  return { message: reply?.kind === 'answer' ? reply.message : undefined }
}

function pick<T extends 'DS' | 'DNSKEY' | 'RRSIG'>(message: Message, type: T) {
  return message.answers.filter(
    (record): record is Extract<Message['answers'][number], { type: T }> => record.type === type,
  )
}

const DIGESTS: Readonly<Record<number, string>> = { 1: 'sha1', 2: 'sha256', 4: 'sha384' }

/** RFC 4034 section 5.1.4; undefined for a kind of digest that is not known here. */
function isDigestOf(signer: DelegationSigner, key: ZoneKey, zone: string): boolean | undefined {
  const algorithm = DIGESTS[signer.digestType]
  if (algorithm === undefined) return undefined
  if (signer.algorithm !== key.algorithm) return false
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
): Pick<DnssecObservation, 'state' | 'date'> {
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
