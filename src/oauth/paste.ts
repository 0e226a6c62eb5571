import type { Readable } from 'node:stream'
import type { ReadStream } from 'node:tty'
import type { Context } from '../context.ts'
import { InterruptedError } from '../errors.ts'

/** Known parts of the right answer: the state, the issuer without a slash at its end, and the host and port of the redirect URI. */
type Expected = Readonly<Record<'state' | 'issuer' | 'host', string>>

/** The parameters of a redirect, Ctrl-C, or what is wrong with a text; undefined for a text that says nothing yet. */
type Paste = URLSearchParams | InterruptedError | string | undefined

/** Milliseconds without input after which a paste has arrived. */
const SETTLE_MS = 300
/** Characters of standard input that are kept; far more than an address has. */
const MAX_KEPT = 64 * 1024
/** Pieces of a paste that may be parts of one address: 4 kB on a terminal of 60 columns are 68. */
const MAX_PIECES = 80
/** Lengths of a line that a terminal in canonical mode may have cut: at 4,095 bytes on Linux, at 1,024 on macOS. */
const CUT_LENGTHS: readonly number[] = [1022, 1023, 1024, 4094, 4095, 4096]
/** Whether the last line of a text has ended; in raw mode, Enter is a carriage return. */
const HAS_ENDED = /[\r\n]$/
/** Closing marks around an address, each with its opening mark. */
const OPENERS: Readonly<Record<string, string>> = { '>': '<', '"': '"', "'": "'", '`': '`', ')': '(' }
/** A parameter of a redirect, with the characters that a query may have (RFC 3986 section 3.4) but for quotation marks. */
const PARAMETER = /(?<![\w%.-])(code|error|error_description|state|iss)=([\w.~%!$*+,;:@/?=-]*)/g

/**
 * Reads pastes while a login waits: over SSH, in WSL or in a container, the browser can't reach the listener, but the address that
 * it ends up at can be copied.
 *
 * A terminal in canonical mode hands over complete lines only, so the rest of a broken address stays invisible until Enter is
 * pressed. In raw mode a terminal hands that rest over, so raw mode is on until no more input arrives. Windows would discard it.
 *
 * @param judge gets everything that was read, and the part of it that is new
 * @returns a function that stops reading.
 */
export function readPastes(
  { stdin: { stream }, clock, platform }: Pick<Context, 'stdin' | 'clock' | 'platform'>,
  judge: (text: string, fresh: string) => void,
): () => void {
  const terminal: Readable & Partial<Pick<ReadStream, 'setRawMode'>> = stream
  const setRaw = (raw: boolean) => platform !== 'win32' && terminal.setRawMode?.(raw)
  let [kept, fresh] = ['', '']
  let cancel = () => {}
  const settle = () => {
    setRaw(false)
    judge(kept + fresh, fresh)
    if (HAS_ENDED.test(fresh)) [kept, fresh] = [(kept + fresh).slice(-MAX_KEPT), '']
  }
  const onData = (data: unknown) => {
    cancel()
    setRaw(true)
    fresh = (fresh + data).slice(-MAX_KEPT)
    cancel = clock.alarm(SETTLE_MS, settle)
  }
  stream.on('data', onData)
  return () => {
    cancel()
    stream.off('data', onData).pause()
    setRaw(false)
  }
}

/**
 * Finds the redirect (RFC 6749 section 4.1.2) in pasted text: an address, or only its query, however it was broken, quoted, escaped
 * or wrapped into the address of a link scanner. A bare code is not accepted, because nothing shows that it belongs to this login.
 *
 * The end of the code must be certain, because the exchange of a cut code would end the login: another parameter, a fragment or the
 * closing mark of a quotation follows the code. A code at the end of the text is accepted from one unbroken line only, which has
 * ended, arrived alone, hasn't the length at which a terminal cuts lines, and has no punctuation at its end.
 *
 * @param fresh the part of the text that is new
 * @returns undefined if the text is blank or its last line hasn't ended
 */
