/**
 * A text with secrets taken out, however the text writes them: as they are, as a form or an address encodes them, or
 * with JSON's escapes (`\/`, `\u002f`), also where JSON is quoted in JSON. To be called before the text is shortened:
 * half a secret is not recognized.
 *
 * @param mark what takes the place of a secret.
 */
export function redactSecrets(text: string, secrets: readonly string[], mark: string): string {
  return secrets
    .filter((secret) => secret !== '')
    .flatMap(encodings)
    .reduce((left, secret) => redact(left, secret, mark), text)
}

/** A secret as it is, and as it went out in a form. */
function encodings(secret: string): string[] {
  const form = new URLSearchParams({ secret }).toString().slice('secret='.length)
  if (form === secret) return [secret]
  return [secret, form, form.replace(/%../g, (byte) => byte.toLowerCase())]
}

function redact(text: string, secret: string, mark: string): string {
  const wanted = secret.replace(/\\+/g, '\\')
  let redacted = ''
  let copied = 0
  for (let at = 0; at < text.length; ) {
    const end = endOfSecret(text, at, wanted)
    if (end === undefined) {
      at++
      continue
    }
    redacted += text.slice(copied, at) + mark
    copied = at = end
  }
  return redacted + text.slice(copied)
}

/** Where the secret ends that begins at `start`; undefined where none begins there. */
function endOfSecret(text: string, start: number, secret: string): number | undefined {
  let at = start
  for (let unit = 0; unit < secret.length; unit++) {
    const length = lengthOfUnit(text, at, secret.charAt(unit))
    if (length === 0) return undefined
    at += length
  }
  return at
}

/** A code unit as JSON escapes it. */
const ESCAPED = /\\{1,16}(?:u(?<hex>[\da-f]{4})|(?<plain>.))/isy
/** A run of backslashes, which counts as one, because every escaping multiplies them. */
const BACKSLASHES = /(?:\\{1,16}u005c|\\(?!u[\da-f]{4}))+/iy

/** How many characters of the text spell the unit; 0 where they spell another. */
function lengthOfUnit(text: string, at: number, unit: string): number {
  if (text.charAt(at) === unit && unit !== '\\') return 1
  if (text.charAt(at) !== '\\') return 0
  if (unit === '\\') {
    BACKSLASHES.lastIndex = at
    return BACKSLASHES.exec(text)?.[0].length ?? 0
  }
  ESCAPED.lastIndex = at
  const match = ESCAPED.exec(text)
  const { hex, plain } = match?.groups ?? {}
  const spelled = hex === undefined ? plain : String.fromCharCode(Number.parseInt(hex, 16))
  return spelled === unit ? (match?.[0].length ?? 0) : 0
}
