import { isUtf8 } from 'node:buffer'
import type { ProgramEnd } from '../context.ts'
import { lookUpTxt } from '../dns/lookup.ts'
import { dnsEffects } from '../dns/wire/ask.ts'
import { checkName, relativeName } from '../dns/wire/name.ts'
import { hasText, type TxtValue } from '../dns/wire/txt-answer.ts'
import { CliError, InterruptedError, usageError } from '../errors.ts'
import { unexpectedAnswer } from '../service/problems.ts'
import { dnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { writeLines } from '../terminal/notices.ts'
import { DEFAULT_TTL, quoteStrings, quoteValue, type TxtRecord } from './record.ts'

/** How long the command may take, in milliseconds. */
const TIMEOUT_MS = 120_000

/** Adds a record to DNS, and says what was done. @throws CliError if it isn't there and couldn't be added */
export type Publish = (record: TxtRecord) => Promise<string>

/**
 * What runs a person's command that adds a record to DNS, with the record in its environment (docs/publish.md). It isn't run if
 * DNS has the value already, nor without the values to keep: a tool that replaces the set would delete them. Once a person has
 * interrupted the program, no other begins.
 *
 * @throws CliError exit 2 for a command whose first word the shell doesn't find; what only a shell understands, such as a quoted word,
 *   isn't looked up, and on Windows nothing is. The function throws `values_unknown`, exit 8; `publish_failed` or `unexpected_answer`, exit 7; `InterruptedError`, after the
 * command has ended.
 */
export async function createPublisher(command: string, io: Io) {
  const [, word] = /^\s*(?:\w+=[\w./:-]*\s+)*([\w.~/+-]+)(?=\s|$)/.exec(command) ?? []
  if (word !== undefined && io.platform !== 'win32') {
    const looking = { variables: {}, timeoutMs: TIMEOUT_MS, onLine: async () => {} }
    if (problemOf(await io.runProgram({ command: `command -v ${word}`, ...looking })) !== undefined)
      throw usageError(
        `--publish: there is no command "${word}"`,
        'give its path, or add its directory to PATH',
      )
  }
  const stop = new AbortController()
  /** @param say what becomes of its lines, if not as they are on stderr */
  return async (record: TxtRecord, say = (line: string) => writeLines([line], io)): Promise<string> => {
    const checked = checkName(record.name)
    if (!checked.ok) throw unexpectedAnswer(checked.problem)
    const name = checked.ascii
    const { zone, set, reason, partial } = await lookUpTxt(name, dnsSettings(io.settings), dnsEffects(io))
    if (hasText(set?.values ?? partial, record.value))
      return `${name} has the TXT value already: the command wasn't run`
    if (set === null || zone === null) throw valuesUnknown(name, reason ?? 'its zone has no name')
    const variables = variablesOf({ ...record, name }, zone, set.values, set.ttl)
    const end = await io.interrupts.shield(
      async () => {
        io.interrupts.signal.throwIfAborted()
        stop.signal.throwIfAborted()
        return io.runProgram({
          command,
          variables,
          timeoutMs: TIMEOUT_MS,
          // What begins like an error or a command of CI is neither.
          onLine: (line) => say(`publish: ${line}`),
          signal: AbortSignal.any([stop.signal, io.interrupts.signal]),
        })
      },
      (signal) => stop.abort(new InterruptedError(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM')),
    )
    const problem = problemOf(end)
    if (problem === undefined) return 'the command ended without an error'
    throw new CliError('publish_failed', `the --publish command ${problem}`, {
      hint: 'fix what its output says, then run the same command again: it continues the same claim',
    })
  }
}

/** What the command gets. @throws CliError `values_unknown`, exit 8, for a value that can't be a line */
function variablesOf(
  record: TxtRecord,
  zone: string,
  values: readonly TxtValue[],
  ttl: number | null,
): Record<string, string> {
  const old = values.map((value) => lineOf(value, record.name))
  const set = [...values.map(({ strings }) => quoteStrings(strings)), quoteValue(record.value)]
  return {
    MAILCLAIM_RECORD_NAME: record.name,
    MAILCLAIM_RECORD_HOST: relativeName(record.name, zone),
    MAILCLAIM_RECORD_ZONE: zone,
    MAILCLAIM_RECORD_TYPE: 'TXT',
    MAILCLAIM_RECORD_VALUE: record.value,
    // All records of a set have one TTL (RFC 2181 section 5.2).
    MAILCLAIM_RECORD_TTL: String((values.length > 0 ? ttl : undefined) ?? record.ttl ?? DEFAULT_TTL),
    MAILCLAIM_RECORD_OLD_VALUES: old.join('\n'),
    MAILCLAIM_RECORD_RDATA: quoteValue(record.value),
    MAILCLAIM_RECORD_SET: set.join('\n'),
  }
}

/**
 * A value as a line of `MAILCLAIM_RECORD_OLD_VALUES`.
 *
 * @throws CliError `values_unknown`, exit 8, if it has a line break or no text
 */
function lineOf({ bytes }: TxtValue, name: string): string {
  const text = Buffer.from(bytes).toString()
  if (isUtf8(bytes) && !/\p{Cc}/u.test(text)) return text
  throw valuesUnknown(name, 'one of them has control characters, or bytes that are not UTF-8')
}

function valuesUnknown(name: string, reason: string): CliError {
  const message = `couldn't see which TXT values ${name} has: ${reason}`
  const hint = `add it yourself: mailclaim claims record ${name}`
  return new CliError('values_unknown', message, { hint })
}

function problemOf(end: ProgramEnd): string | undefined {
  switch (end.kind) {
    case 'exited':
      return end.code === 0 ? undefined : `ended with exit code ${end.code}`
    case 'killed':
      return `was ended by ${end.signal}`
    case 'timed_out':
      return `was stopped after ${TIMEOUT_MS / 1000} seconds`
    case 'not_started':
      return `couldn't be started: ${end.error.message}`
  }
}
