/** Minimum length, in characters, of a redacted part of a long secret: longer than common prefixes, such as `re_live_`. */
const MIN_PART_LENGTH = 12
const BACKSLASH = 0x5c
/** Matches an escape, to be decoded, of JSON, JavaScript, URLs or HTML (numeric). JSON in JSON has several backslashes in front. */
const ESCAPES =
  /\\+u([\da-f]{4})|\\+u\{([\da-f]{1,6})\}|\\+x([\da-f]{2})|\\+|%([\da-f]{2})|&#x([\da-f]{1,8});|&#(\d{1,8});/
/** Matches characters that hide a secret from a search: zero-width ones, U+FFFD, most controls (UTF-16 read as UTF-8 has NULs). */
const INVISIBLE = /[\0-\b\u000e-\u001f\u007f\u00ad\u200b-\u200f\u2060\ufeff\ufffd]/
/**
 * Matches an escape, an invisible character, or the end of the text, so that a loop over the matches gets all text between them.
 */
const SPELLINGS = new RegExp(`${ESCAPES.source}|${INVISIBLE.source}|$`, 'gi')

/**
 * Replaces secrets, and parts of them of 12 characters or more, in an untrusted text, also if escaped as in JSON, URLs or HTML.
 * Shorten a text for display only afterward: a secret that is cut off after fewer characters isn't found.
 *
 * @param secrets the secrets; empty ones are ignored
 */
export function redact(text: string, secrets: readonly string[], placeholder = '[left out]'): string {
  return secrets.reduce((left, secret) => redactOne(left, secret, placeholder), text)
}

/** Replaces the secret, and every substring of it of `MIN_PART_LENGTH` characters or more: a service may quote only a part. */
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

/** A range of a text, in UTF-16 units; `to` is exclusive. */
type Span = readonly [from: number, to: number]

/**
 * Decodes a text's escapes, finds spans in the result, and replaces them in the original text; overlapping or adjacent spans get
 * one placeholder.
 */
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

/** Converts only ASCII letters to lowercase: `toLowerCase` may change the length of other text, so spans would no longer fit. */
function lowerCaseAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** Decodes a text's escapes and drops invisible characters. `ends[i]` is where decoded character `i` ends in the original text. */
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
    // Drop decoded backslashes and invisible characters, and matches of `SPELLINGS` without a code, such as an unescaped
    // invisible character: `code` is then NaN, and `character` U+0000, which `INVISIBLE` matches.
    if (code === BACKSLASH || INVISIBLE.test(character)) continue
    plain += character
    ends.push(at)
  }
  return { plain, ends }
}

/** Matches text that may be a token: 16 characters or more of a token's alphabet, also if two or more dots separate them (JWT). */
const TOKEN_LIKE = /[\w~+/=%\\-]{16,}(?:\.[\w~+/=%\\-]+)*|(?=[\w.-]{16})[\w-]+(?:\.[\w-]+){2,}/g
/**
 * Matches a label such as `x-request-id: ` or `"requestId":"` at the end of a text: a UUID after it isn't redacted, since support
 * needs it.
 */
const REQUEST_ID_LABEL = /(?:request|correlation|trace)[ _-]?(?:id)?\W{0,8}$/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Replaces whatever looks like a token in a text, because a service may quote a token that it has just issued. Keeps words, host
 * names and media types without digits and in a single case, and UUIDs labeled as the id of a request.
 */
export function redactTokens(text: string, placeholder = '[left out]'): string {
  return replaceDecoded(text, placeholder, function* (plain) {
    for (const { 0: word, index } of plain.matchAll(TOKEN_LIKE)) {
      const isWord = /^[a-z_/.-]+$|^[A-Z_/.-]+$/.test(word)
      const isId = UUID.test(word) && REQUEST_ID_LABEL.test(plain.slice(Math.max(0, index - 40), index))
      if (!isWord && !isId) yield [index, index + word.length]
    }
  })
}
