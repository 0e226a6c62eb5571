import { quote, type Text, text as textOf, unquoted, type Value } from './text.ts'

/** The text decoded from each encoding that changes it. */
export function decodings(text: string): { encoding: Text; text: string }[] {
  return ENCODINGS.map(([name, decode, piece]) => ({
    encoding: piece === undefined ? name : withExample(name, decode, text.match(piece) ?? []),
    text: decode(text),
  })).filter((decoded) => decoded.text !== text)
}

/** `HTML (&#61; for "=")`, with the first of the pieces that are encoded. */
function withExample(name: string, decode: (text: string) => string, pieces: readonly string[]): Text {
  const piece = pieces.find((one) => decode(one) !== one)
  return piece === undefined ? name : textOf`${name} (${unquoted(piece)} for ${described(decode(piece))})`
}

function described(character: string): Text | Value {
  if (/^[\p{C}\p{Z}]*$/u.test(character)) return 'an invisible character'
  return character === '"' ? 'a quotation mark' : quote(character)
}

/** The encodings that forms, mails and scripts apply to values, how to undo them, and what they put for a character. */
const ENCODINGS: readonly (readonly [name: string, decode: (text: string) => string, piece?: RegExp])[] = [
  ['URL encoding', (text) => text.replace(/((?:%[0-9a-f]{2})+)/gi, percentDecoded), /(?:%[0-9a-f]{2})+/gi],
  [
    'HTML',
    (text) =>
      text
        .replace(/&#x([0-9a-f]{1,6});/gi, (_, digits: string) => character(digits, 16))
        .replace(/&#(\d{1,7});?/g, (_, digits: string) => character(digits, 10))
        .replace(/&([a-z]{2,8});/gi, (whole, name: string) => ENTITIES[name.toLowerCase()] ?? whole),
    /&#?\w{1,8};?/g,
  ],
  [
    'escape sequences',
    (text) =>
      text
        .replace(/\\u\{([0-9a-f]{1,6})\}|\\u([0-9a-f]{4})/gi, (_, braced?: string, four?: string) =>
          character(braced ?? four ?? '', 16),
        )
        .replace(/\\x([0-9a-f]{2})/gi, (_, digits: string) => character(digits, 16))
        // Decimal, as in zone files (RFC 1035 section 5.1).
        .replace(/\\(\d{3})/g, (_, digits: string) => character(digits, 10)),
    /\\u\{[0-9a-f]{1,6}\}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\\d{3}/gi,
  ],
  ['escape sequences (\\n for a line break)', (text) => text.replace(/\\[nrt]/g, ' ')],
  [
    'quoted-printable',
    (text) => text.replace(/=([0-9a-f]{2})/gi, (_, digits: string) => character(digits, 16)),
    /=[0-9a-f]{2}/gi,
  ],
  // As in the headers of mails (RFC 2047), but a `_` stays: values have no spaces.
  [
    'a MIME encoded word',
    (text) =>
      text.replace(/=\?[\w-]+\?([qb])\?([^?]*)\?=/gi, (_, encoding: string, word: string) =>
        encoding.toLowerCase() === 'b'
          ? Buffer.from(word, 'base64').toString('utf8')
          : word.replace(/((?:=[0-9a-f]{2})+)/gi, (run) => fromHex(run.replaceAll('=', ''))),
      ),
  ],
  ['hexadecimal', (text) => (/^(?:0x|\\x)?(?:[0-9a-f]{2}[\s:]?)+$/i.test(text) ? fromHex(text) : text)],
  ['HTML tags', (text) => text.replace(/<\/?[a-z]{1,10}\s?\/?>/gi, '')],
  // How other services have people prove a domain: as a tag in a page, or an entry in a file.
  ['an HTML meta tag', (text) => metaTag(text) ?? text],
  [
    'an entry of a JSON object',
    (text) => (/^\[?\{.*\}\]?$/.test(text) ? entry(text.replace(/^\[?\{|\}\]?$/g, '')) : text),
  ],
  [
    'an array',
    (text) => text.replace(/^([^=[\]]+=)?\[(.*)\]$/, (_, key = '', inside: string) => key + entry(inside)),
  ],
  [
    'an array with a key',
    (text) =>
      text.replace(
        /^([^[\]]+)\[["']?([^[\]"']*)["']?\](?:=(.*))?$/,
        (_, key: string, inside: string, value = '') => `${key}=${inside}${value}`,
      ),
  ],
  ['a key and a value in quotation marks', (text) => (/["'](?::|=>)["']/.test(text) ? entry(text) : text)],
  ['a URL', (text) => queryOrPath(text) ?? text],
  ['base64', (text) => (/^[\w+/-]+=*$/.test(text) ? Buffer.from(text, 'base64').toString('utf8') : text)],
]

/** The text, if it was stored with two bytes for each character, with or without a byte order mark. */
export function fromUtf16(text: string): string | undefined {
  return /^(?:(?:ÿþ)?(?:[^\0]\0)+|(?:þÿ)?(?:\0[^\0])+)$/.test(text)
    ? text.replace(/^ÿþ|^þÿ|\0/g, '')
    : undefined
}

function fromHex(text: string): string {
  return Buffer.from(text.replace(/^(?:0x|\\x)|[\s:]/gi, ''), 'hex').toString('utf8')
}

/** An entry of an object or array as `key=value`, or its only value. There may be no spaces left in it. */
function entry(text: string): string {
  const parts = /^["']?([^"':=,>]+)=?["']?(?::|=>|,)\[?["']?([^"',\]]+)["']?\]?$/.exec(text)
  return parts?.slice(1).join('=') ?? text.replace(/^["']|["']$/g, '')
}

/** The first parameter of a URL, or the last two parts of its path as `key=value`. */
function queryOrPath(text: string): string | undefined {
  const [, path = '', query] = /^[a-z][a-z\d+.-]*:\/\/([^?#]*)\??([^#]*)/i.exec(text) ?? []
  if (query) return query.split('&')[0]
  const parts = path.split('/').filter((part) => part !== '')
  const last = parts.at(-1)
  return last?.includes('=') ? last : parts.length > 0 ? parts.slice(-2).join('=') : undefined
}

/** `name=content`. There may be no spaces left in the tag. */
function metaTag(text: string): string | undefined {
  if (!/^<meta/i.test(text)) return undefined
  const attribute = (name: string) => new RegExp(`${name}=["']([^"']+)`, 'i').exec(text)?.[1]
  const [name, content] = [attribute('name'), attribute('content')]
  return name && content && `${name}=${content}`
}

function percentDecoded(run: string): string {
  return Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8')
}

function character(digits: string, radix: number): string {
  const code = Number.parseInt(digits, radix)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}

const ENTITIES: Readonly<Record<string, string>> = {
  equals: '=',
  amp: '&',
  quot: '"',
  ldquo: '“',
  rdquo: '”',
  lsquo: '‘',
  rsquo: '’',
  apos: "'",
  lt: '<',
  gt: '>',
  lowbar: '_',
  hyphen: '-',
  dash: '-',
  period: '.',
  sol: '/',
  plus: '+',
  colon: ':',
  nbsp: ' ',
}
