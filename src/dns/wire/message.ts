import packet from 'dns-packet'
import { canonicalAddress } from './address.ts'

export type QuestionType = 'TXT' | 'SOA' | 'NS' | 'A' | 'AAAA' | 'CNAME'

export interface Question {
  /** Lower-case, without the trailing dot; the root is `.`. */
  readonly name: string
  readonly type: QuestionType
}

export interface Soa {
  readonly zone: string
  readonly serial: number
  /** RFC 2308 section 5: a negative answer lives for the smaller of the SOA's own TTL and its last field. */
  readonly negativeTtl: number
}

interface Base {
  readonly name: string
  readonly ttl: number
}

/** What the check reads; other types are left out of a message. Names are lower-case, without the trailing dot. */
export type ResourceRecord =
  | (Base & { readonly type: 'TXT'; readonly strings: readonly Uint8Array[] })
  | (Base & { readonly type: 'SOA'; readonly soa: Soa })
  | (Base & { readonly type: 'NS' | 'CNAME' | 'DNAME'; readonly target: string })
  | (Base & { readonly type: 'A' | 'AAAA'; readonly address: string })

export interface Message {
  /** `NOERROR`, `NXDOMAIN`, … (IANA's names), or `RCODE_n`. */
  readonly rcode: string
  readonly aa: boolean
  readonly tc: boolean
  readonly ra: boolean
  /** Whether the answer has an OPT record (RFC 6891). */
  readonly edns: boolean
  /** RFC 8914, the first one. */
  readonly extendedError: { readonly code: number; readonly text: string } | undefined
  readonly answers: readonly ResourceRecord[]
  readonly authority: readonly ResourceRecord[]
  readonly additional: readonly ResourceRecord[]
  /** Size on the wire in bytes. */
  readonly size: number
}

export interface QueryFlags {
  readonly recursionDesired: boolean
  /** RFC 4035 section 3.2.2: hand the data over without validating it. */
  readonly checkingDisabled: boolean
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
              flags: 0,
              flag_do: false,
              options: [],
            },
          ],
  })
}

/**
 * The answer to exactly this query, or undefined for anything else: another id, another question, a query, junk. A
 * truncated answer whose records cannot be read still counts, without its records: the header says what to do next.
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
    size: wire.length,
  }
  const empty = { edns: false, extendedError: undefined, answers: [], authority: [], additional: [] }

  const questions = buffer.readUInt16BE(4)
  // A server that cannot parse the query may leave the question out (RFC 1035 section 4.1.1, FORMERR; also NOTIMP), and
  // unbound does so where it refuses a client.
  if (questions === 0 && (rcode === 1 || rcode === 4 || rcode === 5))
    return { ...header, ...empty, rcode: rcodeName(rcode) }
  if (questions !== 1) return undefined
  if (!asksSame(buffer, question)) return undefined
  try {
    const decoded = packet.decode(buffer)
    // dns-packet reads past the end without complaint (and then counts to NaN); a message must end where it says.
    if (!(packet.decode.bytes <= buffer.length)) throw new RangeError('records run past the end')
    return { ...header, ...readRecords(decoded, rcode) }
  } catch {
    return header.tc ? { ...header, ...empty, rcode: rcodeName(rcode) } : undefined
  }
}

/** Whether the question that the answer repeats is the one that was asked. */
function asksSame(buffer: Buffer, question: Question): boolean {
  const withoutRecords = Buffer.from(buffer)
  withoutRecords.fill(0, 6, 12)
  try {
    const asked = packet.decode(withoutRecords).questions?.[0]
    return (
      asked?.type === question.type && asked.class === 'IN' && canonicalName(asked.name) === question.name
    )
  } catch {
    return false
  }
}

function readRecords(decoded: packet.DecodedPacket, headerRcode: number) {
  const opt = decoded.additionals?.find((record): record is packet.OptAnswer => record.type === 'OPT')
  const rcode = headerRcode | ((opt?.extendedRcode ?? 0) << 4)
  const error = opt?.options.find((option) => Number(option.code) === EXTENDED_ERROR)?.data
  return {
    rcode: rcodeName(rcode),
    edns: opt !== undefined,
    extendedError:
      error && error.length >= 2
        ? { code: error.readUInt16BE(0), text: error.subarray(2).toString('utf8') }
        : undefined,
    answers: section(decoded.answers),
    authority: section(decoded.authorities),
    additional: section(decoded.additionals),
  }
}

function section(records: readonly packet.Answer[] | undefined): ResourceRecord[] {
  return (records ?? []).map(toRecord).filter((record) => record !== undefined)
}

function toRecord(record: packet.Answer): ResourceRecord | undefined {
  if (record.type === 'OPT' || (record.class ?? 'IN') !== 'IN') return undefined
  // RFC 2181 section 8: a TTL with the highest bit set is to be taken as 0.
  const ttl = (record.ttl ?? 0) > 0x7fffffff ? 0 : (record.ttl ?? 0)
  const base = { name: canonicalName(record.name), ttl }
  switch (record.type) {
    case 'TXT': {
      const strings = Array.isArray(record.data) ? record.data : [record.data]
      return { ...base, type: 'TXT', strings: strings.map((piece) => Buffer.from(piece)) }
    }
    case 'NS':
    case 'CNAME':
    case 'DNAME':
      return { ...base, type: record.type, target: canonicalName(record.data) }
    case 'A':
    case 'AAAA':
      return { ...base, type: record.type, address: canonicalAddress(record.data) }
    case 'SOA': {
      const { serial = 0, minimum = 0 } = record.data
      const soa = {
        zone: base.name,
        serial,
        negativeTtl: Math.min(ttl, minimum),
      }
      return { ...base, type: 'SOA', soa }
    }
    default:
      return undefined
  }
}

/** DNS names compare without regard to ASCII case (RFC 4343). */
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
