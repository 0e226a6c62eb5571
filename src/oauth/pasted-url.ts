import type { Readable } from 'node:stream'

/** Characters of a line that are kept: no address is longer, and an input without line breaks must not fill the memory. */
const LONGEST_LINE = 64 * 1024

/**
 * Reads pasted lines while a login waits: over SSH, in WSL or in a container the browser cannot reach the listener, but
 * the address that it ends at can be copied. An input that fails, or is closed from the start, just never yields.
 *
 * @param ended when the input is over and its last line was received.
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
    rest = (lines.pop() ?? '').slice(0, LONGEST_LINE)
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
  // A question that was asked before this has paused the stream, and then a listener alone does not start it.
  stream.resume()
  return () => {
    stream.off('data', onData)
    stream.off('end', onEnd)
    stream.pause()
    // A terminal or pipe that is still referenced would keep the process alive.
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  }
}

/**
 * The parameters in a pasted redirect: the whole address, or its query alone. A bare code is refused, since nothing
 * would tell that it belongs to this login.
 */
export function parsePastedRedirect(line: string): { parameters: URLSearchParams } | { wrong: string } {
  const text = unwrapped(line)
  const query = URL.canParse(text)
    ? new URL(text).search
    : text.startsWith('?') || /(^|&)state=/.test(text)
      ? text
      : undefined
  if (query === undefined || query === '') {
    return { wrong: 'paste the whole address that the browser ended at: it contains "code=" and "state="' }
  }
  return { parameters: new URLSearchParams(query) }
}

/**
 * Without what terminals and mail programs put around an address. Step by step: a pattern for the end of a text takes
 * time that grows with the square of its length.
 */
function unwrapped(line: string): string {
  const wraps = (at: number) => /["'<>\s]/.test(line.charAt(at))
  let start = 0
  let end = line.length
  while (start < end && wraps(start)) start++
  while (end > start && wraps(end - 1)) end--
  return line.slice(start, end)
}
