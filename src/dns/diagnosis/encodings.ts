/** The text decoded from each encoding that changes it. */
export function decodings(text: string): { encoding: string; text: string }[] {
  return ENCODINGS.map(([encoding, decode]) => ({ encoding, text: decode(text) })).filter(
    (decoded) => decoded.text !== text,
  )
}

/** The encodings that forms, mails and scripts apply to values, and how to undo them. */
const ENCODINGS: readonly (readonly [name: string, decode: (text: string) => string])[] = [
  ['URL encoding (%3D for "=")', (text) => text.replace(/((?:%[0-9a-f]{2})+)/gi, percentDecoded)],
  [
    'HTML (&#61; for "=")',
    (text) =>
      text
        .replace(/&#x([0-9a-f]{1,6});/gi, (_, digits: string) => character(digits, 16))
        .replace(/&#(\d{1,7});?/g, (_, digits: string) => character(digits, 10))
        .replace(/&([a-z]{2,8});/gi, (whole, name: string) => ENTITIES[name.toLowerCase()] ?? whole),
  ],
  [
    'escape sequences (\\u003d for "=")',
    (text) =>
      text
        .replace(/\\u\{([0-9a-f]{1,6})\}|\\u([0-9a-f]{4})/gi, (_, braced?: string, four?: string) =>
          character(braced ?? four ?? '', 16),
        )
        .replace(/\\x([0-9a-f]{2})/gi, (_, digits: string) => character(digits, 16))
        // Decimal, as in zone files (RFC 1035 section 5.1).
        .replace(/\\(\d{3})/g, (_, digits: string) => character(digits, 10)),
  ],
  ['escape sequences (\\n for a line break)', (text) => text.replace(/\\[nrt]/g, ' ')],
  [
    'quoted-printable (=3D for "=")',
    (text) => text.replace(/=([0-9a-f]{2})/gi, (_, digits: string) => character(digits, 16)),
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
