import type { Message } from './message.ts'
import { isWithin, MAX_NAME_LENGTH } from './name.ts'

/** One TXT record: its strings, and their bytes joined (RFC 1035 section 3.3.14). */
export interface TxtValue {
  readonly bytes: Uint8Array
  readonly strings: readonly Uint8Array[]
}

/**
 * Whether one of the values is this text in UTF-8; none is null. Byte for byte: TXT values are case-sensitive, and nothing is
 * trimmed.
 */
export function hasText(values: readonly TxtValue[], text: string | null): boolean {
  const wanted = text === null ? undefined : Buffer.from(text)
  return wanted !== undefined && values.some(({ bytes }) => wanted.equals(bytes))
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
  /** The aliases lead in a circle, below themselves, or further than resolvers follow. */
  readonly loop: boolean
  readonly values: readonly TxtValue[]
  /** Of the TXT set; without one, of the first alias. */
  readonly ttl: number | null
  readonly aliasTtl: number | null
}

/** The most that any common resolver follows. */
export const MAX_ALIASES = 16

/**
 * Reads the TXT set from an answer, following CNAMEs and DNAMEs (RFC 1034 section 4.3.2, RFC 6672). Stops after
 * `MAX_ALIASES`, or at an alias whose name is too long to exist: a DNAME below itself makes a longer name each time.
 */
export function readTxt({ answers }: Message, name: string): TxtAnswer {
  const aliases: string[] = []
  let aliasTtl: number | null = null
  for (let owner = name; aliases.length <= MAX_ALIASES && owner.length <= MAX_NAME_LENGTH; ) {
    const at = owner
    const txt = answers.filter((record) => record.type === 'TXT' && record.name === at)
    const values = txt.flatMap((record) =>
      record.type === 'TXT' ? [{ bytes: Buffer.concat(record.strings), strings: record.strings }] : [],
    )
    if (values.length > 0) return { aliases, loop: false, values, ttl: txt[0]?.ttl ?? null, aliasTtl }
    const cname = answers.find((record) => record.type === 'CNAME' && record.name === at)
    // The server synthesizes the CNAME next to a DNAME, or leaves it out (RFC 6672 section 3.1).
    const dname = answers.find(
      (record) => record.type === 'DNAME' && record.name !== at && isWithin(at, record.name),
    )
    const alias = cname ?? dname
    if (alias === undefined || !('target' in alias))
      return { aliases, loop: false, values, ttl: aliasTtl, aliasTtl }
    const next = cname === undefined ? substitute(at, alias) : alias.target
    aliasTtl ??= alias.ttl
    const isBelowItself = dname !== undefined && 'target' in dname && isWithin(dname.target, dname.name)
    const isLoop = isBelowItself || next === name || aliases.includes(next)
    aliases.push(next)
    if (isLoop) return { aliases, loop: true, values, ttl: aliasTtl, aliasTtl }
    owner = next
  }
  return { aliases, loop: aliases.length > MAX_ALIASES, values: [], ttl: aliasTtl, aliasTtl }
}

/** The name with the DNAME's target in place of its owner (RFC 6672 section 2.2); it may be too long to exist. */
function substitute(
  name: string,
  { name: owner, target }: { readonly name: string; readonly target: string },
): string {
  const labels = owner === '.' ? name : name.slice(0, -owner.length - 1)
  return target === '.' ? labels : `${labels}.${target}`
}
