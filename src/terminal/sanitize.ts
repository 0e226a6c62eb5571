/**
 * Text from outside (the service, DNS, URLs, files) is untrusted: it can hold escape sequences that rewrite the screen or
 * the clipboard, characters that reorder the text, and invisible characters. None of them is dropped, because a hidden
 * character often explains a problem. They are shown as escapes, `\n` or `\u{202e}`.
 */

/**
 * What must not be printed as is:
 * Cc (C0, DEL, C1: ESC, CSI, OSC …), Cf (bidi controls, zero-width characters, tags, soft hyphen), Cs (lone surrogates),
 * Zl and Zp (U+2028, U+2029), what Unicode says to show as nothing (fillers, variation selectors), non-characters, and
 * two that look like nothing (U+2800, U+FFFC).
 */
const HIDDEN = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\ufffc]`

/** Compiles at the first use: Unicode classes take a noticeable part of the program's start, and most text is ASCII. */
function compileOnce(make: () => RegExp): () => RegExp {
  let made: RegExp | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Hidden characters, unless they join an emoji, and marks that pile up in one place. */
const unsafe = compileOnce(
  () =>
    new RegExp(
      [
        // A presentation selector after an emoji or in a keycap, and a joiner between two emoji. Elsewhere they hide something.
        '(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]|(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
        '(?<=\\p{Extended_Pictographic}[\\ufe0f\\p{Emoji_Modifier}]?)\\u200d(?=\\p{Extended_Pictographic})',
        // Captured, because not allowed: a mark without a letter, which would land on our own text, or more than any script needs.
        '(^\\p{M}|(?<=\\p{M}{6})\\p{M})',
        `(${HIDDEN})`,
      ].join('|'),
      'gu',
    ),
)

const PRINTABLE = /^[\x20-\x7e]*$/
const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** A character by its code point, as everywhere here: `\u{a0}`. */
export function escapeCodePoint(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`
}

function escapeCharacter(character: string): string {
  return SHORT_ESCAPES[character] ?? escapeCodePoint(character)
}

function escapeUnsafe(text: string): string {
  return text.replace(unsafe(), (match: string, mark: string | undefined, hidden: string | undefined) => {
    const character = mark ?? hidden
    return character === undefined ? match : escapeCharacter(character)
  })
}

/**
 * Makes text safe for one line of a terminal: every control, escape, bidi or invisible character, including line breaks
 * and tabs, becomes a visible escape. Idempotent. For people to read: a backslash stays as is, so an escape can't be told
 * from text that already spelled it out.
 */
export function sanitizeLine(text: string): string {
  return PRINTABLE.test(text) ? text : escapeUnsafe(text)
}

/** The sanitized beginning of a text, for one line; beyond `length` characters it ends in an ellipsis. */
export function clip(text: string, length: number): string {
  // A character takes at most two units, so the rest of a long text doesn't matter.
  const characters = Array.from(text.slice(0, 2 * length + 2))
  return sanitizeLine(characters.length > length ? `${characters.slice(0, length).join('')}…` : text)
}

/**
 * A short, sanitized piece of a text that may be long or markup (a proxy's error page, for example), on one line.
 *
 * @param length characters before escaping
 */
export function excerpt(text: string, length = 200): string {
  const collapsed = text
    .slice(0, length * 50)
    .replace(/<(script|style)\b[^>]*>.*?<\/\1\s*>/gis, ' ')
    .replace(/<[^>]{0,2000}>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return clip(collapsed, length)
}

/**
 * One cell of tab-separated values. Tabs, line breaks, backslashes and everything unsafe are escaped, so a record is always
 * one line and reversible: `\t`, `\n`, `\r`, `\\`, `\u{hex}`.
 */
export function escapeTsv(text: string): string {
  return PRINTABLE.test(text) && !text.includes('\\') ? text : escapeUnsafe(text.replaceAll('\\', '\\\\'))
}

/** JSON.stringify escapes C0 inside strings, and writes line feeds itself between them. */
const BEYOND_ASCII = /[^\x00-\x7e]+/g
const hidden = compileOnce(() => new RegExp(HIDDEN, 'gu'))

/**
 * JSON whose bytes are harmless on a terminal and whose value is exactly the one given: C1, DEL, bidi, invisible and
 * line-separating characters are written as `\uXXXX` (RFC 8259 section 7).
 *
 * @param indent spaces per level; one line if undefined
 */
export function stringifyJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  return text.replace(BEYOND_ASCII, (characters) => characters.replace(hidden(), escapeUnits))
}

/** By UTF-16 unit: beyond U+FFFF that is a pair of escapes. */
function escapeUnits(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
}
