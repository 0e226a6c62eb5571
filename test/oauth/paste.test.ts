import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { listenForPastes, parsePastedRedirect } from '../../src/oauth/paste.ts'
import { createFakeClock } from '../fake-context.ts'

const STATE = 'xyz_State-of-43-characters-AAAAAAAAAAAAAAAAA'
const expected = { state: STATE, issuer: 'https://auth.example', host: '127.0.0.1:4711' }
const CODE_FIRST = `http://127.0.0.1:4711/callback?code=c%2F1&state=${STATE}`
const STATE_FIRST = `http://127.0.0.1:4711/callback?state=${STATE}&code=c%2F1`
const encoded = encodeURIComponent

/** Returns the code in a pasted redirect, or the reason why the paste is refused. */
function codeIn(text: string): string | null | undefined {
  const found = parsePastedRedirect(text, text, expected)
  if (!(found instanceof URLSearchParams)) return found instanceof Error ? found.message : found
  expect(found.get('state')).toBe(STATE)
  return found.get('code')
}

describe('a pasted redirect', () => {
  const forms: readonly [string, (address: string) => string][] = [
    ['unchanged', (address) => address],
    ['between blanks', (address) => `  ${address}  `],
    ['without its scheme', (address) => address.replace('http://', '')],
    ['as a query with its question mark', (address) => address.replace(/.*\?/, '?')],
    ['as a query', (address) => address.replace(/.*\?/, '')],
    ['in quotation marks', (address) => `"${address}"`],
    ['in angle brackets', (address) => `<${address}>`],
    ['as a Markdown link', (address) => `[the page](${address})`],
    ['as a Markdown link whose text is the address', (address) => `[${address}](${address})`],
    ['with HTML entities', (address) => address.replaceAll('&', '&amp;')],
    ['escaped for cmd', (address) => address.replaceAll('&', '^&')],
    ['escaped for a shell', (address) => address.replace(/[&?=]/g, '\\$&')],
    ['in JSON', (address) => `{"url":"${address.replaceAll('&', '\\u0026')}"}`],
    ['in bracketed paste', (address) => `\u001b[200~${address}\u001b[201~`],
    ['in bracketed paste that is echoed', (address) => `^[[200~${address}^[[201~`],
    ["in a link scanner's address", (address) => `https://scan.example/?url=${encoded(address)}&data=05`],
    ['encoded twice', (address) => `https://scan.example/?u=${encoded(encoded(address))}%26d&x=1`],
    ['with a fragment', (address) => `${address}#_=_`],
    ['with an issuer and a final dot', (address) => `${address}&iss=https%3A%2F%2Fauth.example.`],
  ]
  it.each(forms)('a redirect pasted %s is accepted, with code and state in either order', (_how, form) => {
    expect(codeIn(`${form(CODE_FIRST)}\n`)).toBe('c/1')
    expect(codeIn(`${form(STATE_FIRST)}\n`)).toBe('c/1')
  })

  it.each<[string, string, RegExp]>([
    ['a bare code', 'a-bare-code', /paste the whole address .* "code=" and "state="/],
    ['the page of another site', 'https://app.example.com/home', /paste the whole address/],
    ['the authorization request', `https://a.example/?state=${STATE}&code_challenge=x`, /address to open/],
    ['the redirect of another login', 'http://127.0.0.1:4711/callback?code=c&state=other', /another sign-in/],
    ['a redirect without its end', CODE_FIRST.slice(0, -9), /is cut off/],
    ['a redirect without its state', 'http://127.0.0.1:4711/callback?code=c', /is cut off/],
    ['a redirect without its query', 'http://127.0.0.1:4711/call', /is cut off/],
    ['a code with a final dot', `${STATE_FIRST}.`, /may be missing/],
    ['a code with half an escape', `${STATE_FIRST}%2`, /may be missing/],
    ['a code before a word', `${STATE_FIRST} ok`, /may be missing/],
    ['a code on two lines', `${STATE_FIRST}\n23`, /may be missing/],
    ['an issuer without its end', `${CODE_FIRST}&iss=https://auth.ex`, /may be missing/],
    ['a quoted mail', `> ${STATE_FIRST}\n> 23`, /may be missing/],
    ['a line as long as a terminal allows', STATE_FIRST.padEnd(4095, 'c'), /may be missing/],
    ['a cut line and its rest', `code=${'c'.repeat(4090)}\n&state=${STATE}`, /may be missing/],
    ['a cut query before a whole one', `code=c%2\ncode=c%2F1&state=${STATE}`, /may be missing/],
    ['a code before another address', `${STATE_FIRST}\nhttps://a.example/#x`, /may be missing/],
    ['many quotation marks', `x${'"'.repeat(1_000_000)}x`, /paste the whole address/],
  ])('a paste of %s is rejected with a message that says why', (_what, text, says) => {
    expect(codeIn(`${text}\n`)).toMatch(says)
  })

  it.each(['code=c', CODE_FIRST.slice(0, 50), 'another page', STATE_FIRST])(
    'a redirect is accepted if it is pasted after another line: %s',
    (before) => {
      const fresh = `${CODE_FIRST}\n`
      expect(parsePastedRedirect(`${before}\n${fresh}`, fresh, expected)).toEqual(
        new URLSearchParams({ code: 'c/1', state: STATE }),
      )
    },
  )

  it('a pasted redirect without a line end is accepted if another parameter follows its code, and not yet if its code is last', () => {
    expect(codeIn(STATE_FIRST)).toBeUndefined()
    expect(codeIn(CODE_FIRST)).toBe('c/1')
  })

  const code = fc.string({ minLength: 1, maxLength: 60 })
  const address = fc
    .tuple(code, fc.shuffledSubarray(['code', 'state', 'iss', 'scope'], { minLength: 4 }))
    .map(([value, order]) => {
      const values = { code: value, state: STATE, iss: 'https://auth.example', scope: 'emails:send a_code' }
      const pairs = order.map((name): [string, string] => [name, values[name as keyof typeof values]])
      return { value, text: `http://127.0.0.1:4711/callback?${new URLSearchParams(pairs)}` }
    })

  it('a redirect that is pasted with line breaks or blanks inside is either not accepted, or read with its code unchanged', () => {
    const paste = fc.tuple(address, fc.array(fc.nat(300), { maxLength: 4 }), fc.constantFrom(...forms))
    fc.assert(
      fc.property(
        paste,
        fc.constantFrom('\n', '\r\n', '  \n  ', ' '),
        ([{ value, text }, breaks, [, form]], gap) => {
          const whole = form(text)
          const places = [...new Set(breaks.filter((at) => at < whole.length))].sort((a, b) => b - a)
          const broken = places.reduce((left, at) => `${left.slice(0, at)}${gap}${left.slice(at)}`, whole)
          const found = parsePastedRedirect(`${broken}\n`, `${broken}\n`, expected)
          if (found instanceof URLSearchParams) expect(found.get('code')).toBe(value)
          if (places.length === 0 && !text.endsWith('.')) expect(found).toBeInstanceOf(URLSearchParams)
        },
      ),
    )
  })

  it('a truncated paste of a redirect is accepted only with the complete code, unless the paste is a single line cut off within the code', () => {
    fc.assert(
      fc.property(
        address,
        fc.nat(400),
        fc.constantFrom('', '\n', '\nnext\n'),
        ({ value, text }, length, end) => {
          const paste = text.slice(0, length) + end
          // Skip a single line that ends within its code: it looks like a complete redirect.
          fc.pre(!/^\S+code=[^&]+\n$/.test(paste))
          const found = parsePastedRedirect(paste, paste, expected)
          if (found instanceof URLSearchParams) expect(found.get('code')).toBe(value)
        },
      ),
    )
  })
})

