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
  return secrets
    .filter((secret) => /[^\\]/.test(secret))
    .reduce((left, secret) => redactParts(redactWhole(left, secret, placeholder), secret, placeholder), text)
}

function redactWhole(text: string, secret: string, placeholder: string): string {
  const characters = Array.from(secret.replaceAll('\\', ''))
  // No spelling of a character is shorter than it. A short text is usual, and the pattern of a long token takes 50 ms to compile.
  return characters.length > text.length ? text : text.replace(spellingsOf(characters), placeholder)
}

/** Each character in any way of writing it. JSON that is quoted in JSON multiplies the backslashes in front of one. */
function spellingsOf(secret: readonly string[]): RegExp {
  const characters = secret.map((character) => {
    const code = character.charCodeAt(0)
    const hex = code.toString(16)
    return `(?:\\\\?u0*${hex}|%${hex}|&#x0*${hex};|&#0*${code};|\\u${hex.padStart(4, '0')})`
  })
  return new RegExp(characters.join('\\\\*'), 'gi')
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
