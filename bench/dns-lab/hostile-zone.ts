import packet from 'dns-packet'
import { type Query, RCODES } from './relay.ts'
import { EXPECTED } from './setup.ts'

/** Numbers from 0 up to, but not including, 1; always the same for the same seed. */
export type Random = () => number

/** mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** What a hostile server does with one query. */
export interface Reply {
  readonly delayMs: number
  /** `drop` sends nothing. */
  readonly message: Buffer | 'drop'
  /** Over TCP, a few bytes at a time. */
  readonly drips: boolean
}

/** dns-packet encodes a type that it doesn't know from the bytes of its data. */
type AnyRecord = Pick<packet.GenericAnswer<string>, 'name'> & { type: string; ttl: number; data: unknown }

interface Sections {
  readonly flags: number
  readonly answers?: readonly AnyRecord[]
  readonly authorities?: readonly AnyRecord[]
  readonly additionals?: readonly AnyRecord[]
}

const AA = packet.AUTHORITATIVE_ANSWER
const RA = packet.RECURSION_AVAILABLE
const TC = packet.TRUNCATED_RESPONSE
const SECTION_NAMES = ['answers', 'authorities', 'additionals'] as const

/** The most bytes that fit a datagram. */
const MAX_DATAGRAM = 65_000

/** The servers of one zone, which answer anything but the truth most of the time. */
export class HostileZone {
  readonly apex: string
  private readonly random: Random
  private readonly addresses: readonly string[]
  private readonly kind: Kind

  /** @param addresses where hostile servers listen. */
  constructor(apex: string, random: Random, addresses: readonly string[]) {
    this.apex = apex
    this.random = random
    this.addresses = addresses
    this.kind = this.pick(KINDS)
  }

  /** The zone's delegation in its parent. */
  delegation(): Sections {
    const hosts = Array.from({ length: 1 + this.below(6) }, (_, index) => `ns${index}.${this.apex}`)
    return {
      flags: 0,
      authorities: hosts.map((data) => ({ type: 'NS', name: this.apex, ttl: 60, data })),
      additionals: hosts.map((name) => ({ type: 'A', name, ttl: 60, data: this.pick(this.addresses) })),
    }
  }

  reply(query: Query): Reply {
    const kind = this.chance(0.6) ? this.kind : this.pick(KINDS)
    const sections = this.chance(0.35) ? this.plausible(query) : this.sections(kind, query)
    const isSlow = kind === 'slow' || this.chance(0.02)
    return {
      delayMs: isSlow ? this.below(4000) : 0,
      message: this.chance(kind === 'slow' ? 0.3 : 0.03) ? 'drop' : encode(query, sections),
      drips: this.chance(kind === 'slow' ? 0.5 : 0.05),
    }
  }

  private sections(kind: Kind, query: Query): Sections {
    switch (kind) {
      case 'random':
        return this.anything(query)
      case 'referral':
        return this.referral(query)
      case 'alias':
        return this.alias(query)
      case 'giant':
        return this.giant(query)
      case 'truncated':
        return query.transport === 'udp'
          ? { ...this.anything(query), flags: AA | TC }
          : this.sections(this.pick(['random', 'giant', 'alias', 'truncated'] as const), {
              ...query,
              transport: this.chance(0.1) ? 'udp' : 'tcp',
            })
      case 'slow':
        return this.plausible(query)
    }
  }

  /** What the server of a healthy zone could answer, so that the check goes on. */
  private plausible({ name, type }: Query): Sections {
    const record = this.record(name, type)
    const isKnown = ['TXT', 'SOA', 'NS', 'A', 'DNSKEY'].includes(type) && this.chance(0.8)
    return isKnown
      ? { flags: AA, answers: Array.from({ length: 1 + this.below(3) }, () => record) }
      : { flags: AA, authorities: [this.record(this.apex, 'SOA')] }
  }

  private anything(query: Query): Sections {
    const some = () => Array.from({ length: this.below(6) }, () => this.record(this.name(query), this.type()))
    return {
      flags: this.pick([0, AA, AA, RA, AA | RA]) | (this.chance(0.5) ? 0 : this.pick(Object.values(RCODES))),
      answers: some(),
      authorities: some(),
      additionals: some(),
    }
  }

  /** To the zone itself, to zones above, beside, or ever further below. */
  private referral(query: Query): Sections {
    const owner = this.chance(0.5) ? query.name : this.name(query)
    const hosts = Array.from({ length: 1 + this.below(40) }, () => this.name(query))
    return {
      flags: this.pick([0, 0, AA]),
      authorities: hosts.map((data) => ({ type: 'NS', name: owner, ttl: 60, data })),
      additionals: hosts.flatMap((name) => (this.chance(0.5) ? [this.record(name, 'A')] : [])),
    }
  }

  private alias(query: Query): Sections {
    let owner = query.name
    const answers = Array.from({ length: 1 + this.below(30) }, (): AnyRecord => {
      const type = this.pick(['CNAME', 'CNAME', 'DNAME'] as const)
      const data = this.chance(0.3) ? this.name(query) : `${this.label()}.${this.apex}`
      const record = {
        type,
        name: type === 'DNAME' ? owner.slice(owner.indexOf('.') + 1) || '.' : owner,
        ttl: 60,
        data,
      }
      owner = data
      return record
    })
    return { flags: AA | this.pick([0, 0, RCODES.NXDOMAIN]), answers }
  }

