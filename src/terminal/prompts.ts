import { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { confirm, input, password, select } from '@inquirer/prompts'
import type { Context, Prompts } from '../context.ts'
import { InterruptedError } from '../errors.ts'
import { sanitizeLine } from './sanitize.ts'

/**
 * Creates prompts on stderr, since stdout is for data. Ctrl-C and the end of input (Ctrl-D) reject a prompt with an
 * `InterruptedError`. Callers must check `Settings.interactive` first.
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
    // Abort when stdin is paused: at the end of input (Ctrl-D), readline closes and pauses stdin, but Inquirer would wait forever.
    const ended = new AbortController()
    const onPause = () => setImmediate(() => ended.abort())
    input.once('pause', onPause)
    const output = promptOutput(stderr)
    try {
      const signal = AbortSignal.any([interrupts.signal, ended.signal])
      return await question({ input, output, signal })
    } catch (error) {
      if (interrupts.signal.aborted) throw interrupts.signal.reason
      // Compare the error's name rather than its class, as Inquirer advises:
      // https://github.com/SBoudrias/Inquirer.js#handling-ctrlc-gracefully
      const name = error instanceof Error ? error.name : ''
      if (name === 'ExitPromptError' || name === 'AbortPromptError') throw new InterruptedError('SIGINT')
      throw error
    } finally {
      input.off('pause', onPause)
      // Pause stdin, because a flowing stdin keeps the process alive.
      input.pause()
      // Wait until Inquirer's last output is written, so that the caller's next text follows it.
      if (output.writableEnded) await finished(output)
    }
  }

  return {
    // Clear rejected input: Inquirer places the cursor wrongly in kept text.
    input: (question) =>
      ask((io) => input({ ...sanitizeQuestion(question), theme: { validationFailureMode: 'clear' } }, io)),
    password: (question) => ask((io) => password({ ...sanitizeQuestion(question), mask: '*' }, io)),
    confirm: (question) => ask((io) => confirm(sanitizeQuestion(question), io)),
    select: ({ message, choices }) =>
      ask((io) => select({ message: sanitizeLine(message), choices: choices.map(sanitizeQuestion) }, io)),
  }
}

/** Fields of prompts and choices that Inquirer prints, and whose text `sanitizeQuestion` therefore sanitizes. */
const DISPLAYED_KEYS: ReadonlySet<string> = new Set(['message', 'name', 'description'])

function sanitizeQuestion<T extends object>(question: T): T {
  return Object.fromEntries(
    Object.entries(question).map(([key, value]) => [
      key,
      DISPLAYED_KEYS.has(key) ? sanitizeLine(String(value)) : value,
    ]),
  ) as T
}

/** Returns the output as a stream for Inquirer, with the terminal's current width. */
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
