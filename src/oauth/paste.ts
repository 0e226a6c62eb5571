import type { ReadStream } from 'node:tty'
import type { Context } from '../context.ts'
import { InterruptedError } from '../errors.ts'

/**
 * Known parts of this sign-in's redirect: the state, the issuer without a final slash, and the redirect URI's host with its port.
 */
type ExpectedRedirect = Readonly<Record<'state' | 'issuer' | 'host', string>>

/** Milliseconds without input after which a paste counts as complete. */
const PASTE_END_MS = 300
/** Maximum length of `earlier` and of `latest` in `readPastes`, in characters each; far more than an address has. */
const MAX_INPUT_LENGTH = 64 * 1024
/**
 * Matches a line that a terminal in canonical mode may have cut off: such terminals drop the rest of a line after 4,095 bytes
 * (Linux) or 1,024 bytes (macOS).
 */
const CUT_LINE = /^(.{1022,1024}|.{4094,4096})$/gm
/**
 * Matches a run of characters that a query may contain (RFC 3986 section 3.4), without `?`, quotation marks and parentheses, which
 * mark the beginning or end of a query in pasted text.
 */
const QUERY_RUN = /[\w.~%!$*+,;:@/=&-]+/g
/**
 * Matches the `code` or `error` of a query with its value. A value that contains `://`, `code=` or `error=` doesn't match: it comes
 * from a cut address and the next address in the paste.
 */
const CODE_OR_ERROR = /(?:^|&)(?:code|error)=(?![^&]*(?:(?:code|error)=|:\/\/))[^&]+/

/**
 * Reads pasted text from standard input while a sign-in waits. Over SSH, in WSL or in a container, the browser may not reach the
 * callback server, but the user can copy the redirect from the browser's address bar.
 *
 * A terminal in canonical mode delivers complete lines only, so the last line of an address that was pasted in several lines would
 * arrive only after Enter. In raw mode it arrives at once, so raw mode is on from the first input until input pauses. On Windows
 * raw mode stays off, because the console would discard that last line.
 *
 * @param judge called when input pauses, with all text so far, and with the part of it that arrived after the last pause at a line
 *   end
 * @returns a function that stops reading
 */
export function readPastes(
  { stdin: { stream }, clock, platform }: Pick<Context, 'stdin' | 'clock' | 'platform'>,
  judge: (text: string, latest: string) => void,
): () => void {
  const setRaw = (isRaw: boolean) =>
    platform !== 'win32' && (stream as Partial<ReadStream>).setRawMode?.(isRaw)
  let [earlier, latest] = ['', '']
  let cancel = () => {}
  const onData = (data: unknown) => {
    cancel()
    setRaw(true)
    latest = (latest + data).slice(-MAX_INPUT_LENGTH)
    cancel = clock.alarm(PASTE_END_MS, () => {
      setRaw(false)
      judge(earlier + latest, latest)
      // Once `latest` ends with a line end, move it to `earlier`, so that the next paste can also be judged alone. In raw mode
      // Enter sends a carriage return, so accept either line end.
      if (/[\r\n]$/.test(latest)) [earlier, latest] = [(earlier + latest).slice(-MAX_INPUT_LENGTH), '']
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
 * Finds the redirect (RFC 6749 section 4.1.2) in pasted text: an address or its query, even if broken into lines, quoted, escaped
 * or wrapped into a link scanner's address. A bare code is refused, because nothing shows that it belongs to this sign-in.
 *
 * The end of the code must be certain, because the exchange of a truncated code would end the sign-in. So the code must be followed
 * by another parameter, a fragment or a closing quotation mark or bracket, or end a line that arrived alone, unbroken and complete.
 *
 * @param latest the last part of `text`, as from `readPastes`
 * @returns the redirect's parameters; an `InterruptedError` for Ctrl-C; the reason, as a string, why `latest` is refused;
 *   undefined if there is no redirect yet and `latest` is blank or its last line hasn't ended
 */
export function parsePastedRedirect(
  text: string,
  latest: string,
  expected: ExpectedRedirect,
): URLSearchParams | InterruptedError | string | undefined {
  // Raw mode turns Ctrl-C into the character U+0003 instead of a signal, so end the sign-in here as the signal would.
  if (latest.includes('\u0003')) return new InterruptedError('SIGINT')
  const isOneLine = /^\s*\S+\s*[\r\n]$/.test(latest)
  const found = findRedirect(latest, isOneLine, expected) ?? findRedirect(text, false, expected)
  return found ?? (/\S\s*[\r\n]$/.test(latest) ? explainRefusal(normalizePaste(latest), expected) : undefined)
}

/**
 * Removes line breaks and blanks from a paste, and marks with NUL where a line may be cut off. Undoes escapes of `&`, `?` and `=`
 * (HTML, JSON, cmd, shells), and up to three layers of percent-encoding until `code=` or `error=` appears.
 */
function normalizePaste(text: string): string {
  let plain = text
    .replace(CUT_LINE, '$&\0')
    .replace(/\s+/g, '')
    // Replace the markers of bracketed paste (ESC[200~ before and ESC[201~ after pasted text) with `>`, which `findRedirect`
    // accepts as the end of an address.
    .replace(/(?:\u001b|\^\[)\[20[01]~/g, '>')
    .replace(/&amp;|\\u0026/g, '&')
    .replace(/[\^\\](?=[&?=])/g, '')
  for (let layer = 0; layer < 3 && !/(code|error)=/.test(plain); layer++)
    plain = plain.replace(/%([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number(`0x${hex}`)))
  return plain
}

/**
 * Returns the parameters of the last complete redirect of this sign-in in a text; undefined if there is none.
 *
 * @param isOneLine whether the text is one line without inner blanks whose line end has arrived: then a code at the end counts as
 *   complete, unless it looks cut off
 */
function findRedirect(text: string, isOneLine: boolean, { state, issuer }: ExpectedRedirect) {
  const plain = normalizePaste(text)
  for (const { 0: query, index } of [...plain.matchAll(QUERY_RUN)].reverse()) {
    const parameters = new URLSearchParams(query)
    const answer = CODE_OR_ERROR.exec(query)
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

/** Returns the reason, for the user, why a text from `normalizePaste` contains no complete redirect of this sign-in. */
function explainRefusal(text: string, { state, host }: ExpectedRedirect): string {
  if (/code_challenge[=%]/.test(text))
    return 'that is the address to open: paste the one that the browser ends up at after your approval'
  const [, found = ''] = /\bstate=([\w-]*)/.exec(text) ?? []
  if (found.startsWith(state)) return 'the end of the address may be missing: paste it alone, as one line'
  if (!state.startsWith(found)) return 'it belongs to another sign-in: its state does not match'
  if (/\b(code|error|state)=/.test(text) || text.includes(host))
    return 'the address is cut off: paste the whole address as one line'
  return 'paste the whole address that the browser ended up at: it contains "code=" and "state="'
}