  /** As much as fits into one message. */
  private giant(query: Query): Sections {
    const section = this.pick(SECTION_NAMES)
    const many = (count: number, record: () => AnyRecord) => Array.from({ length: count }, record)
    const raw = (type: number, data: Buffer): AnyRecord => ({
      type: `UNKNOWN_${type}`,
      name: this.chance(0.7) ? query.name : this.apex,
      ttl: 60,
      data,
    })
    const made = this.pick([
      () => [raw(16, Buffer.alloc(60_000))],
      () => many(6, () => raw(16, Buffer.alloc(10_000))),
      () => many(60, () => raw(16, Buffer.alloc(1000, '\x01x'))),
      () => many(3000, () => raw(16, Buffer.from([1, 65 + this.below(26)]))),
      () => [raw(16, Buffer.alloc(230 * 256, `\xff${'x'.repeat(255)}`, 'latin1'))],
      () => many(3000, () => this.record(query.name, 'A')),
      () => many(2000, () => this.record(query.name, 'NS')),
      () => many(6, () => raw(47, TYPE_BITMAPS)),
      () => many(3000, () => raw(2, Buffer.from([0xc0, 12]))),
      () => many(3000, () => raw(46, Buffer.alloc(20))),
      () => [{ ...raw(41, Buffer.alloc(60_000)), name: '.' }],
    ])()
    return { flags: AA, [section]: made, ...(this.chance(0.3) ? { answers: made } : {}) }
  }

  private record(name: string, type: string): AnyRecord {
    const base = { name, ttl: this.pick([0, 1, 60, 86_400, 0xffffffff]) }
    switch (type) {
      case 'TXT': {
        const data = this.pick([
          EXPECTED,
          EXPECTED,
          `"${EXPECTED}"`,
          `${EXPECTED}=`,
          'v=spf1 -all',
          '\x00\xff',
          '',
        ])
        return { ...base, type, data }
      }
      case 'NS':
      case 'CNAME':
      case 'DNAME':
        return {
          ...base,
          type,
          data: this.chance(0.5) ? `${this.label()}.${this.apex}` : this.name({ name }),
        }
      case 'A':
        return { ...base, type, data: this.pick(this.addresses) }
      case 'AAAA':
        return { ...base, type, data: `2001:db8::${this.below(9999)}` }
      case 'DS':
        return {
          ...base,
          type,
          data: { keyTag: this.below(65_536), algorithm: 13, digestType: 2, digest: Buffer.alloc(32) },
        }
      case 'DNSKEY':
        return { ...base, type, data: { flags: 257, algorithm: 13, key: Buffer.alloc(64, this.below(256)) } }
      case 'SOA':
        return {
          ...base,
          name: this.chance(0.7) ? this.apex : name,
          type,
          data: {
            mname: `ns0.${this.apex}`,
            rname: '.',
            serial: this.below(2 ** 32),
            refresh: this.below(2 ** 32),
            retry: 1,
            expire: 1,
            minimum: this.below(2 ** 32),
          },
        }
      default:
        return { ...base, type: `UNKNOWN_${this.below(65_536)}`, data: Buffer.alloc(this.below(300)) }
    }
  }

  private type(): string {
    return this.pick(['TXT', 'NS', 'CNAME', 'DNAME', 'A', 'AAAA', 'DS', 'DNSKEY', 'SOA', 'other'])
  }

  private name({ name }: { readonly name: string }): string {
    const longest = `${'x'.repeat(60)}.${'y'.repeat(60)}.${'z'.repeat(60)}.${this.apex}`
    return this.pick([
      '.',
      'com',
      this.apex,
      this.apex,
      name,
      name,
      `${this.label()}.${name}`.slice(-200).replace(/^\.+/, ''),
      `${this.label()}.${this.apex}`,
      `ns${this.below(6)}.${this.apex}`,
      `\u0007"@\\.${this.apex}`,
      longest,
    ])
  }

  private label(): string {
    return `n${this.below(5000)}`
  }

  private below(limit: number): number {
    return Math.floor(this.random() * limit)
  }

  private chance(share: number): boolean {
    return this.random() < share
  }

  private pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }
}

const KINDS = ['random', 'referral', 'alias', 'giant', 'truncated', 'slow'] as const
type Kind = (typeof KINDS)[number]

/** The types of an NSEC record (RFC 4034 section 4.1.2) that has all of them, 65,536. */
const TYPE_BITMAPS = Buffer.concat([
  Buffer.from([0]),
  ...Array.from({ length: 256 }, (_, window) =>
    Buffer.concat([Buffer.from([window, 32]), Buffer.alloc(32, 0xff)]),
  ),
])

/** A message with these sections; over UDP with TC and without records if it is too large. */
export function encode(query: Query, { flags, ...sections }: Sections): Buffer {
  const header = {
    type: 'response',
    id: query.packet.id ?? 0,
    questions: query.packet.questions ?? [],
  } as const
  const asPacket = sections as Pick<packet.Packet, (typeof SECTION_NAMES)[number]>
  const whole = packet.encode({ ...header, flags, ...asPacket })
  const max = query.transport === 'udp' ? MAX_DATAGRAM : 65_535
  return whole.length <= max ? whole : packet.encode({ ...header, flags: flags | TC })
}