describe('reading pastes', () => {
  function reader(platform: NodeJS.Platform = 'linux') {
    const raw: boolean[] = []
    const stream = Object.assign(new PassThrough(), { setRawMode: (mode: boolean) => raw.push(mode) })
    const clock = createFakeClock()
    const judged: [string, string][] = []
    const stop = listenForPastes({ stdin: { isTTY: true, stream }, clock, platform }, (...texts) =>
      judged.push(texts),
    )
    return { stream, raw, clock, judged, stop }
  }

  it('at each pause of the input, listenForPastes passes on all lines pasted so far as one text', () => {
    const { stream, clock, judged } = reader()
    for (const text of ['a\n', 'b']) stream.emit('data', text)
    clock.ring()
    stream.emit('data', '\n')
    clock.ring()
    stream.emit('data', 'c\n')
    clock.ring()
    expect(judged).toEqual([
      ['a\nb', 'a\nb'],
      ['a\nb\n', 'a\nb\n'],
      ['a\nb\nc\n', 'c\n'],
    ])
  })

  it('listenForPastes puts the terminal into raw mode only while a paste arrives, and never on Windows', () => {
    const { stream, raw, clock, stop } = reader()
    stream.emit('data', 'a\n')
    expect(raw).toEqual([true])
    clock.ring()
    expect(raw).toEqual([true, false])
    stop()
    stream.emit('data', 'b\n')
    clock.ring()
    expect(raw).toEqual([true, false, false])
    const windows = reader('win32')
    windows.stream.emit('data', 'a\n')
    expect(windows.raw).toEqual([])
  })

  it('a paste that contains Ctrl-C (U+0003) gives the interrupt error, exit 130', () => {
    const found = parsePastedRedirect('x\u0003', 'x\u0003', expected)
    expect(found).toMatchObject({ code: 'interrupted', exit: 130 })
  })
})
