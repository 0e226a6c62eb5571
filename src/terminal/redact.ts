/** Shortest recognized part of a secret, longer than a prefix that many secrets share (`re_live_`). */
const LEAST_PART = 12
const BACKSLASH = 0x5c
/** A character as JSON, a URL or HTML may write it. JSON that is quoted in JSON multiplies the backslashes. */
const SPELLING = /\\+u([\da-f]{4})|\\+|%([\da-f]{2})|&#x([\da-f]{1,8});|&#(\d{1,8});/gi

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
  const wanted = withoutSpellings(secret).plain
  const size = Math.min(LEAST_PART, wanted.length)
  if (size === 0) return text
  const parts = new Set<string>()
  for (let at = 0; at + size <= wanted.length; at++) parts.add(wanted.slice(at, at + size))
  const { plain, starts, ends } = withoutSpellings(text)
  let left = ''
  let end = 0
  for (let at = 0; at + size <= plain.length; at++) {
    if (!parts.has(plain.slice(at, at + size))) continue
    const start = starts[at] ?? 0
    left += start > end || end === 0 ? text.slice(end, start) + placeholder : ''
    end = ends[at + size - 1] ?? text.length
  }
  return left + text.slice(end)
}

/** A text in lower case with each spelling as the character it stands for, and where in the text each of these is. */
function withoutSpellings(text: string) {
  const units: string[] = []
  const starts: number[] = []
  const ends: number[] = []
  const add = (unit: string, start: number, end: number) => {
    units.push(/[A-Z]/.test(unit) ? unit.toLowerCase() : unit)
    starts.push(start)
    ends.push(end)
  }
  let from = 0
  for (const { 0: spelling, 1: json, 2: url, 3: hex, 4: decimal, index } of text.matchAll(SPELLING)) {
    for (; from < index; from++) add(text.charAt(from), from, from + 1)
    from = index + spelling.length
    const digits = json ?? url ?? hex
    const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16)
    // A backslash, however it is written, only escapes what follows.
    if (!Number.isNaN(code) && code !== BACKSLASH) add(String.fromCharCode(code), index, from)
  }
  for (; from < text.length; from++) add(text.charAt(from), from, from + 1)
  return { plain: units.join(''), starts, ends }
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
