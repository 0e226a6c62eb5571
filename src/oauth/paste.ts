import type { ReadStream } from 'node:tty'
import type { Context } from '../context.ts'
import { InterruptedError } from '../errors.ts'

/** Known parts of this sign-in's redirect: state, issuer without slashes at its end, and the redirect URI's host with its port. */
type ExpectedRedirect = Readonly<Record<'state' | 'issuer' | 'host', string>>

/** Milliseconds without input after which a paste counts as complete. */
const PASTE_END_MS = 300
/** Maximum length in characters of `earlier` and of `latest` in `listenForPastes`; far more than a redirect URL has. */
const MAX_INPUT_LENGTH = 64 * 1024
/**
 * Matches a line of about the length at which a terminal in canonical mode drops the rest: 4,095 bytes on Linux, 1,024 on macOS.
 * The end of such a line may be missing.
 */
const CUT_LINE = /^(.{1022,1024}|.{4094,4096})$/gm
/**
 * Matches a possible query of a redirect: a run of characters that a query may contain (RFC 3986 section 3.4), but no `?`,
 * quotation mark or parenthesis, which delimit a query in pasted text.
 */
const QUERY_RUN = /[\w.~%!$*+,;:@/=&-]+/g
/**
 * Matches the `code` or `error` in a query, with its value. A value with `://`, `code=` or `error=` doesn't match: it is a cut
 * address followed by the next address of the paste.
 */
const CODE_OR_ERROR = /(?:^|&)(?:code|error)=(?![^&]*(?:(?:code|error)=|:\/\/))[^&]+/

/**
 * Reads pasted text from standard input while a sign-in waits: the browser may not reach the callback server (as over SSH or in a
 * container), but the user can copy the redirect from the browser's address bar.
 *
 * A terminal in canonical mode delivers a last line without line end only after Enter, in raw mode at once. So raw mode is on from
 * the first input until input pauses; on Windows it stays off, because the console would discard that line.
 *
 * @param onPaste called when input pauses. `text`: all input so far; `latest`: its part after the last pause at which the input
 *   ended with a line end
 * @returns a function that stops reading
 */
export function listenForPastes(
  { stdin: { stream }, clock, platform }: Pick<Context, 'stdin' | 'clock' | 'platform'>,
  onPaste: (text: string, latest: string) => void,
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
      onPaste(earlier + latest, latest)
      // Once `latest` ends with a line end (in raw mode, Enter sends a carriage return), move it to `earlier`, so that `latest`
      // will contain only the next paste.
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
 * Finds the redirect (RFC 6749 section 4.1.2) of this sign-in in pasted text: an address or its query, perhaps quoted, escaped or
 * broken into lines. A bare code is refused, because nothing shows that it belongs to this sign-in, and so is a code that looks cut
 * off, because its exchange would end the sign-in.
 *
 * @param latest the last part of `text`, as from `listenForPastes`
 * @returns the redirect's parameters; an `InterruptedError` for Ctrl-C; otherwise the reason why `latest` is refused, as a string,
 *   or undefined if `latest` is blank or its last line hasn't ended
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
 * Prepares a paste for `findRedirect`: removes line breaks and blanks, marks with NUL where the terminal may have cut off a line,
 * undoes common escapes of `&`, `?` and `=`, and up to three layers of percent-encoding until `code=` or `error=` appears.
 */
function normalizePaste(text: string): string {
  let plain = text
    .replace(CUT_LINE, '$&\0')
    .replace(/\s+/g, '')
    // Replace the markers of bracketed paste, ESC[200~ and ESC[201~, with `>`, which `findRedirect` accepts as the end of an
    // address.
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
