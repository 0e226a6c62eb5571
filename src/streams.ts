import { closeSync, fstatSync, statSync, writeSync } from 'node:fs'
import { PassThrough, type Readable } from 'node:stream'
import { isatty } from 'node:tty'
import { type Input, type Output, OutputClosedError } from './context.ts'
import { CliError } from './errors.ts'
import { quietly } from './storage/file-errors.ts'

/**
 * Only a character device other than the null device can be a terminal: for anything else `node:tty`, and the network with
 * it, need not be loaded. Programs and schedulers that start this one often give it the null device.
 */
export function isTerminal(fd: number): boolean {
  try {
    const stats = fstatSync(fd)
    if (!stats.isCharacterDevice()) return false
    // Windows has no such path, and therefore no such device.
    if (stats.rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev) return false
  } catch {
    // A closed descriptor, or a system that doesn't say.
  }
  return isatty(fd)
}

/**
 * Closes standard streams whose terminal has hung up; to be called at the end. Node restores the mode of every terminal when it
 * exits, and aborts the process (SIGABRT, with a core dump) if that fails; it leaves a closed descriptor alone.
 */
export function closeLostTerminals(): void {
  for (const fd of [0, 1, 2].filter((fd) => !isTerminal(fd)))
    quietly(() => fstatSync(fd).isCharacterDevice() && closeSync(fd))
}

/** Standard input, as a command gets it. It is opened only to read from it, because that keeps the process alive. */
export function realInput(): Input {
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

/** What can't be read is empty: closed, write-only (as nohup makes it), a directory, or a terminal that has hung up. */
function openInput(): Readable {
  const { stdin } = process
  const { setRawMode } = stdin
  if (setRawMode === undefined) {
    const input = new PassThrough()
    stdin.on('error', () => input.end()).pipe(input)
    return input
  }
  // Node would emit an error where nobody can catch it: without its terminal it has no mode either.
  stdin.setRawMode = (raw) => (isTerminal(0) ? setRawMode.call(stdin, raw) : stdin)
  return stdin.on('error', () => {})
}

/** Every system's pipe takes this much at once if nobody has written to it. */
const DIRECT_WRITE_BYTES = 16 * 1024

/**
 * Standard output or standard error, as a command gets it. What any pipe has room for is written without a stream, which
 * would load the network with it (3 to 5 ms); everything after that goes through the stream, which waits for the reader.
 *
 * @param interrupt ends the wait for a reader that does not read
 * @param loss `may be lost` for messages beside the data: if a log is full, or its reader went away, the work continues,
 *   and the exit code still says how it ended. To end quietly would say that it was done.
 */
export function realOutput(
  stream: () => NodeJS.WriteStream,
  fd: number,
  platform: NodeJS.Platform,
  interrupt: AbortSignal,
  loss?: 'may be lost',
): Output {
  let closed = false
  let directBytesLeft = platform === 'win32' || isTerminal(fd) ? 0 : DIRECT_WRITE_BYTES
  let opened: NodeJS.WriteStream | undefined
  const writeThroughStream = (data: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      // Without a listener, Node would also throw the error where nobody can catch it.
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
      // Node hears of a narrower window at the next turn of its event loop; what was drawn has more rows already.
      terminal._refreshSize?.()
      // A terminal that doesn't know its width reports 0, and no line would fit.
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
        // Once a piece has gone through the stream, the others must follow it there.
        directBytesLeft = 0
        await writeThroughStream(bytes)
      } catch (error) {
        const isInterrupted = interrupt.aborted && error === interrupt.reason
        closed = !isInterrupted
        if (loss !== undefined) return
        if (isInterrupted) throw error
        const { code, message } = error as NodeJS.ErrnoException
        if (code === 'EPIPE' || code === 'EOF') throw new OutputClosedError('the reader went away')
        // Because the disk is full, for example.
        throw new CliError('output_failed', `the output cannot be written: ${message}`, {
          hint: 'what was written is incomplete; check where it goes, and run the command again',
          cause: error,
        })
      }
    },
  }
}

/** How many bytes of it a file or a pipe took: none if another program made the pipe non-blocking, and it is full. */
function writeDirectly(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}
