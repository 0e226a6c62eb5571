import { isUtf8 } from 'node:buffer'
import type { ShellCommandEnd } from '../context.ts'
import { lookUpTxtInZone, type TxtLookupResult } from '../dns/lookup.ts'
import { createChildController, createDnsEffects } from '../dns/wire/ask.ts'
import { formatHostField, parseDomainName } from '../dns/wire/name.ts'
import { hasTxtValue } from '../dns/wire/txt-answer.ts'
import { CliError, InterruptedError, usageError } from '../errors.ts'
import { invalidResponseError } from '../service/problems.ts'
import { getDnsSettings } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { writeStderrLines } from '../terminal/notices.ts'
import { DEFAULT_TTL_SECONDS, quoteTxtStrings, quoteTxtValue, type TxtRecord } from './record.ts'

/** Maximum milliseconds for which the `--publish` command may run before it is stopped. */
const TIMEOUT_MS = 120_000

/**
 * Adds a record to DNS with the `--publish` command, unless DNS has the value already, and returns a message for the user.
 *
 * @throws CliError `values_unknown`, exit 8, if the other TXT values at the name can't be seen or passed to that command;
 *   `publish_failed`, exit 7, if that command fails; `unexpected_answer`, exit 7, for a record name that isn't a domain name;
 *   `InterruptedError` after a signal
 */
export type PublishFunction = (record: TxtRecord) => Promise<string>

/**
 * Creates the function that runs the `--publish` command, with the record in its environment (docs/publish.md). The function
 * doesn't run the `--publish` command if the other TXT values at the name can't be seen: a tool that replaces the complete set
 * would delete them. An interrupt stops the running `--publish` command, and no later call of the function starts another.
 *
 * @param command the value of `--publish`
 * @throws CliError exit 2 if the shell doesn't find the `--publish` command; not checked on Windows, nor if its first word has
 *   special characters
 */
export async function requirePublishFunction(command: string, io: Io) {
  const [, word] = /^\s*(?:\w+=[\w./:-]*\s+)*([\w.~/+-]+)(?=\s|$)/.exec(command) ?? []
  if (word !== undefined && io.platform !== 'win32') {
    const looking = { variables: {}, timeoutMs: TIMEOUT_MS, onLine: async () => {} }
    if (describeFailure(await io.runInShell({ command: `command -v ${word}`, ...looking })) !== undefined)
      throw usageError(
        `--publish: there is no command "${word}"`,
        'give its path, or add its directory to PATH',
      )
  }
  const stop = createChildController(io.interrupts.signal)
  /**
   * Adds one record by running the `--publish` command, unless DNS already has the record.
   *
   * @param say prints a line of the command's output; by default on stderr
   * @returns message for the event `published`
   */
  return async (record: TxtRecord, say = (line: string) => writeStderrLines([line], io)): Promise<string> => {
    const checked = parseDomainName(record.name)
    if (!checked.ok) throw invalidResponseError(checked.problem)
    const name = checked.ascii
    const servers = getDnsSettings(io.settings)
    const { zone, set, reason, partial } = await lookUpTxtInZone(name, servers, createDnsEffects(io))
    if (hasTxtValue(set?.values ?? partial, record.value))
      return `${name} has the TXT value already: the command wasn't run`
    if (set === null || zone === null) throw valuesUnknown(name, reason ?? 'its zone has no name')
    const variables = variablesOf({ ...record, name }, zone, set)
    const end = await io.interrupts.shield(
      async () => {
        stop.signal.throwIfAborted()
        return io.runInShell({
          command,
          variables,
          timeoutMs: TIMEOUT_MS,
          // The prefix keeps a line `error: …` from looking like an error of this program, and CI from obeying `::error::`.
          onLine: (line) => say(`publish: ${line}`),
          signal: stop.signal,
        })
      },
      (signal) => stop.abort(new InterruptedError(signal === 'SIGINT' ? 'SIGINT' : 'SIGTERM')),
    )
    const problem = describeFailure(end)
    if (problem === undefined) return 'the command ended without an error'
    throw new CliError('publish_failed', `the --publish command ${problem}`, {
      hint: 'fix what its output says, then run the same command again: it continues the same claim',
    })
  }
}

/** All TXT values at a name, with the TTL of the set. */
type TxtSet = NonNullable<TxtLookupResult['set']>

/**
 * Returns the environment variables of the `--publish` command.
 *
 * @throws CliError `values_unknown`, exit 8, if an existing TXT value has control characters or isn't UTF-8
 */
function variablesOf(record: TxtRecord, zone: string, { values, ttl }: TxtSet): Record<string, string> {
  const old = values.map(({ bytes }) => Buffer.from(bytes).toString())
  if (!values.every(({ bytes }) => isUtf8(bytes)) || /\p{Cc}/u.test(old.join('')))
    throw valuesUnknown(record.name, 'one of them has control characters, or bytes that are not UTF-8')
  const set = [...values.map(({ strings }) => quoteTxtStrings(strings)), quoteTxtValue(record.value)]
  return {
    MAILCLAIM_RECORD_NAME: record.name,
    MAILCLAIM_RECORD_HOST: formatHostField(record.name, zone),
    MAILCLAIM_RECORD_ZONE: zone,
    MAILCLAIM_RECORD_TYPE: 'TXT',
    MAILCLAIM_RECORD_VALUE: record.value,
    // All records of a set have one TTL (RFC 2181 section 5.2), so the new record gets the TTL of the values that DNS has already.
    MAILCLAIM_RECORD_TTL: String((values.length > 0 ? ttl : undefined) ?? record.ttl ?? DEFAULT_TTL_SECONDS),
    MAILCLAIM_RECORD_OLD_VALUES: old.join('\n'),
    MAILCLAIM_RECORD_RDATA: quoteTxtValue(record.value),
    MAILCLAIM_RECORD_SET: set.join('\n'),
  }
}

function valuesUnknown(name: string, reason: string): CliError {
  const message = `couldn't see which TXT values ${name} has: ${reason}`
  const hint = `add it yourself: mailclaim claims record ${name}`
  return new CliError('values_unknown', message, { hint })
}

/** Returns how the `--publish` command failed, as the rest of a sentence; undefined after exit code 0. */
function describeFailure(end: ShellCommandEnd): string | undefined {
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
