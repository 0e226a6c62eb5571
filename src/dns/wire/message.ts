import packet from 'dns-packet'
import { canonicalAddress } from './address.ts'

type QuestionType = 'TXT' | 'SOA' | 'NS' | 'A' | 'AAAA' | 'DS' | 'DNSKEY'

export interface Question {
  /** Lowercase, without the trailing dot; the root is `.`. */
  readonly name: string
  readonly type: QuestionType
}

interface Soa {
  readonly zone: string
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
  /** The digest of a key, in the parent zone (RFC 4034 section 5), and the key (section 2). */
  | (Base & packet.DsData & { readonly type: 'DS' })
  | (Base & packet.DnskeyData & { readonly type: 'DNSKEY' })
  /** RFC 4034 section 3; the time is seconds since 1970, modulo 2^32. */
  | (Base & { readonly type: 'RRSIG'; readonly covers: string; readonly expiration: number })

/** The records of one type. */
export type RecordOf<T extends ResourceRecord['type']> = Extract<ResourceRecord, { readonly type: T }>

export interface Message {
  /** `NOERROR`, `NXDOMAIN`, … (IANA's names), or `RCODE_n`. */
  readonly rcode: string
  readonly aa: boolean
  readonly tc: boolean
  readonly ra: boolean
  /** Whether the answer has an OPT record (RFC 6891). */
  readonly edns: boolean
  /** The first one (RFC 8914). */
  readonly extendedError: { readonly code: number; readonly text: string } | undefined
  readonly answers: readonly ResourceRecord[]
  readonly authority: readonly ResourceRecord[]
  readonly additional: readonly ResourceRecord[]
}

interface QueryFlags {
  readonly recursionDesired?: boolean | undefined
  /** Asks for the data without validation (RFC 4035 section 3.2.2). */
  readonly checkingDisabled?: boolean | undefined
  /** Asks for signatures (RFC 3225); takes a query with EDNS. */
  readonly dnssecOk?: boolean | undefined
  /** The largest UDP answer asked for, or undefined for a query without EDNS. */
  readonly udpSize: number | undefined
}

const EXTENDED_ERROR = 15

/** The query on the wire. The name must have passed `checkName` or come from a decoded message. */
export function encodeQuery(id: number, question: Question, flags: QueryFlags): Uint8Array {
  return packet.encode({
    type: 'query',
    id,
    flags:
      (flags.recursionDesired ? packet.RECURSION_DESIRED : 0) |
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

/**
 * The answer to exactly this query, or undefined for anything else: another id, another question, a query, junk. If the records
 * of a truncated answer can't be read, it comes without records: its header is enough to go on.
 */
export function decodeAnswer(wire: Uint8Array, id: number, question: Question): Message | undefined {
  if (wire.length < 12) return undefined
  const buffer = Buffer.from(wire.buffer, wire.byteOffset, wire.length)
  const flags = buffer.readUInt16BE(2)
  const isResponse = (flags & 0x8000) !== 0
  const opcode = (flags >> 11) & 0xf
  if (buffer.readUInt16BE(0) !== id || !isResponse || opcode !== 0) return undefined
  const header = {
    rcode: rcodeName(flags & 0xf),
    aa: (flags & 0x0400) !== 0,
    tc: (flags & 0x0200) !== 0,
    ra: (flags & 0x0080) !== 0,
  }
  const empty = { edns: false, extendedError: undefined, answers: [], authority: [], additional: [] }
  const decoded = tryDecode(buffer)
  if (decoded === undefined) return header.tc ? { ...header, ...empty } : undefined
  const [asked, ...others] = decoded.questions ?? []
  // A server that can't parse the query may leave the question out (RFC 1035 section 4.1.1, FORMERR; also NOTIMP), and
  // unbound does so when it refuses a client.
  if (asked === undefined)
    return ['FORMERR', 'NOTIMP', 'REFUSED'].includes(header.rcode) ? { ...header, ...empty } : undefined
  const isSame =
    asked.type === question.type && asked.class === 'IN' && canonicalName(asked.name) === question.name
  return isSame && others.length === 0 ? { ...header, ...readRecords(decoded, flags & 0xf) } : undefined
}

function tryDecode(buffer: Buffer): packet.Packet | undefined {
  try {
    const decoded = packet.decode(buffer)
    // Strings that are cut off don't make it throw.
    return (packet.decode.bytes ?? 0) > buffer.length ? undefined : decoded
  } catch {
    return undefined
  }
}

function readRecords({ answers, authorities, additionals = [] }: packet.Packet, headerRcode: number) {
  const opt = additionals.find((record): record is packet.OptAnswer => record.type === 'OPT')
  const error = opt?.options.find((option) => Number(option.code) === EXTENDED_ERROR)?.data
  return {
    rcode: rcodeName(headerRcode | ((opt?.extendedRcode ?? 0) << 4)),
    edns: opt !== undefined,
    extendedError:
      error && error.length >= 2
        ? { code: error.readUInt16BE(0), text: error.subarray(2).toString('utf8') }
        : undefined,
    answers: toRecords(answers),
    authority: toRecords(authorities),
    additional: toRecords(additionals),
  }
}

const toRecords = (records: readonly packet.Answer[] = []): ResourceRecord[] =>
  records.map(toRecord).filter((record) => record !== undefined)

function toRecord(record: packet.Answer): ResourceRecord | undefined {
  if (record.type === 'OPT' || record.class !== 'IN') return undefined
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
      const { serial = 0, refresh = 0, minimum = 0 } = record.data
      const soa = { zone: base.name, serial, refresh, negativeTtl: Math.min(ttl, minimum) }
      return { ...base, type: 'SOA', soa }
    }
    case 'DS':
      return { ...base, ...record.data, type: 'DS' }
    case 'DNSKEY':
      return { ...base, ...record.data, type: 'DNSKEY' }
    case 'RRSIG':
      return {
        ...base,
        type: 'RRSIG',
        covers: record.data.typeCovered,
        expiration: record.data.expiration,
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

const RCODES: Readonly<Record<number, string>> = {
  ...['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED', 'YXDOMAIN'],
  9: 'NOTAUTH',
  16: 'BADVERS',
}

const rcodeName = (rcode: number): string => RCODES[rcode] ?? `RCODE_${rcode}`

export function soaOf(message: Message): Soa | undefined {
  for (const record of [...message.answers, ...message.authority])
    if (record.type === 'SOA') return record.soa
  return undefined
}
