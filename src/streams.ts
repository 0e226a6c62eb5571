import { fstatSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type Input, type Output, OutputClosedError } from './context.ts'
import { CliError, Exit } from './errors.ts'

/** What is no character device is no terminal: `node:tty`, and the network with it, is loaded only for one that is. */
function isTerminal(fd: number): boolean {
  try {
    if (!fstatSync(fd).isCharacterDevice()) return false
  } catch {
    // A closed descriptor, or a system that does not tell.
  }
  return isatty(fd)
}

/** Standard input, as a command gets it. */
export function realInput(): Input {
  return {
    get isTTY() {
      return isTerminal(0)
    },
    // Touched only when something is read: opening it keeps the process alive.
    get stream() {
      return process.stdin
    },
  }
}

/** A pipe that nobody has written to takes as much at once on every system. */
const FIRST_PIECE_BYTES = 16 * 1024

/**
 * Standard output or standard error, as a command gets it.
 *
 * @param loss `may be lost` for what is said beside the data: with a log that is full, or whose reader went away, the
 *   work still goes on, and the exit code still tells how it ended. To end quietly would say that it was done.
 */
export function realOutput(stream: () => NodeJS.WriteStream, fd: number, loss?: 'may be lost'): Output {
  let closed = false
  let listening = false
  let first = true
  const throughStream = (data: string | Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      if (!listening) {
        listening = true
        // Without a listener the error would also be thrown where nobody can catch it.
        stream().on('error', () => {
          closed = true
        })
      }
      stream().write(data, (error) => (error ? reject(error) : resolve()))
    })
  return {
    get isTTY() {
      return isTerminal(fd)
    },
    get columns() {
      // A terminal that does not know its width says 0, and no line would ever fit.
      return isTerminal(fd) ? stream().columns || undefined : undefined
    },
    async write(text) {
      if (closed && loss !== undefined) return
      if (closed) throw new OutputClosedError('the reader went away')
      try {
        const rest: string | Uint8Array = first ? writeDirectly(fd, text) : text
        first = false
        if (rest.length > 0) await throughStream(rest)
      } catch (error) {
        closed = true
        if (loss !== undefined) return
        const code = (error as NodeJS.ErrnoException).code
        const gone = code === 'EPIPE' || code === 'EOF'
        throw gone ? new OutputClosedError('the reader went away') : outputFailed(error as Error)
      }
    },
  }
}

/**
 * Writes to a file or a pipe without a stream, which would load the network with it: most commands write once and are
 * done.
 *
 * @returns what could not be written that way, and has to go through the stream.
 */
function writeDirectly(fd: number, text: string): string | Uint8Array {
  if (text.length > FIRST_PIECE_BYTES / 3 || process.platform === 'win32' || isTerminal(fd)) return text
  const bytes = Buffer.from(text)
  try {
    return bytes.subarray(writeSync(fd, bytes))
  } catch (error) {
    // Another program has made the pipe non-blocking, and it is full.
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return bytes
    throw error
  }
}

/** A full disk, say: what has been written is not whole. */
function outputFailed(error: Error): CliError {
  return new CliError('output_failed', Exit.bug, `the output cannot be written: ${error.message}`, {
    hint: 'what has been written is not complete; check where it goes, and run the command again',
    cause: error,
  })
}