export function parsePaste(text: string, fresh: string, expected: Expected): Paste {
  // In raw mode, Ctrl-C is a character.
  if (fresh.includes('\u0003')) return new InterruptedError('SIGINT')
  const pieces = piecesOf(text)
  const hasEnded = HAS_ENDED.test(fresh)
  const isLine = hasEnded && piecesOf(fresh).length === 1
  for (let length = pieces.length; length > 0; length--) {
    for (let at = pieces.length - length; at >= 0; at--) {
      const isAlone = isLine && length === 1 && at === pieces.length - 1
      const found = redirectIn(pieces.slice(at, at + length), isAlone, expected)
      if (found !== undefined) return found
    }
  }
  if (!hasEnded || fresh.trim() === '') return undefined
  const whole = plainOf(fresh)
  return mistakeIn(/(code|error|state)=/.test(whole) ? whole : plainOf(text), expected)
}

/** Splits a text at blanks and line breaks. A NUL marks the end of a line that a terminal may have cut. */
function piecesOf(text: string): string[] {
  const marked = text.replace(/[^\r\n]+/g, (line) => (CUT_LENGTHS.includes(line.length) ? `${line}\0` : line))
  return marked.split(/\s+/).filter(Boolean).slice(-MAX_PIECES)
}

/** Joins a text, and undoes bracketed paste, escapes of `&` (HTML, JSON, cmd, shells) and, up to three times, percent-encoding. */
function plainOf(text: string): string {
  let plain = text
    .replace(/\s+/g, '')
    .replace(/(?:\u001b|\^\[)\[20([01])~/g, (_, end) => (end === '0' ? '<' : '>'))
    .replace(/&(?:amp|#38|#x26);|\\u0026/gi, '&')
    .replace(/[\^\\](?=[&?=])/g, '')
  for (let turn = 0; turn < 3 && /(code|error)(25|%)*3D/i.test(plain) && !/(code|error)=/.test(plain); turn++)
    plain = plain.replace(/%([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number(`0x${hex}`)))
  return plain
}

/**
 * The parameters of the redirect that pieces of a paste make up together; undefined if they aren't the whole answer to this login.
 *
 * @param isAlone whether the pieces are one line that has ended and arrived alone
 */
function redirectIn(pieces: readonly string[], isAlone: boolean, { state, issuer }: Expected) {
  const joined = pieces.join('')
  if (!joined.includes(state)) return undefined
  const text = plainOf(joined)
  // Of two addresses in one paste, of which the first is cut, the second would become a part of the first one's code.
  if (pieces.length > 1 && text.split(/code=|error=/).length > 2) return undefined
  const isEndOf = ({ 0: pair, 1: name, index }: RegExpExecArray) => {
    if (name !== 'code' && name !== 'error') return false
    const rest = text.slice(index + pair.length)
    if (rest === '') return isAlone && /[\w~/+=-]$/.test(pair) && !/%[\da-f]?$/i.test(pair)
    const opener = OPENERS[rest.charAt(0)]
    const isQuoted = opener !== undefined && text.slice(0, index).includes(opener)
    return /^[&#]/.test(rest) || (isQuoted && !/\w/.test(rest))
  }
  const found = [...text.matchAll(PARAMETER)]
  if (!found.some(isEndOf)) return undefined
  // What follows the state is a mark around the address.
  const pairs = found.map(([pair]) => (pair.startsWith(`state=${state}`) ? `state=${state}` : pair))
  const parameters = new URLSearchParams([...new Set(pairs)].join('&'))
  const iss = parameters.get('iss')?.replace(/[.,;:!?/]+$/, '')
  if (iss !== undefined) parameters.set('iss', iss)
  return iss !== undefined && iss !== issuer && issuer.startsWith(iss) ? undefined : parameters
}

/** Says why a text has no redirect of this login. */
function mistakeIn(text: string, { state, host }: Expected): string {
  if (/code_challenge[=%]/.test(text))
    return 'that is the address to open: paste the one that the browser ends up at after your approval'
  const [, found = ''] = /(?<![\w%.-])state=([\w-]*)/.exec(text) ?? []
  if (found.startsWith(state)) return 'the end of the address may be missing: paste it alone, as one line'
  if (!state.startsWith(found)) return 'it belongs to another sign-in: its state does not match'
  if (/(?<![\w%.-])(code|error|state)=/.test(text) || text.includes(host))
    return 'the address is cut off: paste the whole address as one line'
  return 'paste the whole address that the browser ended up at: it contains "code=" and "state="'
}
