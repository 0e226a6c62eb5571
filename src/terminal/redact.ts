/** Shortest recognized part of a secret, longer than a prefix that many secrets share (`re_live_`). */
const MIN_PART_LENGTH = 12
const BACKSLASH = 0x5c
/** A character as JSON, JavaScript, a URL or HTML may write it. JSON that is quoted in JSON multiplies the backslashes. */
const ESCAPES =
  /\\+u([\da-f]{4})|\\+u\{([\da-f]{1,6})\}|\\+x([\da-f]{2})|\\+|%([\da-f]{2})|&#x([\da-f]{1,8});|&#(\d{1,8});/
/** Controls other than white space, zero-width characters, U+FFFD: UTF-16 that is read as UTF-8 has a NUL beside each letter. */
const INVISIBLE = /[\0-\b\u000e-\u001f\u007f\u00ad\u200b-\u200f\u2060\ufeff\ufffd]/
const SPELLINGS = new RegExp(`${ESCAPES.source}|${INVISIBLE.source}|$`, 'gi')

/**
 * A text from outside without the secrets that it quotes: as they are, escaped as in JSON (`\/`, `\u002f`), a URL (`%2F`)
 * or HTML (`&#47;`), or shortened. Call it before you shorten the text yourself: a very short part isn't recognized.
 * Backslashes at the ends of a secret may stay. It takes a time in proportion to both, and never throws.
 *
 * @param secrets empty ones are ignored
 */
export function redact(text: string, secrets: readonly string[], placeholder = '[left out]'): string {
  return secrets.reduce((left, secret) => redactOne(left, secret, placeholder), text)
}

/** Replaces each place where the text, without its spellings, has parts of the secret: a service may quote any of it. */
function redactOne(text: string, secret: string, placeholder: string): string {
  const decodedSecret = lowerCaseAscii(decodeEscapes(secret).plain)
  const size = Math.min(MIN_PART_LENGTH, decodedSecret.length)
  if (size === 0) return text
  const parts = new Set<string>()
  for (let at = 0; at + size <= decodedSecret.length; at++) parts.add(decodedSecret.slice(at, at + size))
  return replaceDecoded(text, placeholder, function* (plain) {
    const lower = lowerCaseAscii(plain)
    for (let at = 0; at + size <= lower.length; at++)
      if (parts.has(lower.slice(at, at + size))) yield [at, at + size]
  })
}

type Span = readonly [from: number, to: number]

/** Replaces spans of a text that are found in it without its spellings; overlapping ones once. */
function replaceDecoded(text: string, placeholder: string, find: (plain: string) => Iterable<Span>): string {
  const { plain, ends } = decodeEscapes(text)
  let left = ''
  let end = 0
  for (const [from, to] of find(plain)) {
    const start = ends[from - 1] ?? 0
    left += start > end || end === 0 ? text.slice(end, start) + placeholder : ''
    end = ends[to - 1] ?? text.length
  }
  return left + text.slice(end)
}

/** The text with the letters of ASCII in lower case, which leaves its length alone. */
function lowerCaseAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** A text with each spelling as the character it stands for, without invisible ones, and where in the text each character ends. */
function decodeEscapes(text: string): { readonly plain: string; readonly ends: readonly number[] } {
  let plain = ''
  const ends: number[] = []
  let at = 0
  for (const { 0: spelling, index, ...groups } of text.matchAll(SPELLINGS)) {
    plain += text.slice(at, index)
    while (at < index) ends.push(++at)
    at += spelling.length
    const hex = groups[1] ?? groups[2] ?? groups[3] ?? groups[4] ?? groups[5]
    const code = hex === undefined ? Number(groups[6]) : Number.parseInt(hex, 16)
    const character = String.fromCharCode(code)
    // A backslash, however it is written, only escapes what follows. NaN, of an invisible character, becomes U+0000.
    if (code === BACKSLASH || INVISIBLE.test(character)) continue
    plain += character
    ends.push(at)
  }
  return { plain, ends }
}

/** A long word, with what follows after dots; or three or more shorter ones with dots, like a JSON Web Token. */
const TOKEN_LIKE = /[\w~+/=%\\-]{16,}(?:\.[\w~+/=%\\-]+)*|(?=[\w.-]{16})[\w-]+(?:\.[\w-]+){2,}/g
/** In front of an id by which support finds a request: `x-request-id: `, `"requestId":"`. */
const REQUEST_ID = /(?:request|correlation|trace)[ _-]?(?:id)?\W{0,8}$/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Removes anything that could be a token: a service may quote the one that it has just issued, in any form. Keeps long words,
 * host names and media types in one case, and UUIDs that are named as the id of a request.
 */
export function redactTokens(text: string, placeholder = '[left out]'): string {
  return replaceDecoded(text, placeholder, function* (plain) {
    for (const { 0: word, index } of plain.matchAll(TOKEN_LIKE)) {
      const isWord = /^[a-z_/.-]+$|^[A-Z_/.-]+$/.test(word)
      const isId = UUID.test(word) && REQUEST_ID.test(plain.slice(Math.max(0, index - 40), index))
      if (!isWord && !isId) yield [index, index + word.length]
    }
  })
}
