import { CliError, Exit } from '../errors.ts'
import type { Io } from '../terminal/io.ts'
import type { RequestOptions } from './client.ts'
import { newsOnly, type PollOptions, poll } from './polling.ts'

/** How a thing at the service is. */
export interface Described {
  readonly status: string
  /** What else counts as news, such as counts. */
  readonly details?: string
  /** For people, as the rest of a sentence. */
  readonly text: string
  /** Nothing follows; with the error that the command ends with, unless that is success. */
  readonly end?: { readonly error?: CliError | undefined }
  /** Its status isn't one that this version knows. */
  readonly isOdd?: boolean
}

/** What a follower sees: how the thing is at first and after each change; that it is still so; a problem; the end. */
export interface FollowEvent<T> {
  readonly event: 'status' | 'waiting' | 'warning' | 'done'
  readonly value: T
  readonly text: string
  readonly error?: CliError | undefined
}

export interface FollowOptions<T> extends Omit<PollOptions, 'isKnown'> {
  /** Gets it once, with these options for its request. */
  readonly fetch: (options: RequestOptions) => Promise<T>
  readonly describe: (value: T) => Described
  /** What was just seen, if anything: it isn't fetched again at once. */
  readonly first?: T | undefined
  /** The code, the name of the thing and the hint of the error when the time is up: exit 8. */
  readonly timeout: (value: T) => { readonly code: string; readonly what: string; readonly hint: string }
}

/**
 * Follows a thing at the service until it ends or the time is up. Yields each change and each problem, and once a minute that
 * nothing has changed.
 *
 * @returns the thing as last seen, with the error if it didn't end well: its own, or exit 8 when the time is up
 * @throws CliError what `poll` throws
 */
export async function* follow<T>(
  options: FollowOptions<T>,
  io: Pick<Io, 'clock' | 'random' | 'interrupts'>,
): AsyncGenerator<FollowEvent<T>, { readonly value: T; readonly error?: CliError | undefined }, void> {
  const { describe, first } = options
  const news = newsOnly(io.clock)
  let next = first
  const fetch = async (request: RequestOptions) => {
    const value = next ?? (await options.fetch(request))
    next = undefined
    return value
  }
  let last: { readonly value: T; readonly seen: Described } | undefined
  let timeout: { readonly error: CliError | undefined; readonly text: string } | undefined
  for await (const polled of poll(fetch, { ...options, isKnown: first !== undefined }, io)) {
    if (polled.kind === 'value') {
      const { value } = polled
      const seen = describe(value)
      const { status, details = '', text, end, isOdd } = seen
      const isChanged = last?.seen.status !== status
      const message = news(`${status} ${details}`, text)
      if (message !== undefined && (last === undefined || end === undefined))
        yield { event: isChanged ? 'status' : 'waiting', value, text: message }
      if (isChanged && isOdd)
        yield { event: 'warning', value, text, error: new CliError('unknown_status', Exit.notYet, text) }
      last = { value, seen }
      if (end !== undefined) {
        yield { event: 'done', value, text, error: end.error }
        return { value, error: end.error }
      }
    } else if (polled.kind === 'failure') {
      const message = news(polled.text, polled.text)
      if (last !== undefined && message !== undefined)
        yield { event: 'warning', value: last.value, text: message, error: polled.error }
    } else timeout = polled
  }
  // Without a first value, the first poll gives one or throws.
  const { value, seen } = last as NonNullable<typeof last>
  const { code, what, hint } = options.timeout(value)
  const failed = timeout?.error ? `; the last request failed: ${timeout.error.message}` : ''
  const message = `${timeout?.text}: ${what} is still in progress (${seen.text})${failed}`
  return { value, error: new CliError(code, Exit.notYet, message, { hint, cause: timeout?.error }) }
}
