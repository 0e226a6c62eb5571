/** How one character may be written instead of itself: in JSON, in an address or form, in HTML. */
const ESCAPED = /\\{1,8}u([0-9a-f]{4})|%([0-9a-f]{2})|&#x0*([0-9a-f]{1,4});|&#0*(\d{1,5});|\\{0,8}(.)/gis

/**
 * A text from outside without the secrets that it quotes: as they are, or with characters of them written as JSON (`\/`,
 * `\u002f`), an address (`%2F`) or HTML (`&#47;`) would. Call it before a text is shortened, since half a secret is not
 * recognized.
 *
 * @param secrets an empty one is ignored.
 */
export function redact(text: string, secrets: readonly string[], placeholder = '[left out]'): string {
  let redacted = text
  for (const secret of secrets) {
    if (secret === '') continue
    redacted = redacted.replaceAll(secret, placeholder)
    if (/[\\%&]/.test(redacted)) redacted = redactEscaped(redacted, secret, placeholder)
  }
  return redacted
}

function redactEscaped(text: string, secret: string, placeholder: string): string {
  let plain = ''
  /** Where in the text each UTF-16 unit of the plain one begins; then the end. */
  const starts: number[] = []
  for (const { 1: json, 2: percent, 3: hex, 4: decimal, 5: itself, index } of text.matchAll(ESCAPED)) {
    const code = decimal === undefined ? Number.parseInt(json ?? percent ?? hex ?? '', 16) : Number(decimal)
    plain += itself ?? String.fromCharCode(code)
    starts.push(index)
  }
  starts.push(text.length)
  let left = ''
  let end = 0
  for (let at = plain.indexOf(secret); at >= 0; at = plain.indexOf(secret, at + secret.length)) {
    left += text.slice(end, starts[at]) + placeholder
    end = starts[at + secret.length] ?? text.length
  }
  return left + text.slice(end)
}
