import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { clip } from '../../terminal/sanitize.ts'

/** Maximum characters of a name without the trailing dot, which make 255 octets on the wire (RFC 1035 section 2.3.4). */
const MAX_NAME_LENGTH = 253

/** Matches a label of lowercase ASCII letters, digits, underscores and inner hyphens (RFC 1035 section 2.3.1, RFC 8552). */
const LABEL = /^(?=.{1,63}$)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/
/** Matches invisible characters, including bidi marks, that a domain name can't have; not the joiners that some scripts need. */
const INVISIBLE = /(?!\p{Join_C})[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu
/** Matches quotation marks, primes and accents that users or word processors put around names. */
const QUOTES = /[\p{Quotation_Mark}`´′″]/gu
/** Matches the separator between two names: white space, line breaks, commas, semicolons and vertical bars. */
const SEPARATORS = /[\t-\r\u0085\p{Z},;|]+/u
/**
 * Matches characters that a typed domain name can have: those of IDNA2008 (RFC 5892), some of them in their context only (appendix
 * A), characters that normalization maps to these, dots and underscores.
 */
const ALLOWED =
  /(?![ªº])[\p{L}\p{M}\p{Nd}_.。．｡－\p{Join_C}\u06fd\u06fe\u0f0b\u3007-]|(?<=l)·(?=l)|\u0375(?=\p{sc=Grek})|(?<=\p{sc=Hebr})[\u05f3\u05f4]|(?<=[\p{scx=Hira}\p{scx=Kana}\p{scx=Han}])[・･]/giu

/** Result of `parseDomainName`: the name in A-labels and U-labels, or a problem and its fix, as an error's message and hint. */
export type DomainNameResult =
  | { readonly ok: true; readonly ascii: string; readonly unicode: string }
  | { readonly ok: false; readonly problem: string; readonly fix: string }

/**
 * Parses a domain name as a user types it, with or without a trailing dot, and converts IDNs to A-labels (RFC 5891). Refuses text
 * in which `domainToASCII` would change more than letter case and Unicode normalization: it deletes line breaks and decodes `%61`.
 * The fix suggests the name that was probably meant, if it is evident.
 */
export function parseDomainName(input: string): DomainNameResult {
  // Limit the work for a file pasted by mistake; no name comes near 10,000 characters.
  const text = input.trim().slice(0, 10_000)
  const refuse = (problem: string, meant = text, advice = 'use the name alone'): DomainNameResult => {
    const name = meant === text ? undefined : parseDomainName(meant)
    const fix = name?.ok ? `${advice}: ${name.unicode}` : name?.fix
    const shown = text.length > MAX_NAME_LENGTH ? clip(text, 100) : text
    return {
      ok: false,
      problem: `"${shown}" ${problem}`,
      fix: fix ?? 'give a domain name such as example.com',
    }
  }
  const unquoted = text.replace(QUOTES, '')
  if (unquoted !== text) return refuse(has('quotation marks'), unquoted, 'leave the quotation marks out')
  const [word = '', ...words] = text.split(SEPARATORS)
  if (words.length > 0) {
    // Suggest the first word if it is a domain name; otherwise nothing, by passing `text` itself to `refuse`: another word, or
    // all words joined, could be somebody else's domain.
    const meant = parseDomainName(word).ok ? word : text
    return refuse(has(describeCharacter(text.slice(word.length))), meant, 'give one name at a time')
  }
  if (isIP(text) === 0 && /[/?#]|:\d+$/.test(text))
    return refuse('is a web address, not a domain name', hostOf(text))
  if (text.includes('@'))
    return refuse('is an e-mail address, not a domain name', text.slice(text.lastIndexOf('@') + 1))
  // Refuse invisible characters except joiners, which the contextual rules of IDNA allow in some scripts (RFC 5892 appendix A).
  const visible = text.replace(INVISIBLE, '')
  if (visible !== text) return refuse('has an invisible character', visible)
  const [odd] = text.replace(ALLOWED, '')
  const bare = text.replace(/\p{Pd}/gu, '-').replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{M}\p{N}_.]+$/gu, '')
  if (odd !== undefined) return refuse(has(describeCharacter(odd)), bare)
  const typed = text.replace(/[.。．｡]$/, '')
  const ascii = domainToASCII(typed).toLowerCase()
  const unicode = domainToUnicode(ascii)
  const labels = ascii.split('.')
  // Newer releases of Node return an invalid A-label unchanged, so refuse a name that still has one (`xn--`) after the
  // conversion to Unicode.
  const isName = labels.every((label) => LABEL.test(label)) && !/(^|\.)xn--/.test(unicode)
  // Compare the typed name in U-labels (RFC 5890 section 2.3.2.1) with the converted one: a difference shows that `domainToASCII`
  // has changed more than case and normalization.
  const uLabels = foldCase(typed).replace(/(?<![^.])xn--[^.]+/g, (label) => domainToUnicode(label))
  if (!isName || uLabels !== foldCase(unicode) || isIP(ascii) !== 0 || ascii.length > MAX_NAME_LENGTH)
    return refuse('is not a domain name', text.replace(/^\.|(?<=\.)\.+/g, ''))
  // The lowercase of the Turkish capital İ is an i with a combining dot, which nobody means in a domain name. So suggest the name
  // without the dot.
  const plain = unicode.replaceAll('\u0307', '')
  if (plain !== unicode) return refuse(has('a separate dot (U+0307)'), plain, 'leave that dot out')
  if (labels.length < 2) return refuse('is not a whole domain name')
  return { ok: true, ascii, unicode }
}

/**
 * Folds letter case, normalization and kinds of dots for a comparison. Both sigmas become one, because the lowercase of a capital
 * sigma depends on its position in the word.
 */
const foldCase = (text: string): string =>
  text.normalize('NFKC').toLowerCase().replaceAll('ς', 'σ').replaceAll('。', '.').normalize()

/** Returns the problem text for a name that contains `what`. */
const has = (what: string): string => `is not a domain name: it has ${what}`

/**
 * Describes a text's first character for a message: a space, tab or line break by name, another character with its code point.
 */
function describeCharacter([character = '']: string): string {
  if (/[\t ]/.test(character)) return character === ' ' ? 'a space' : 'a tab'
  const codePoint = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
  return /[\n\r]/.test(character) ? 'a line break' : `"${character}" (U+${codePoint})`
}

/** Returns the host of a web address, without scheme, user info, port, path, query and fragment. */
function hostOf(text: string): string {
  const rest = text.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').split(/[/?#]/)[0] ?? ''
  return rest.slice(rest.lastIndexOf('@') + 1).replace(/:\d+$/, '')
}

/**
 * Returns the names above a name from the top down, without the root: for `a.b.example.com`, `com`, `example.com`, `b.example.com`.
 */
export function collectNonRootAncestors(name: string): string[] {
  const labels = name.split('.')
  return labels.slice(1).map((_, index) => labels.slice(labels.length - 1 - index).join('.'))
}

/** Whether `name` is `zone` or below it. Every name is below the root (`.`). */
export function isWithin(name: string, zone: string): boolean {
  return zone === '.' || name === zone || name.endsWith(`.${zone}`)
}

/** Counts the labels of a name; the root has none. */
export function countLabels(name: string): number {
  return name === '.' ? 0 : name.split('.').length
}

/**
 * Returns the text for a DNS provider's host field: `@` at the apex, else the name relative to the zone; the full name if the zone
 * is the root or doesn't contain the name.
 */
export function formatHostField(name: string, zone: string): string {
  if (name === zone) return '@'
  return isWithin(name, zone) && zone !== '.' ? name.slice(0, -zone.length - 1) : name
}

/**
 * Whether a name can be sent in a DNS query: false for characters outside of visible ASCII, an empty label, or a label or name that
 * is too long.
 */
export function canQueryName(name: string): boolean {
  return (
    name.length <= MAX_NAME_LENGTH &&
    /^[\x21-\x7e]+$/.test(name) &&
    name.split('.').every((label) => label.length >= 1 && label.length <= 63)
  )
}
