import type { DnsReply, RecordOf } from './message.ts'

/** RDATA of one TXT record: its character-strings, and their bytes joined (RFC 1035 section 3.3.14). */
export interface TxtRdata {
  readonly bytes: Uint8Array
  readonly strings: readonly Uint8Array[]
}

/** Whether one of the values equals `expected` in UTF-8, byte for byte, since TXT values are case-sensitive; false for null. */
export function hasTxtValue(values: readonly TxtRdata[], expected: string | null): boolean {
  const wanted = expected === null ? undefined : Buffer.from(expected)
  return wanted !== undefined && values.some(({ bytes }) => wanted.equals(bytes))
}

/**
 * Keeps one of several values with the same character-strings. The same text split into other character-strings is kept as well.
 */
export function deduplicateValues(values: readonly TxtRdata[]): TxtRdata[] {
  return [...byContent(values).values()]
}

/** Whether both lists are the same set of values, split into the same character-strings; order and duplicates don't matter. */
export function haveSameValues(some: readonly TxtRdata[], others: readonly TxtRdata[]): boolean {
  const [one, other] = [byContent(some), byContent(others)]
  return one.size === other.size && [...one.keys()].every((content) => other.has(content))
}

/** Maps TXT values by their character-strings in hex, so that thousands of values can be compared quickly. */
function byContent(values: readonly TxtRdata[]): Map<string, TxtRdata> {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  return new Map(values.map((value) => [value.strings.map(hex).join(' '), value]))
}

/** Characters of Windows-1252 from 0x80 to 0x9f, where it differs from Latin-1. Five are undefined, and stay control characters. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** Decodes bytes as UTF-8 or, if they aren't valid UTF-8, as Windows-1252, which accepts every byte. */
export function decodeUtf8OrWindows1252(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    const text = Buffer.from(bytes).toString('latin1')
    return text.replace(/[\x80-\x9f]/g, (c) => WINDOWS_1252.charAt(c.charCodeAt(0) - 0x80))
  }
}

export function decodeTxtValues(values: readonly TxtRdata[]): string[] {
  return values.map(({ bytes }) => decodeUtf8OrWindows1252(bytes))
}

/** TXT set of a name, and the CNAME chain followed from the name, as read from one response. */
export interface TxtAnswer {
  /** Targets of the CNAMEs that were followed, in order; the last target might close a loop. */
  readonly aliases: readonly string[]
  readonly values: readonly TxtRdata[]
  /** TTL in seconds of the TXT set, or of the first CNAME if there is no TXT set; null if there is neither. */
  readonly ttl: number | null
  /** Target of the CNAME at the queried name, even with TXT records beside it, which RFC 1034 section 3.6.2 forbids. */
  readonly alias: string | null
}

/** Maximum number of CNAMEs that are followed in a chain; common resolvers follow about as many. */
export const MAX_CNAMES = 16

/**
 * Reads the TXT set of a name from a response, following CNAMEs (RFC 1034 section 4.3.2) until a loop or `MAX_CNAMES`. A DNAME
 * needs no code of its own, because servers add the CNAME that it generates (RFC 6672 section 3.1).
 */
export function readTxtAnswer({ answers }: DnsReply, name: string): TxtAnswer {
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
    if (cname === undefined || values.length > 0 || isCircle || aliases.length >= MAX_CNAMES)
      return { aliases, alias: first?.target ?? null, values, ttl: (txt[0] ?? first)?.ttl ?? null }
    owner = cname.target
    aliases.push(owner)
  }
}
