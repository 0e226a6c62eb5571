import packet from 'dns-packet'
import { canonicalAddress } from './address.ts'

export type QuestionType = 'TXT' | 'SOA' | 'NS' | 'A' | 'AAAA' | 'CNAME' | 'DS' | 'DNSKEY'

export interface Question {
  /** Lowercase, without the trailing dot; the root is `.`. */
  readonly name: string
  readonly type: QuestionType
}

export interface Soa {
  readonly zone: string
  /** The zone's first server (RFC 1035 section 3.3.13): copies of one zone have the same. */
  readonly primary: string
  readonly serial: number
  /** Seconds after which a secondary server looks for changes without being notified. */
  readonly refresh: number
  /** Seconds to cache a negative answer: the smaller of the SOA's own TTL and its last field (RFC 2308 section 5). */
  readonly negativeTtl: number
}

interface Base {
  readonly name: string
  readonly ttl: number
}

/** The types that the check reads; others are dropped. Names are lowercase, without the trailing dot. */
export type ResourceRecord =
  | (Base & { readonly type: 'TXT'; readonly strings: readonly Uint8Array[] })
  | (Base & { readonly type: 'SOA'; readonly soa: Soa })
  | (Base & { readonly type: 'NS' | 'CNAME' | 'DNAME'; readonly target: string })
  | (Base & { readonly type: 'A' | 'AAAA'; readonly address: string })
  | (Base & DelegationSigner)
  | (Base & ZoneKey)
  | (Base & Signature)

/** The digest of a key, in the parent zone (RFC 4034 section 5). */
export interface DelegationSigner {
  readonly type: 'DS'
  readonly keyTag: number
  readonly algorithm: number
  readonly digestType: number
  readonly digest: Uint8Array
}

/** RFC 4034 section 2. */
export interface ZoneKey {
  readonly type: 'DNSKEY'
  readonly flags: number
  readonly algorithm: number
  readonly key: Uint8Array
}

/** RFC 4034 section 3; the times are seconds since 1970, modulo 2^32. */
export interface Signature {
  readonly type: 'RRSIG'
  readonly covers: string
  readonly algorithm: number
  readonly keyTag: number
  readonly inception: number
  readonly expiration: number
}

export interface Message {
  /** `NOERROR`, `NXDOMAIN`, … (IANA's names), or `RCODE_n`. */
  readonly rcode: string
  readonly aa: boolean
  readonly tc: boolean
  readonly ra: boolean
  /** The resolver has validated the answer (RFC 4035 section 3.2.3). */
  readonly ad: boolean
  /** Whether the answer has an OPT record (RFC 6891). */
  readonly edns: boolean
  /** The first one (RFC 8914). */
  readonly extendedError: { readonly code: number; readonly text: string } | undefined
  readonly answers: readonly ResourceRecord[]
  readonly authority: readonly ResourceRecord[]
  readonly additional: readonly ResourceRecord[]
  /** Size on the wire in bytes. */
  readonly size: number
}

export interface QueryFlags {
  readonly recursionDesired?: boolean | undefined
  /** Asks for the data without validation (RFC 4035 section 3.2.2). */
  readonly checkingDisabled?: boolean | undefined
  /** Asks for signatures (RFC 3225); takes a query with EDNS. */
  readonly dnssecOk?: boolean | undefined
  /** The largest UDP answer asked for, or undefined for a query without EDNS. */
  readonly udpSize: number | undefined
}

const HEADER_SIZE = 12
const EXTENDED_ERROR = 15
const TXT = 16
const OPT = 41
const IN = 1
/**
 * More strings than one answer of TXT records with text can have: 64 kilobytes are at most 4,680 records of one character.
 * Empty strings take one byte on the wire and a hundred in memory.
 */
const MAX_STRINGS = 5000

declare module 'dns-packet' {
  export const name: Decoder<string>
  export const question: Decoder<Question>
  export const answer: Decoder<Answer>
  /** `bytes` is the size of what was decoded last. */
  interface Decoder<T> {
    readonly decode: { (buffer: Buffer, offset: number): T; readonly bytes: number }
  }
}

