import { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { confirm, input, password, select } from '@inquirer/prompts'
import type { Context, Prompts } from '../context.ts'
import { InterruptedError } from '../errors.ts'
import { sanitizeLine } from './sanitize.ts'

/**
 * Questions on stderr, so that stdout only gets data. Ctrl-C and the end of the input end a question with an
 * `InterruptedError`. The caller decides whether to ask at all (`Settings.interactive`).
 */
export function createPrompts({
  stdin,
  stderr,
  interrupts,
}: Pick<Context, 'stdin' | 'stderr' | 'interrupts'>): Prompts {
  async function ask<T>(
    question: (io: {
      input: NodeJS.ReadableStream
      output: NodeJS.WritableStream
      signal: AbortSignal
    }) => Promise<T>,
  ): Promise<T> {
    interrupts.signal.throwIfAborted()
    const input = stdin.stream
    // At the end of the input (Ctrl-D) the library closes its reader, which pauses the stream, and waits forever.
    const ended = new AbortController()
    const onPause = () => setImmediate(() => ended.abort())
    input.once('pause', onPause)
    const output = promptOutput(stderr)
    try {
      const signal = AbortSignal.any([interrupts.signal, ended.signal])
      return await question({ input, output, signal })
    } catch (error) {
      if (interrupts.signal.aborted) throw interrupts.signal.reason
      // By name, as the library advises: https://github.com/SBoudrias/Inquirer.js#handling-ctrlc-gracefully
      const name = error instanceof Error ? error.name : ''
      if (name === 'ExitPromptError' || name === 'AbortPromptError') throw new InterruptedError('SIGINT')
      throw error
    } finally {
      input.off('pause', onPause)
      // Otherwise the open stream keeps the process alive.
      input.pause()
      // What the library draws at the end must not come after what the caller writes next.
      if (output.writableEnded) await finished(output)
    }
  }

  return {
    // What is refused can't be edited where the cursor is: it's cleared.
    input: (question) =>
      ask((io) => input({ ...sanitizeQuestion(question), theme: { validationFailureMode: 'clear' } }, io)),
    password: (question) => ask((io) => password({ ...sanitizeQuestion(question), mask: '*' }, io)),
    confirm: (question) => ask((io) => confirm(sanitizeQuestion(question), io)),
    select: ({ message, choices }) =>
      ask((io) => select({ message: sanitizeLine(message), choices: choices.map(sanitizeQuestion) }, io)),
  }
}

const DISPLAYED_KEYS: ReadonlySet<string> = new Set(['message', 'name', 'description'])

/** A question, or one of its choices, with texts that are safe on a terminal. */
function sanitizeQuestion<T extends object>(question: T): T {
  return Object.fromEntries(
    Object.entries(question).map(([key, value]) => [
      key,
      DISPLAYED_KEYS.has(key) ? sanitizeLine(String(value)) : value,
    ]),
  ) as T
}

/** The stream that the library draws on: our stderr, with its current width. */
function promptOutput(output: Context['stderr']): Writable & { columns: number; isTTY: boolean } {
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      output.write(String(chunk)).then(() => done(), done)
    },
  })
  Object.defineProperty(stream, 'columns', { get: () => output.columns ?? 80 })
  return Object.assign(stream as Writable & { columns: number }, { isTTY: true })
}
