import type { Message, RecordOf } from './message.ts'

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

/** Whether each list has the values of the other one, in the same strings and in any order. */
export function haveSameValues(some: readonly TxtValue[], others: readonly TxtValue[]): boolean {
  const [one, other] = [byContent(some), byContent(others)]
  return one.size === other.size && [...one.keys()].every((content) => other.has(content))
}

/** By the bytes of their strings, because there may be thousands to compare with each other. */
function byContent(values: readonly TxtValue[]): Map<string, TxtValue> {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  return new Map(values.map((value) => [value.strings.map(hex).join(' '), value]))
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
  /** Where the CNAMEs lead, in order; the last one may close a circle. */
  readonly aliases: readonly string[]
  readonly values: readonly TxtValue[]
  /** Of the TXT set; without one, of the first alias. */
  readonly ttl: number | null
  /** The target of the CNAME at the name, followed or not: RFC 1034 section 3.6.2 forbids TXT records beside it. */
  readonly alias: string | null
}

/** The most that any common resolver follows. */
export const MAX_ALIASES = 16

/**
 * Reads the TXT set from an answer, following CNAMEs (RFC 1034 section 4.3.2) until one leads back, or for `MAX_ALIASES`. Next
 * to a DNAME, servers put the CNAME that it makes (RFC 6672 section 3.1).
 */
export function readTxt({ answers }: Message, name: string): TxtAnswer {
  const aliases: string[] = []
  let first: RecordOf<'CNAME'> | undefined
  let owner = name
  while (true) {
    const here = answers.filter((record) => record.name === owner)
    const txt = here.filter((record) => record.type === 'TXT')
    const cname = here.find((record) => record.type === 'CNAME')
    first ??= cname
    const values = txt.map(({ strings }) => ({ bytes: Buffer.concat(strings), strings }))
    const isCircle = new Set([name, ...aliases]).size <= aliases.length
    if (cname === undefined || values.length > 0 || isCircle || aliases.length >= MAX_ALIASES)
      return { aliases, alias: first?.target ?? null, values, ttl: (txt[0] ?? first)?.ttl ?? null }
    owner = cname.target
    aliases.push(owner)
  }
}