/** The query on the wire. The name must have passed `checkName` or come from a decoded message. */
export function encodeQuery(id: number, question: Question, flags: QueryFlags): Uint8Array {
  return packet.encode({
    type: 'query',
    id,
    flags:
      // With AD set, a resolver says whether it validated the answer (RFC 6840 section 5.7).
      (flags.recursionDesired ? packet.RECURSION_DESIRED | packet.AUTHENTIC_DATA : 0) |
      (flags.checkingDisabled ? packet.CHECKING_DISABLED : 0),
    questions: [{ type: question.type, name: question.name, class: 'IN' }],
    additionals:
      flags.udpSize === undefined
        ? []
        : [
            {
              type: 'OPT',
              name: '.',
              udpPayloadSize: flags.udpSize,
              extendedRcode: 0,
              ednsVersion: 0,
              flags: flags.dnssecOk === true ? packet.DNSSEC_OK : 0,
              flag_do: flags.dnssecOk === true,
              options: [],
            },
          ],
  })
}

/** What a query that `encodeQuery` made asks. */
export interface DecodedQuery {
  readonly id: number
  readonly question: Question
  readonly recursionDesired: boolean
  /** The offset after the question. */
  readonly end: number
}

/** Reads the header and the question of a query. Throws a `RangeError` if it isn't one. */
export function decodeQuestion(query: Uint8Array): DecodedQuery {
  const buffer = Buffer.from(query.buffer, query.byteOffset, query.length)
  const { name, type } = packet.question.decode(buffer, HEADER_SIZE)
  return {
    id: buffer.readUInt16BE(0),
    question: { name: canonicalName(name), type: type as QuestionType },
    recursionDesired: (buffer.readUInt8(2) & 1) === 1,
    end: HEADER_SIZE + packet.question.decode.bytes,
  }
}

/**
 * The answer to exactly this query, or undefined for anything else: another id, another question, a query, junk, far more
 * strings than real zones have. If the records of a truncated answer can't be read, it comes without records: its header is
 * enough to go on.
 */
export function decodeAnswer(wire: Uint8Array, id: number, question: Question): Message | undefined {
  if (wire.length < 12) return undefined
  const buffer = Buffer.from(wire.buffer, wire.byteOffset, wire.length)
  const flags = buffer.readUInt16BE(2)
  const isResponse = (flags & 0x8000) !== 0
  const opcode = (flags >> 11) & 0xf
  if (buffer.readUInt16BE(0) !== id || !isResponse || opcode !== 0) return undefined
  const rcode = flags & 0xf
  const header = {
    aa: (flags & 0x0400) !== 0,
    tc: (flags & 0x0200) !== 0,
    ra: (flags & 0x0080) !== 0,
    ad: (flags & 0x0020) !== 0,
    size: wire.length,
  }
  const empty = { edns: false, extendedError: undefined, answers: [], authority: [], additional: [] }

  const questions = buffer.readUInt16BE(4)
  // A server that can't parse the query may leave the question out (RFC 1035 section 4.1.1, FORMERR; also NOTIMP), and
  // unbound does so when it refuses a client.
  if (questions === 0 && (rcode === 1 || rcode === 4 || rcode === 5))
    return { ...header, ...empty, rcode: rcodeName(rcode) }
  if (questions !== 1) return undefined
  try {
    const asked = packet.question.decode(buffer, HEADER_SIZE)
    if (asked.type !== question.type || asked.class !== 'IN') return undefined
    if (canonicalName(asked.name) !== question.name) return undefined
  } catch {
    return undefined
  }
  try {
    return { ...header, ...readRecords(buffer, HEADER_SIZE + packet.question.decode.bytes, rcode) }
  } catch {
    return header.tc ? { ...header, ...empty, rcode: rcodeName(rcode) } : undefined
  }
}

function readRecords(buffer: Buffer, start: number, headerRcode: number) {
  const budget = { strings: MAX_STRINGS }
  const answers = readSection(buffer, start, buffer.readUInt16BE(6), budget)
  const authority = readSection(buffer, answers.end, buffer.readUInt16BE(8), budget)
  const additional = readSection(buffer, authority.end, buffer.readUInt16BE(10), budget)
  const opt = additional.records.find((record): record is packet.OptAnswer => record.type === 'OPT')
  const rcode = headerRcode | ((opt?.extendedRcode ?? 0) << 4)
  const error = opt?.options.find((option) => Number(option.code) === EXTENDED_ERROR)?.data
  return {
    rcode: rcodeName(rcode),
    edns: opt !== undefined,
    extendedError:
      error && error.length >= 2
        ? { code: error.readUInt16BE(0), text: error.subarray(2).toString('utf8') }
        : undefined,
    answers: toRecords(answers),
    authority: toRecords(authority),
    additional: toRecords(additional),
  }
}

