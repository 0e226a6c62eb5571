import type { ReadStream } from 'node:tty'
import type { Context } from '../context.ts'
import { InterruptedError } from '../errors.ts'

/** Known parts of the right redirect: its state, the issuer without a final slash, and the redirect URI's host with port. */
type Expected = Readonly<Record<'state' | 'issuer' | 'host', string>>

/** Milliseconds without input after which a paste is treated as complete. */
const SETTLE_MS = 300
/** Maximum number of characters of standard input kept in memory; far more than an address has. */
const MAX_KEPT_LENGTH = 64 * 1024
/** Matches a line of the length at which a terminal in canonical mode drops the rest: 4,095 bytes on Linux, 1,024 on macOS. */
const CUT_LINE = /^(.{1022,1024}|.{4094,4096})$/gm
/**
 * Matches a run of characters that a query may contain (RFC 3986 section 3.4), except punctuation that people put around or between
 * addresses.
 */
const QUERY = /[\w.~%!$*+,;:@/=&-]+/g
/**
 * Matches the `code` or `error` of a query with its value, unless the value contains the start of another address: that address was
 * joined to one that was cut off.
 */
const ANSWER = /(?:^|&)(?:code|error)=(?![^&]*(?:(?:code|error)=|:\/\/))[^&]+/

/**
 * Reads pastes while a sign-in waits: over SSH, in WSL or in a container, the browser can't reach the listener, but the user can
 * copy the address at which the browser ends.
 *
 * A terminal in canonical mode delivers complete lines only, so the last part of a broken address would stay invisible until Enter.
 * Raw mode makes a terminal deliver that part; so raw mode is on from the first input until input pauses. On Windows raw mode stays
 * off, because the console would discard that part.
 *
 * @param judge receives all text that was read, and the part of the text that is new
 * @returns a function that stops reading
 */
export function readPastes(
  { stdin: { stream }, clock, platform }: Pick<Context, 'stdin' | 'clock' | 'platform'>,
  judge: (text: string, fresh: string) => void,
): () => void {
  const setRaw = (isRaw: boolean) =>
    platform !== 'win32' && (stream as Partial<ReadStream>).setRawMode?.(isRaw)
  let [kept, fresh] = ['', '']
  let cancel = () => {}
  const onData = (data: unknown) => {
    cancel()
    setRaw(true)
    fresh = (fresh + data).slice(-MAX_KEPT_LENGTH)
    cancel = clock.alarm(SETTLE_MS, () => {
      setRaw(false)
      judge(kept + fresh, fresh)
      // A line end closes `fresh`: later input is judged alone, then together with `kept`. In raw mode Enter sends a carriage
      // return, so both line ends are accepted.
      if (/[\r\n]$/.test(fresh)) [kept, fresh] = [(kept + fresh).slice(-MAX_KEPT_LENGTH), '']
    })
  }
  stream.on('data', onData)
  return () => {
    cancel()
    stream.off('data', onData).pause()
    setRaw(false)
  }
}

/**
 * Finds the redirect (RFC 6749 section 4.1.2) in pasted text: an address or its query, whether broken into lines, quoted, escaped
 * or wrapped into a link scanner's address. A bare code is refused, because nothing shows that the code belongs to this sign-in.
 *
 * The end of the code must be certain, because the exchange of a cut code would end the sign-in. So either another parameter, a
 * fragment or a closing quotation mark follows the code, or the code ends a line that arrived alone, unbroken and complete.
 *
 * @param fresh the part of `text` that is new
 * @returns the redirect's parameters, Ctrl-C, or why the text is no redirect; undefined if the text is blank or its last line
 *   hasn't ended
 */
export function parsePastedRedirect(
  text: string,
  fresh: string,
  expected: Expected,
): URLSearchParams | InterruptedError | string | undefined {
  // Raw mode turns Ctrl-C into the character U+0003 instead of a signal, so end the sign-in here as the signal would.
  if (fresh.includes('\u0003')) return new InterruptedError('SIGINT')
  const isOneLine = /^\s*\S+\s*[\r\n]$/.test(fresh)
  const found = findRedirect(fresh, isOneLine, expected) ?? findRedirect(text, false, expected)
  return found ?? (/\S\s*[\r\n]$/.test(fresh) ? explainRefusal(normalize(fresh), expected) : undefined)
}

/** Joins lines; undoes escapes of `&` (HTML, JSON, cmd, shells) and up to three percent-encodings; marks line cuts with NUL. */
function normalize(text: string): string {
  let plain = text
    .replace(CUT_LINE, '$&\0')
    .replace(/\s+/g, '')
    // Bracketed paste (ESC[200~ before and ESC[201~ after pasted text) becomes `>`, which `findRedirect` accepts as the end of an
    // address.
    .replace(/(?:\u001b|\^\[)\[20[01]~/g, '>')
    .replace(/&amp;|\\u0026/g, '&')
    .replace(/[\^\\](?=[&?=])/g, '')
  for (let turn = 0; turn < 3 && !/(code|error)=/.test(plain); turn++)
    plain = plain.replace(/%([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number(`0x${hex}`)))
  return plain
}

/**
 * Returns the parameters of the last complete redirect of this sign-in in a text; undefined if there is none.
 *
 * @param isOneLine whether the text is one line that arrived alone, unbroken and with its line end
 */
function findRedirect(text: string, isOneLine: boolean, { state, issuer }: Expected) {
  const plain = normalize(text)
  for (const { 0: query, index } of [...plain.matchAll(QUERY)].reverse()) {
    const parameters = new URLSearchParams(query)
    const answer = ANSWER.exec(query)
    if (answer === null || !parameters.get('state')?.startsWith(state)) continue
    const after = plain.slice(index + answer.index + answer[0].length)
    const isDelimited = /^[&#]|^["'`>)]\W*$/.test(after)
    const isLineEnd = isOneLine && after === '' && !/[.,;:!]$|%[\da-f]?$/i.test(query)
    const iss = parameters.get('iss')?.replace(/[.,;:!?/]+$/, '')
    const isIssuerCut = iss !== undefined && iss !== issuer && issuer.startsWith(iss)
    if (isIssuerCut || (!isDelimited && !isLineEnd)) continue
    parameters.set('state', state)
    if (iss !== undefined) parameters.set('iss', iss)
    return parameters
  }
  return undefined
}

/** Says why a normalized text contains no redirect of this sign-in. */
function explainRefusal(text: string, { state, host }: Expected): string {
  if (/code_challenge[=%]/.test(text))
    return 'that is the address to open: paste the one that the browser ends up at after your approval'
  const [, found = ''] = /\bstate=([\w-]*)/.exec(text) ?? []
  if (found.startsWith(state)) return 'the end of the address may be missing: paste it alone, as one line'
  if (!state.startsWith(found)) return 'it belongs to another sign-in: its state does not match'
  if (/\b(code|error|state)=/.test(text) || text.includes(host))
    return 'the address is cut off: paste the whole address as one line'
  return 'paste the whole address that the browser ended up at: it contains "code=" and "state="'
}
