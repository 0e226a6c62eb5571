/**
 * How one character may be escaped. Backslashes are ignored on both sides: JSON puts one in front of a character, and JSON
 * that is quoted in JSON multiplies them.
 */
const JSON_ESCAPED = /\\+u(?<hex>[0-9a-f]{4})|\\*(?<itself>[^\\])|\\+/gis
/** Also as in a URL, a form or HTML. */
const ANY_ESCAPED =
  /\\+u(?<hex>[0-9a-f]{4})|\\*(?:%(?<percent>[0-9a-f]{2})|&#x0*(?<html>[0-9a-f]{1,4});|&#0*(?<decimal>\d{1,5});|(?<itself>[^\\]))|\\+/gis

/** Shortest recognized part of a secret, longer than a prefix that many secrets share (`re_live_`). */
const LEAST_PART = 12
/** In a text with more UTF-16 units, only whole secrets are replaced. */
const LONGEST_TEXT = 2 ** 20

/**
 * A text from outside without the secrets that it quotes: as they are, escaped as in JSON (`\/`, `\u002f`), a URL (`%2F`)
 * or HTML (`&#47;`), or shortened. Call it before you shorten the text yourself: a very short part isn't recognized.
 * Backslashes at the ends of a secret may stay.
 *
 * @param secrets empty ones are ignored
 */
export function redact(text: string, secrets: readonly string[], placeholder = '[left out]'): string {
  let redacted = text
  for (const secret of secrets) {
    if (secret === '') continue
    if (redacted.includes('\\')) redacted = redactEscaped(redacted, secret, placeholder, JSON_ESCAPED)
    if (/[%&]/.test(redacted)) redacted = redactEscaped(redacted, secret, placeholder, ANY_ESCAPED)
    redacted = redactParts(redacted.replaceAll(secret, placeholder), secret, placeholder)
  }
  return redacted
}

/** A service that shortens what it quotes leaves most of a secret, so every part of it is replaced. */
function redactParts(text: string, secret: string, placeholder: string): string {
  if (text.length > LONGEST_TEXT) return text
  const parts = new Set<string>()
  for (let at = 0; at + LEAST_PART <= secret.length; at++) parts.add(secret.slice(at, at + LEAST_PART))
  let left = ''
  let end = 0
  for (let at = 0; at + LEAST_PART <= text.length; at++) {
    if (!parts.has(text.slice(at, at + LEAST_PART))) continue
    left += at > end || end === 0 ? text.slice(end, at) + placeholder : ''
    end = at + LEAST_PART
  }
  return left + text.slice(end)
}

function redactEscaped(text: string, secret: string, placeholder: string, escaped: RegExp): string {
  const wanted = secret.replaceAll('\\', '')
  if (wanted === '') return text
  let plain = ''
  /** The position in `text` of each UTF-16 unit of `plain`, and the end. */
  const starts: number[] = []
  for (const { groups, index } of text.matchAll(escaped)) {
    const { hex, percent, html, decimal, itself } = groups ?? {}
    const code = decimal === undefined ? Number.parseInt(hex ?? percent ?? html ?? '', 16) : Number(decimal)
    const unit = itself ?? (Number.isNaN(code) ? '' : String.fromCharCode(code))
    if (unit === '' || unit === '\\') continue
    plain += unit
    starts.push(index)
  }
  starts.push(text.length)
  let left = ''
  let end = 0
  for (let at = plain.indexOf(wanted); at >= 0; at = plain.indexOf(wanted, at + wanted.length)) {
    left += text.slice(end, starts[at]) + placeholder
    end = starts[at + wanted.length] ?? text.length
  }
  return left + text.slice(end)
}

/** A long word, with what follows after dots; or three or more shorter ones with dots, like a JSON Web Token. */
const LIKE_TOKENS = /[\w~+/=%\\-]{16,}(?:\.[\w~+/=%\\-]+)*|(?=[\w.-]{16})[\w-]+(?:\.[\w-]+){2,}/g
/** In front of an id by which support finds a request: `x-request-id: `, `"requestId":"`. */
const REQUEST_ID = /(?:request|correlation|trace)[ _-]?(?:id)?\W{0,8}$/i
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Removes anything that could be a token: a service may quote the one that it has just issued, in any form. Keeps long words,
 * host names and media types in one case, and UUIDs that are named as the id of a request.
 */
export function withoutTokens(text: string, placeholder = '[left out]'): string {
  return text.replace(LIKE_TOKENS, (word, at: number) => {
    const isWord = /^[a-z_/.-]+$|^[A-Z_/.-]+$/.test(word)
    const isId = UUID.test(word) && REQUEST_ID.test(text.slice(Math.max(0, at - 40), at))
    return isWord || isId ? word : placeholder
  })
}