/** On the wire: A, NS, CNAME, SOA, TXT, AAAA, DNAME, OPT, DS, RRSIG, DNSKEY. */
const TYPES_READ = new Set([1, 2, 5, 6, TXT, 28, 39, OPT, 43, 46, 48])

interface Section {
  readonly records: readonly packet.Answer[]
  /** The offset after its last record. */
  readonly end: number
}

/**
 * Decodes the records of the types that the check reads. The others are skipped, because decoded ones can take far more
 * memory than on the wire: an NSEC record of nine kilobytes may list 65,536 types.
 */
function readSection(buffer: Buffer, start: number, count: number, budget: { strings: number }): Section {
  const records: packet.Answer[] = []
  let offset = start
  for (let index = 0; index < count; index += 1) {
    packet.name.decode(buffer, offset)
    const type = offset + packet.name.decode.bytes
    const data = type + 10
    const end = data + buffer.readUInt16BE(type + 8)
    if (end > buffer.length) throw new RangeError('a record runs past the end of the message')
    const number = buffer.readUInt16BE(type)
    const isRead = TYPES_READ.has(number) && (number === OPT || buffer.readUInt16BE(type + 2) === IN)
    if (isRead) {
      if (number === TXT) budget.strings -= countStrings(buffer.subarray(data, end))
      if (budget.strings < 0) throw new RangeError('too many strings')
      records.push(packet.answer.decode(buffer, offset))
      // dns-packet ignores the length of most types, and may read past it.
      if (packet.answer.decode.bytes !== end - offset) throw new RangeError('a record has the wrong length')
    }
    offset = end
  }
  return { records, end: offset }
}

function countStrings(data: Buffer): number {
  let count = 0
  for (let offset = 0; offset < data.length; offset += 1 + (data[offset] ?? 0)) count += 1
  return count
}

function toRecords({ records }: Section): ResourceRecord[] {
  return records.map(toRecord).filter((record) => record !== undefined)
}

function toRecord(record: packet.Answer): ResourceRecord | undefined {
  if (record.type === 'OPT') return undefined
  // A TTL with the highest bit set counts as 0 (RFC 2181 section 8).
  const ttl = (record.ttl ?? 0) > 0x7fffffff ? 0 : (record.ttl ?? 0)
  const base = { name: canonicalName(record.name), ttl }
  switch (record.type) {
    case 'TXT': {
      const strings = Array.isArray(record.data) ? record.data : [record.data]
      return {
        ...base,
        type: 'TXT',
        strings: strings.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)),
      }
    }
    case 'NS':
    case 'CNAME':
    case 'DNAME':
      return { ...base, type: record.type, target: canonicalName(record.data) }
    case 'A':
    case 'AAAA':
      return { ...base, type: record.type, address: canonicalAddress(record.data) }
    case 'SOA': {
      const { mname, serial = 0, refresh = 0, minimum = 0 } = record.data
      const soa = {
        zone: base.name,
        primary: canonicalName(mname),
        serial,
        refresh,
        negativeTtl: Math.min(ttl, minimum),
      }
      return { ...base, type: 'SOA', soa }
    }
    case 'DS': {
      const { keyTag, algorithm, digestType, digest } = record.data
      return { ...base, type: 'DS', keyTag, algorithm, digestType, digest }
    }
    case 'DNSKEY': {
      const { flags, algorithm, key } = record.data
      return { ...base, type: 'DNSKEY', flags, algorithm, key }
    }
    case 'RRSIG': {
      const { typeCovered, algorithm, keyTag, inception, expiration } = record.data
      return { ...base, type: 'RRSIG', covers: typeCovered, algorithm, keyTag, inception, expiration }
    }
    default:
      return undefined
  }
}

/** DNS names are case-insensitive in ASCII (RFC 4343). */
function canonicalName(name: string): string {
  const lower = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return lower === '.' || lower === '' ? '.' : lower.replace(/\.$/, '')
}

const RCODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN', 'YXRRSET']
const MORE_RCODES: ReadonlyMap<number, string> = new Map([
  [8, 'NXRRSET'],
  [9, 'NOTAUTH'],
  [10, 'NOTZONE'],
  [16, 'BADVERS'],
  [23, 'BADCOOKIE'],
])

function rcodeName(rcode: number): string {
  return RCODES[rcode] ?? MORE_RCODES.get(rcode) ?? `RCODE_${rcode}`
}

export function soaOf(message: Message): Soa | undefined {
  for (const record of [...message.answers, ...message.authority])
    if (record.type === 'SOA') return record.soa
  return undefined
}
