/**
 * A text with secrets taken out, however the text writes them: as they are, percent-encoded, or with JSON's escapes
 * (`\/`, `\u002f`), also where JSON is quoted in JSON. To be called before the text is shortened: half a secret is not
 * recognized.
 *
 * @param mark what takes the place of a secret.
 */
export function redactSecrets(text: string, secrets: readonly string[], mark: string): string {
  return secrets.reduce((left, secret) => (secret === '' ? left : redact(left, secret, mark)), text)
}

function redact(text: string, secret: string, mark: string): string {
  let redacted = ''
  let copied = 0
  for (let at = 0; at < text.length; ) {
    const end = endOfSecret(text, at, secret)
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

/** A code unit, escaped as JSON or as an address does it. */
const ESCAPED = /\\{1,8}u(?<json>[\da-f]{4})|%(?<percent>[\da-f]{2})|\\{1,8}(?<plain>.)/isy

/** How many characters of the text spell the unit; 0 where they spell another. */
function lengthOfUnit(text: string, at: number, unit: string): number {
  const first = text.charAt(at)
  if (first === unit) return 1
  if (first !== '\\' && first !== '%') return 0
  ESCAPED.lastIndex = at
  const match = ESCAPED.exec(text)
  const { json, percent, plain } = match?.groups ?? {}
  const hex = json ?? percent
  const spelled = hex === undefined ? plain : String.fromCharCode(Number.parseInt(hex, 16))
  return spelled === unit ? (match?.[0].length ?? 0) : 0
}
