import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'

/** In characters without the trailing dot, which makes 255 octets on the wire (RFC 1035 section 2.3.4). */
const MAX_NAME_LENGTH = 253

/** Of an ASCII form, underscores allowed (RFC 1035 section 2.3.1, RFC 8552). */
const LABEL = /^(?=.{1,63}$)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/
/** Characters that nobody sees, bidi marks among them, except the joiners that some scripts need. */
const INVISIBLE = /(?![\u200c\u200d])[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu

export type NameCheck =
  | { readonly ok: true; readonly ascii: string; readonly unicode: string }
  | { readonly ok: false; readonly problem: string; readonly fix: string }

/**
 * Reads a domain name as a person types it. IDNs become their ASCII form (RFC 5891); a trailing dot and underscore
 * labels are allowed. For a pasted web or e-mail address, the fix suggests the name that was probably meant.
 */
export function checkName(input: string): NameCheck {
  const text = input.trim()
  const refuse = (problem: string, meant = text): NameCheck => {
    const name = meant === text ? undefined : checkName(meant)
    const fix = name?.ok ? `use the name alone: ${name.unicode}` : 'give a domain name such as example.com'
    return { ok: false, problem: `"${text}" ${problem}`, fix }
  }
  if (/[/?#]|:\d+$/.test(text) && isIP(text) === 0)
    return refuse('is a web address, not a domain name', hostOf(text))
  if (text.includes('@'))
    return refuse('is an e-mail address, not a domain name', text.slice(text.lastIndexOf('@') + 1))
  // The IDN rules drop these without a word, and the name that is left isn't the one that was shown. They decide about joiners
  // themselves (RFC 5892 appendix A).
  const visible = text.replace(INVISIBLE, '')
  if (visible !== text) return refuse('has an invisible character', visible)
  const ascii = domainToASCII(text.replace(/\.$/, '')).toLowerCase()
  const unicode = domainToUnicode(ascii)
  const labels = ascii.split('.')
  // Newer releases of Node return an invalid IDN label unchanged.
  const isName = labels.every((label) => LABEL.test(label)) && !/(^|\.)xn--/.test(unicode)
  if (!isName || isIP(ascii) !== 0 || ascii.length > MAX_NAME_LENGTH)
    return refuse('is not a domain name', text.replace(/^\*?\.|(?<=\.)\.+/g, ''))
  if (labels.length < 2) return refuse('is not a whole domain name')
  return { ok: true, ascii, unicode }
}

function hostOf(text: string): string {
  const rest = text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').split(/[/?#]/)[0] ?? ''
  return rest.slice(rest.lastIndexOf('@') + 1).replace(/:\d+$/, '')
}

/** The names above this one, without the root, from the top down: for `a.b.example.com`, `com`, `example.com`, `b.example.com`. */
export function ancestors(name: string): string[] {
  const labels = name.split('.')
  return labels.slice(1).map((_, index) => labels.slice(labels.length - 1 - index).join('.'))
}

/** Whether `name` is `zone` or below it. Everything is below the root (`.`). */
export function isWithin(name: string, zone: string): boolean {
  return zone === '.' || name === zone || name.endsWith(`.${zone}`)
}

export function labelCount(name: string): number {
  return name === '.' ? 0 : name.split('.').length
}

/** What to type into a provider's host field: `@` at the apex, else the name relative to the zone. */
export function relativeName(name: string, zone: string): string {
  if (name === zone) return '@'
  return isWithin(name, zone) && zone !== '.' ? name.slice(0, -zone.length - 1) : name
}

/** Whether a name from a DNS message can be queried: the wire format allows bytes that the text form can't hold. */
export function isAskable(name: string): boolean {
  return (
    name.length <= MAX_NAME_LENGTH &&
    /^[\x21-\x7e]+$/.test(name) &&
    name.split('.').every((label) => label.length >= 1 && label.length <= 63)
  )
}

/** Letters that nobody takes for others: Latin ones, those of East Asia and India, or Cyrillic or Greek throughout. */
const PLAIN_LABEL =
  /^(?:[a-z\d\u00df-\u024f_*-]+|[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Deva}ー\d-]+)$/u
const ONE_SCRIPT = /^(?:[\p{sc=Cyrl}\d.-]+|[\p{sc=Grek}\d.-]+)$/u

/** A name as people write it: with U-labels (RFC 5890 section 2.3.2.1), unless these look like another name. */
export function writtenName(name: string): string {
  const unicode = domainToUnicode(name)
  const isPlain = ONE_SCRIPT.test(unicode) || unicode.split('.').every((label) => PLAIN_LABEL.test(label))
  return isPlain ? unicode : name
}
