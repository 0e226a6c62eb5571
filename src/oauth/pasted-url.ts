import type { Readable } from 'node:stream'

/** Characters of a line that are kept: no address is longer, and input without line breaks must not fill the memory. */
const MAX_LINE_LENGTH = 64 * 1024

/**
 * Reads pasted lines while a login waits: over SSH, in WSL or in a container, the browser can't reach the listener, but
 * the address that it ends up at can be copied. Input that fails yields nothing.
 *
 * @param ended called at the end of the input, after the last line.
 * @returns a function that stops reading and lets the process end.
 */
export function readPastedLines(
  stream: Readable,
  received: (line: string) => void,
  ended: () => void = () => {},
): () => void {
  let rest = ''
  const onData = (piece: Buffer | string) => {
    const lines = `${rest}${piece.toString()}`.split(/\r?\n/)
    rest = (lines.pop() ?? '').slice(0, MAX_LINE_LENGTH)
    for (const line of lines) if (line.trim() !== '') received(line.trim())
  }
  const onEnd = () => {
    if (rest.trim() !== '') received(rest.trim())
    rest = ''
    ended()
  }
  const ignore = () => {}
  stream.on('data', onData)
  stream.on('end', onEnd)
  stream.on('error', ignore)
  // An earlier prompt may have paused the stream, and then a listener alone doesn't start it.
  stream.resume()
  return () => {
    stream.off('data', onData)
    stream.off('end', onEnd)
    stream.pause()
    // A referenced terminal or pipe would keep the process alive.
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
}

/**
 * The parameters in a pasted redirect: the whole address, or only its query. A bare code is not accepted, because nothing
 * shows that it belongs to this login.
 *
 * @returns the parameters, or what is wrong with the line.
 */
export function parsePastedRedirect(line: string): URLSearchParams | string {
  const text = unwrapped(line)
  const query = URL.canParse(text)
    ? new URL(text).search
    : text.startsWith('?') || /(^|&)state=/.test(text)
      ? text
      : undefined
  if (query === undefined || query === '') {
    return 'paste the whole address that the browser ended up at: it contains "code=" and "state="'
  }
  return new URLSearchParams(query)
}

/**
 * Removes what terminals and mail programs put around an address. A loop, because a pattern for the end of a text takes
 * quadratic time.
 */
function unwrapped(line: string): string {
  const wraps = (at: number) => /["'<>\s]/.test(line.charAt(at))
  let start = 0
  let end = line.length
  while (start < end && wraps(start)) start++
  while (end > start && wraps(end - 1)) end--
  return line.slice(start, end)
}
