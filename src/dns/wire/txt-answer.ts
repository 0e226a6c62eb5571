import type { Message, ResourceRecord } from './message.ts'
import { isWithin, MAX_NAME_LENGTH } from './name.ts'

/** One TXT record: its strings, and their bytes joined (RFC 1035 section 3.3.14). */
export interface TxtValue {
  readonly bytes: Uint8Array
  readonly strings: readonly Uint8Array[]
}

/**
 * The value that is this text in UTF-8; none is null. Byte for byte: TXT values are case-sensitive, and nothing is trimmed.
 */
export function findText(values: readonly TxtValue[], text: string | null): TxtValue | undefined {
  const wanted = text === null ? undefined : Buffer.from(text)
  return values.find(({ bytes }) => wanted?.equals(bytes))
}

export function hasText(values: readonly TxtValue[], text: string | null): boolean {
  return findText(values, text) !== undefined
}

/** The values without repetitions. */
export function distinctValues(values: readonly TxtValue[]): TxtValue[] {
  return [...byContent(values).values()]
}

/** Whether each list has the values of the other one, in any order. */
export function haveSameValues(some: readonly TxtValue[], others: readonly TxtValue[]): boolean {
  if (some.length !== others.length) return false
  const [one, other] = [byContent(some), byContent(others)]
  return one.size === other.size && [...one.keys()].every((content) => other.has(content))
}

/** By their bytes as Latin-1, because there may be thousands to compare with each other. */
function byContent(values: readonly TxtValue[]): Map<string, TxtValue> {
  return new Map(values.map((value) => [Buffer.from(value.bytes).toString('latin1'), value]))
}

/** What Windows-1252 has from 0x80 to 0x9f; the rest is Latin-1. Five are undefined, and stay control characters. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** Bytes as text: UTF-8 if valid, otherwise Windows-1252, which keeps every byte. */
export function decodeValue(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    const text = Buffer.from(bytes).toString('latin1')
    return text.replace(/[\x80-\x9f]/g, (c) => WINDOWS_1252.charAt(c.charCodeAt(0) - 0x80))
  }
}

export function decodeValues(values: readonly TxtValue[]): string[] {
  return values.map(({ bytes }) => decodeValue(bytes))
}

export interface TxtAnswer {
  readonly aliases: readonly string[]
  /** The owner of the DNAME behind the first alias. */
  readonly dname: string | undefined
  /** The aliases lead in a circle, below themselves, or further than resolvers follow. */
  readonly loop: boolean
  readonly values: readonly TxtValue[]
  readonly ttl: number | null
  /** The TTL of the first alias. */
  readonly aliasTtl: number | null
  /** The target of a CNAME at the name itself, next to TXT records there (which RFC 1034 section 3.6.2 forbids). */
  readonly cnameBeside: string | undefined
}

/** The most that any common resolver follows. */
export const MAX_ALIASES = 16

/**
 * Reads the TXT set from an answer, following CNAMEs and DNAMEs (RFC 1034 section 4.3.2, RFC 6672). Stops after
 * `MAX_ALIASES`, or at an alias whose name is too long to exist: a DNAME below itself makes a longer name each time.
 */
export function readTxt(message: Message, name: string): TxtAnswer {
  const aliases: string[] = []
  const visited = new Set([name])
  let owner = name
  let aliasTtl: number | null = null
  const dnameOwner = dnameAbove(message, name)?.name
  const answer = (found: Pick<TxtAnswer, 'loop' | 'values' | 'ttl'>, cnameBeside?: string): TxtAnswer => ({
    ...found,
    dname: dnameOwner,
    aliases,
    aliasTtl,
    cnameBeside,
  })
  while (aliases.length <= MAX_ALIASES && owner.length <= MAX_NAME_LENGTH) {
    const txt = message.answers.filter((record) => record.type === 'TXT' && record.name === owner)
    const values = txt.flatMap((record) =>
      record.type === 'TXT' ? [{ bytes: Buffer.concat(record.strings), strings: record.strings }] : [],
    )
    const cname = cnameAt(message, owner)
    if (values.length > 0)
      return answer(
        { loop: false, values, ttl: txt[0]?.ttl ?? null },
        owner === name ? cname?.target : undefined,
      )
    const dname = dnameAbove(message, owner)
    const next = cname?.target ?? (dname && substitute(owner, dname))
    if (next === undefined) return answer({ loop: false, values: [], ttl: aliasTtl })
    aliasTtl ??= cname?.ttl ?? dname?.ttl ?? null
    aliases.push(next)
    const isBelowItself = dname !== undefined && isWithin(dname.target, dname.name)
    if (isBelowItself || visited.has(next)) return answer({ loop: true, values: [], ttl: aliasTtl })
    visited.add(next)
    owner = next
  }
  const loop = owner.length <= MAX_NAME_LENGTH
  return answer({ loop, values: [], ttl: aliasTtl })
}

type TargetRecord = Extract<ResourceRecord, { target: string }>

/** The CNAME of a name in an answer. */
export function cnameAt(message: Message, name: string): TargetRecord | undefined {
  return message.answers.find(
    (record): record is TargetRecord => record.type === 'CNAME' && record.name === name,
  )
}

/** The DNAME for a name in an answer; the server synthesizes the CNAME next to it (RFC 6672 section 3.1). */
function dnameAbove(message: Message, name: string): TargetRecord | undefined {
  return message.answers.find(
    (record): record is TargetRecord =>
      record.type === 'DNAME' && record.name !== name && isWithin(name, record.name),
  )
}

/** The name with the DNAME's target in place of its owner (RFC 6672 section 2.2); it may be too long to exist. */
function substitute(name: string, dname: TargetRecord): string {
  const labels = dname.name === '.' ? name : name.slice(0, -dname.name.length - 1)
  return dname.target === '.' ? labels : `${labels}.${dname.target}`
}
