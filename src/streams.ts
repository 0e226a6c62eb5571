import { closeSync, fstatSync, statSync, writeSync } from 'node:fs'
import { PassThrough, type Readable } from 'node:stream'
import { isatty } from 'node:tty'
import { OutputClosedError, type OutputStream, type StandardInput } from './context.ts'
import { CliError } from './errors.ts'
import { catchError } from './storage/file-errors.ts'

/**
 * Whether the file descriptor is a terminal. Doesn't call `isatty` for a pipe, a file or the null device: in the bundled program,
 * the first call of `isatty` loads `node:tty`, and with it the network modules.
 */
export function isTerminal(fd: number): boolean {
  try {
    const stats = fstatSync(fd)
    if (!stats.isCharacterDevice()) return false
    // Windows has no path /dev/null, so `statSync` returns undefined there, which equals no device.
    if (stats.rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev) return false
  } catch {
    // `fstatSync` fails for a closed descriptor, and for a device that the system can't stat. Let `isatty` decide.
  }
  return isatty(fd)
}

/**
 * Closes standard streams whose terminal has hung up (and, harmlessly, those on the null device): at exit, Node would fail to
 * restore the terminal's mode, and abort (SIGABRT). Call this last, because a closed stream takes no output.
 */
export function closeLostTerminals(): void {
  for (const fd of [0, 1, 2].filter((fd) => !isTerminal(fd)))
    catchError(() => fstatSync(fd).isCharacterDevice() && closeSync(fd))
}

/** Creates the standard input of commands. The stream is opened on first use, because an open stdin keeps the process alive. */
export function createStdin(): StandardInput {
  let stream: Readable | undefined
  return {
    get isTTY() {
      return isTerminal(0)
    },
    get stream() {
      stream ??= openInput()
      return stream
    },
  }
}

/** Opens stdin. Unreadable input counts as empty, such as a write-only descriptor (nohup), a directory or a lost terminal. */
function openInput(): Readable {
  const { stdin } = process
  const { setRawMode } = stdin
  if (setRawMode === undefined) {
    const input = new PassThrough()
    stdin.on('error', () => input.end()).pipe(input)
    return input
  }
  // Skip `setRawMode` after the terminal has hung up: it would fail, and readline would throw the `error` event as an uncaught
  // exception.
  stdin.setRawMode = (raw) => (isTerminal(0) ? setRawMode.call(stdin, raw) : stdin)
  return stdin.on('error', () => {})
}

/** Number of bytes that an empty pipe normally accepts without blocking: 16 KiB on macOS, more on Linux. */
const DIRECT_WRITE_BYTES = 16 * 1024

/**
 * Creates the stdout or stderr of commands. Except to a terminal or on Windows, text is written synchronously as long as its total
 * is at most 16 KiB, because opening Node's stream loads the network modules, which delays the command.
 *
 * @param interrupt signal that aborts a write that waits for the reader
 * @param loss `may be lost` for stderr: if messages can't be written, the command continues, and its exit code tells the result
 */
export function createOutputStream(
  stream: () => NodeJS.WriteStream,
  fd: number,
  platform: NodeJS.Platform,
  interrupt: AbortSignal,
  loss?: 'may be lost',
): OutputStream {
  let closed = false
  let directBytesLeft = platform === 'win32' || isTerminal(fd) ? 0 : DIRECT_WRITE_BYTES
  let opened: NodeJS.WriteStream | undefined
  const writeThroughStream = (data: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      // Listen for `error`: without a listener, Node would throw the error of a failed write as an uncaught exception, besides
      // passing it to the callback of `write`.
      opened ??= stream().on('error', () => {
        closed = true
      })
      const onAbort = () => reject(interrupt.reason)
      interrupt.addEventListener('abort', onAbort, { once: true })
      opened.write(data, (error) => {
        interrupt.removeEventListener('abort', onAbort)
        if (error) reject(error)
        else resolve()
      })
    })
  return {
    get isTTY() {
      return isTerminal(fd)
    },
    get columns() {
      if (!isTerminal(fd)) return undefined
      const terminal = stream() as NodeJS.WriteStream & { _refreshSize?(): void }
      // Ask the terminal for its size now: Node updates `columns` in the next turn of the event loop, too late to redraw lines that
      // a narrower window has already wrapped.
      terminal._refreshSize?.()
      // A terminal without a known width reports 0, in which no line would fit: treat 0 as unknown.
      return terminal.columns || undefined
    },
    async write(text) {
      if (closed && loss !== undefined) return
      if (closed) throw new OutputClosedError('the reader went away')
      try {
        let bytes: Uint8Array = Buffer.from(text)
        directBytesLeft -= bytes.length
        if (directBytesLeft >= 0) bytes = bytes.subarray(writeDirectly(fd, bytes))
        if (bytes.length === 0) return
        // Send all further output through the stream: a direct write could overtake the data in the stream's buffer.
        directBytesLeft = 0
        await writeThroughStream(bytes)
      } catch (error) {
        const isInterrupted = interrupt.aborted && error === interrupt.reason
        closed = !isInterrupted
        if (loss !== undefined) return
        if (isInterrupted) throw error
        const { code, message } = error as NodeJS.ErrnoException
        if (code === 'EPIPE' || code === 'EOF') throw new OutputClosedError('the reader went away')
        // An error other than a closed pipe, such as a full disk (ENOSPC), is a failure: data is missing where the user wants it.
        throw new CliError('output_failed', `the output cannot be written: ${message}`, {
          hint: 'what was written is incomplete; check where it goes, and run the command again',
          cause: error,
        })
      }
    },
  }
}

/** Writes synchronously; returns the number of bytes written: 0 if the pipe is full and was set non-blocking (EAGAIN). */
function writeDirectly(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}
