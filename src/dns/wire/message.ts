import packet from 'dns-packet'
import { canonicalizeAddress } from './address.ts'

/** Record types that this program queries. */
type QuestionType = 'TXT' | 'CNAME' | 'SOA' | 'NS' | 'A' | 'AAAA' | 'DS' | 'DNSKEY'

/** A DNS query: its question (RFC 1035 section 4.1.2) and its flags, which are false by default. */
export interface DnsQuery {
  /** Name in lowercase without the trailing dot; `.` for the root. */
  readonly name: string
  readonly type: QuestionType
  readonly recursionDesired?: boolean
  /** The CD bit: asks for the data without DNSSEC validation (RFC 4035 section 3.2.2). */
  readonly checkingDisabled?: boolean
  /** The DO bit: asks for RRSIG records as well (RFC 3225). */
  readonly dnssecOk?: boolean
}

/** Fields of an SOA record (RFC 1035 section 3.3.13) that the check uses. */
export interface SoaSummary {
  readonly zone: string
  readonly serial: number
  /** Negative TTL in seconds: the minimum of the SOA's own TTL and its MINIMUM field (RFC 2308 section 5). */
  readonly negativeTtl: number
}

/** Fields of every resource record; the TTL is in seconds. */
interface Base {
  readonly name: string
  readonly ttl: number
}

/**
 * A resource record of a type that the check reads; other types are dropped. Owner names and targets are in lowercase, without the
 * trailing dot; the root is `.`.
 */
export type ResourceRecord =
  | (Base & { readonly type: 'TXT'; readonly strings: readonly Uint8Array[] })
  | (Base & { readonly type: 'SOA'; readonly soa: SoaSummary })
  | (Base & { readonly type: 'NS'; readonly target: string })
  | (Base & { readonly type: 'CNAME'; readonly target: string })
  | (Base & { readonly type: 'A' | 'AAAA'; readonly address: string })
  /** Digest of a zone's key, in the parent zone (RFC 4034 section 5). */
  | (Base & packet.DsData & { readonly type: 'DS' })
  /** Public key of a zone (RFC 4034 section 2). */
  | (Base & packet.DnskeyData & { readonly type: 'DNSKEY' })
  /** Signature of a record set (RFC 4034 section 3); times are seconds since 1970, modulo 2^32. */
  | (Base & packet.RrsigData & { readonly type: 'RRSIG' })

export type RecordOf<T extends ResourceRecord['type']> = Extract<ResourceRecord, { readonly type: T }>

/** A decoded DNS response (RFC 1035 section 4.1): flags and records. */
export interface DnsReply {
  /** Name of the rcode in uppercase, such as `NXDOMAIN`; `BADVERS` for every extended rcode. */
  readonly rcode: string
  readonly aa: boolean
  readonly tc: boolean
  readonly ra: boolean
  /**
   * Extended DNS error (RFC 8914) as text: its name if it is one of `DNSSEC_ERRORS`, then the server's own text; null without
   * either.
   */
  readonly explanation: string | null
  readonly answers: readonly ResourceRecord[]
  readonly authority: readonly ResourceRecord[]
  readonly additional: readonly ResourceRecord[]
}

/** Option code of extended DNS errors in EDNS (RFC 8914 section 2). */
const EXTENDED_ERROR = 15
/** Constant fields of the OPT pseudo-record (RFC 6891 section 6.1.2). */
const OPT = { type: 'OPT', name: '.', extendedRcode: 0, ednsVersion: 0 } as const

/**
 * Encodes a query. The name isn't validated here: it must be the result of `parseDomainName`, or one that `canQueryName` accepts.
 *
 * @param udpSize EDNS buffer size in bytes; undefined for a query without EDNS
 */
export function encodeQuery(
  id: number,
  { type, name, recursionDesired = false, checkingDisabled = false, dnssecOk = false }: DnsQuery,
  udpSize: number | undefined,
): Uint8Array {
  const opt = { flags: dnssecOk ? packet.DNSSEC_OK : 0, flag_do: dnssecOk, options: [] }
  return packet.encode({
    type: 'query',
    id,
    flags:
      (recursionDesired ? packet.RECURSION_DESIRED : 0) | (checkingDisabled ? packet.CHECKING_DISABLED : 0),
    questions: [{ type, name, class: 'IN' }],
    additionals: udpSize === undefined ? [] : [{ ...OPT, ...opt, udpPayloadSize: udpSize }],
  })
}

/**
 * Decodes the response to a query; undefined if the bytes are malformed or aren't its response. A truncated response that can't be
 * read whole is returned without records, because its TC bit is enough to retry over TCP.
 */
