/**
 * This module makes untrusted text (from the service, DNS, URLs, files) safe to print: escape sequences in it could rewrite the
 * screen or the clipboard, and bidi or invisible characters could disguise it. These characters are shown as escapes, such as
 * `\u{202e}`, not dropped: an invisible character often explains a problem.
 */

/**
 * Regular expression class of the characters to escape: controls (Cc), bidi and other format characters (Cf), lone surrogates (Cs),
 * line separators, default-ignorable characters, noncharacters, and U+2800 and U+FFFC, which look blank.
 */
const HIDDEN = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2800\ufffc]`

/** Returns a function that compiles a pattern on first use: compiling Unicode classes delays a start, and most text is ASCII. */
function compileOnce(make: () => RegExp): () => RegExp {
  let made: RegExp | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Matches characters to escape (groups 1 and 2) and, in no group, invisible characters in emoji, which are kept. */
const unsafe = compileOnce(
  () =>
    new RegExp(
      [
        // Without a capture group, so not escaped: a variation selector after an emoji or in a keycap, and a zero-width joiner
        // between two emoji.
        '(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]|(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
        '(?<=\\p{Extended_Pictographic}[\\ufe0f\\p{Emoji_Modifier}]?)\\u200d(?=\\p{Extended_Pictographic})',
        // Group 1, to be escaped: a combining mark at the start (it would attach to our own text), or after six others.
        '(^\\p{M}|(?<=\\p{M}{6})\\p{M})',
        `(${HIDDEN})`,
      ].join('|'),
      'gu',
    ),
)

/** Matches text of printable ASCII characters only, which needs no escaping. */
const PRINTABLE = /^[\x20-\x7e]*$/
const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Returns the escape of a character by its code point: `\u{a0}`. */
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
 * Makes text safe for one line of a terminal: shows controls, line breaks, bidi and (except in emoji) invisible characters, and
 * stray or too many combining marks, as escapes. Idempotent, because backslashes aren't escaped.
 */
export function sanitizeLine(text: string): string {
  return PRINTABLE.test(text) ? text : escapeUnsafe(text)
}

/** Returns the first `length` characters of a text, with an ellipsis if more follow, sanitized for one line. */
export function clip(text: string, length: number): string {
  // Split only the start of a text that may be huge: a code point has at most two UTF-16 units.
  const characters = Array.from(text.slice(0, 2 * length + 2))
  return sanitizeLine(characters.length > length ? `${characters.slice(0, length).join('')}…` : text)
}

/**
 * Returns the beginning of a text, without HTML tags, scripts and styles (as in a proxy's error page), sanitized for one line.
 *
 * @param length maximum number of characters before escaping
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
 * Escapes text for one cell of tab-separated values: unsafe characters, line breaks, tabs and backslashes become escapes such as
 * `\n` or `\u{202e}`. So a record is one line, and the escaping can be reversed.
 */
export function escapeTsvCell(text: string): string {
  return PRINTABLE.test(text) && !text.includes('\\') ? text : escapeUnsafe(text.replaceAll('\\', '\\\\'))
}

/** Matches the text in which to search for hidden characters: DEL and non-ASCII. `JSON.stringify` already escapes C0 controls. */
const BEYOND_ASCII = /[^\x00-\x7e]+/g
const hidden = compileOnce(() => new RegExp(HIDDEN, 'gu'))

/**
 * Serializes a value as JSON that is safe to print on a terminal: control, bidi, invisible and line-separating characters are
 * written as `\uXXXX` (RFC 8259 section 7), which parses to the same value.
 *
 * @param indent spaces per level; undefined for a single line
 */
export function stringifyJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent) ?? 'null'
  return text.replace(BEYOND_ASCII, (characters) => characters.replace(hidden(), escapeUnits))
}

/** Escapes each UTF-16 unit of a character as `\uXXXX`: a character beyond U+FFFF has two. */
function escapeUnits(character: string): string {
  return Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
  ).join('')
}