export function decodeResponse(wire: Uint8Array, id: number, query: DnsQuery): DnsReply | undefined {
  const whole = tryDecode(Buffer.from(wire))
  // Decode the header alone, with zero counts of records: it shows the TC bit even if the records are cut off.
  const header = tryDecode(Buffer.concat([wire.subarray(0, 4), Buffer.alloc(8)]))
  const decoded = whole ?? (header?.flag_tc ? header : undefined)
  if (decoded?.id !== id || decoded.type !== 'response' || decoded.opcode !== 'QUERY') return undefined
  const { questions: [asked, ...others] = [], additionals = [] } = decoded
  const isSame =
    asked?.type === query.type && asked.class === 'IN' && canonicalName(asked.name) === query.name
  // Accept FORMERR and NOTIMP without the question, from a server that couldn't parse the query (RFC 1035 section 4.1.1), and
  // REFUSED without the question, as unbound sends it.
  const isBare = asked === undefined && ['FORMERR', 'NOTIMP', 'REFUSED'].includes(decoded.rcode)
  if (others.length > 0 || !(isSame || isBare || decoded === header)) return undefined
  const opt = additionals.find((record): record is packet.OptAnswer => record.type === 'OPT')
  return {
    rcode: opt?.extendedRcode ? 'BADVERS' : decoded.rcode,
    ...{ aa: decoded.flag_aa, tc: decoded.flag_tc, ra: decoded.flag_ra, explanation: explanationOf(opt) },
    answers: toRecords(decoded.answers),
    authority: toRecords(decoded.authorities),
    additional: toRecords(additionals),
  }
}

/** Names of the extended DNS errors 5 to 10, in this order, which are about DNSSEC (RFC 8914 section 4). */
const DNSSEC_ERRORS =
  'DNSSEC indeterminate|DNSSEC bogus|signature expired|signature not yet valid|DNSKEY missing|RRSIGs missing'

/**
 * Returns the extended DNS error (RFC 8914) as text: its name if it is one of `DNSSEC_ERRORS`, then the server's own text; null if
 * there is neither.
 */
function explanationOf(opt: packet.OptAnswer | undefined): string | null {
  const data = opt?.options.find(({ code }) => Number(code) === EXTENDED_ERROR)?.data
  if (!data || data.length < 2) return null
  const parts = [DNSSEC_ERRORS.split('|')[data.readUInt16BE() - 5], data.subarray(2).toString()]
  return parts.filter(Boolean).join(': ') || null
}

/** A message as dns-packet decodes it, with two fields that its types lack. */
type Decoded = packet.DecodedPacket & { readonly rcode: string; readonly opcode: string }

function tryDecode(buffer: Buffer): Decoded | undefined {
  try {
    const decoded = packet.decode(buffer) as Decoded
    // dns-packet doesn't throw for strings that are cut off, but counts more bytes than the message has. So refuse such a message
    // by its count.
    return (packet.decode.bytes ?? 0) > buffer.length ? undefined : decoded
  } catch {
    return undefined
  }
}

const toRecords = (records: readonly packet.Answer[] = []): ResourceRecord[] =>
  records.map(toRecord).filter((record) => record !== undefined)

/** Converts a decoded record; undefined for types and classes that the check ignores. */
function toRecord(record: packet.Answer): ResourceRecord | undefined {
  if (record.type === 'OPT' || record.class !== 'IN') return undefined
  // A TTL with the highest bit set is treated as 0 (RFC 2181 section 8).
  const ttl = (record.ttl ?? 0) > 0x7fffffff ? 0 : (record.ttl ?? 0)
  const base = { name: canonicalName(record.name), ttl }
  switch (record.type) {
    case 'TXT':
      // dns-packet's types allow other forms too, but it decodes TXT data as an array of buffers, one per character-string. So
      // cast.
      return { ...base, type: 'TXT', strings: record.data as Buffer[] }
    case 'NS':
    case 'CNAME':
      return { ...base, type: record.type, target: canonicalName(record.data) }
    case 'A':
    case 'AAAA':
      return { ...base, type: record.type, address: canonicalizeAddress(record.data) }
    case 'SOA': {
      const { serial = 0, minimum = 0 } = record.data
      const soa = { zone: base.name, serial, negativeTtl: Math.min(ttl, minimum) }
      return { ...base, type: 'SOA', soa }
    }
    case 'DS':
    case 'DNSKEY':
    case 'RRSIG':
      return { ...base, ...record.data, type: record.type } as ResourceRecord
    default:
      return undefined
  }
}

/**
 * Returns a name without the trailing dot (`.` for the root) and with its ASCII letters in lowercase: DNS names are
 * case-insensitive in ASCII only (RFC 4343).
 */
function canonicalName(name: string): string {
  const lower = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return lower.replace(/\.$/, '') || '.'
}

/**
 * Returns the first SOA record of a response: from the answer section, else from the authority section, where a negative response
 * has the SOA record of its zone.
 */
export function findSoa({ answers, authority }: DnsReply): SoaSummary | undefined {
  return [...answers, ...authority].find((record) => record.type === 'SOA')?.soa
}

/** Returns the host names of a zone's name servers, from its NS records; records of other zones are ignored. */
export function collectNsHosts(records: readonly ResourceRecord[], zone: string): string[] {
  return records.flatMap((one) => (one.type === 'NS' && one.name === zone ? [one.target] : []))
}
