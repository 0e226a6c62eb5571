import type { Context, ProgramEnd, ProgramNotStarted } from '../context.ts'
import { observeTxtSet, type TxtSet } from '../dns/observation/observe-txt-set.ts'
import { findZone, type SearchStart } from '../dns/resolution/find-zone.ts'
import { dnsEffects } from '../dns/wire/effects.ts'
import { checkName, relativeName } from '../dns/wire/name.ts'
import { hasText, type TxtValue } from '../dns/wire/txt-answer.ts'
import { CliError, Exit } from '../errors.ts'
import { unexpectedAnswer } from '../service/problems.ts'
import { formatDuration } from '../terminal/duration.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import type { DnsSettings } from './precheck.ts'
import { quoteStrings, quoteValue, type TxtRecord } from './record.ts'
import { recordSetWith } from './record-providers.ts'

export type PublishAction = 'publish' | 'unpublish'

export interface PublishOptions {
  /** The program and its arguments. */
  readonly command: readonly [file: string, ...args: string[]]
  /** How long the program may take. */
  readonly timeoutMs: number
  /** Whether to run it even if nobody knows which TXT values the name has: it gets none then. */
  readonly onlyNew: boolean
  /** Gets each line that the program prints, as it is. */
  readonly onLine: (line: string) => Promise<void>
}

/** What was done, and what to say about it. */
export interface Publication {
  /** False if DNS was already as it should be. */
  readonly ran: boolean
  readonly zone: string
  /** Whether DNS has the value, when it was last queried; undefined if nobody knows, as after a program that adds it. */
  readonly inDns?: boolean
  readonly message: string
}

type PublishContext = Pick<Context, 'programs' | 'clock' | 'dns' | 'interrupts' | 'random'>

/** The longest search for the zone if the name servers don't say what they have, in milliseconds. */
const FIND_ZONE_MS = 4000

/**
 * Runs a program of the user's that adds a record to DNS or removes it, with the record in its environment; see
 * docs/publish.md. Doesn't run it if DNS is already as it should be, and not without the values to keep: a program that
 * replaces the set would delete them.
 *
 * @throws CliError `values_unknown`, exit 8; `value_unusable`, `zone_unknown`, `publish_failed` or `publish_timeout`, exit 7;
 *   `publish_not_started`, exit 2; `InterruptedError`, after the program has ended
 */
export async function publishRecord(
  action: PublishAction,
  record: TxtRecord,
  options: PublishOptions,
  context: PublishContext,
  settings: DnsSettings,
): Promise<Publication> {
  const checked = checkName(record.name)
  if (!checked.ok) throw unexpectedAnswer(checked.problem)
  // A line break could add a command to what a program is fed.
  if (/\p{Cc}/u.test(record.value)) throw valueUnusable(record)
  const name = checked.ascii
  const { resolvers = 'system', authoritativePort } = settings
  const start: Omit<SearchStart, 'timeoutMs'> = { resolvers, authoritativePort }
  const observe = () => observeTxtSet(name, start, dnsEffects(context))
  const set = withoutOddValues(await observe())
  const isThere = hasText(valuesIn(set), record.value)
  const isDone = action === 'publish' ? isThere : set.kind === 'seen' && !isThere
  if (isDone && set.zone !== undefined) {
    const state = !isThere
      ? 'no longer has the TXT value'
      : set.kind === 'seen'
        ? 'has the TXT value already'
        : `has the TXT value already, but perhaps not everywhere (${set.reason})`
    return {
      ran: false,
      zone: set.zone,
      inDns: isThere,
      message: `${name} ${state}: ${programOf(options)} wasn't run`,
    }
  }
  if (set.kind === 'unseen' && !options.onlyNew) throw valuesUnknown(name, set)
  const zone =
    set.zone ?? (await findZone(name, { ...start, timeoutMs: FIND_ZONE_MS }, dnsEffects(context)))?.zone
  if (zone === undefined) throw zoneUnknown(name, set)

  const end = await context.programs.run({
    command: options.command,
    variables: variablesOf(action, { ...record, name }, zone, set),
    timeoutMs: options.timeoutMs,
    onLine: options.onLine,
    signal: context.interrupts.signal,
  })
  const problem = failureOf(end, options)
  if (problem !== undefined) throw problem
  const ended = `${programOf(options)} ended without an error`
  // What is added is looked for in the next step.
  if (action === 'publish') return { ran: true, zone, message: ended }
  const after = await observe()
  if (hasText(valuesIn(after), record.value))
    return { ran: true, zone, inDns: true, message: `${ended}, but DNS still has the TXT value` }
  if (after.kind === 'unseen') return { ran: true, zone, message: ended }
  return { ran: true, zone, inDns: false, message: `${programOf(options)} removed the record` }
}

/** What was seen, even if that isn't all. */
function valuesIn(set: TxtSet): readonly TxtValue[] {
  return set.kind === 'seen' ? set.values : set.partial
}

/**
 * What the program gets. Without knowledge of the existing values, the variables with them are absent rather than empty, so
 * that a program that needs them fails.
 */
function variablesOf(
  action: PublishAction,
  record: TxtRecord,
  zone: string,
  set: TxtSet,
): Record<string, string> {
  const existing = set.kind === 'seen' ? set : undefined
  const { ttl, values } = recordSetWith(record, existing)
  const own = Buffer.from(record.value)
  const after =
    action === 'publish' ? values : values.filter((strings) => !Buffer.concat(strings).equals(own))
  return {
    MAILCLAIM_RECORD_ACTION: action,
    MAILCLAIM_RECORD_NAME: record.name,
    MAILCLAIM_RECORD_HOST: relativeName(record.name, zone),
    MAILCLAIM_RECORD_ZONE: zone,
    MAILCLAIM_RECORD_TYPE: 'TXT',
    MAILCLAIM_RECORD_VALUE: record.value,
    MAILCLAIM_RECORD_RDATA: quoteValue(record.value),
    MAILCLAIM_RECORD_TTL: String(ttl),
    ...(existing === undefined
      ? {}
      : {
          MAILCLAIM_RECORD_OLD_VALUES: existing.values.map(({ bytes }) => textOf(bytes)).join('\n'),
          MAILCLAIM_RECORD_SET: after.map((strings) => quoteStrings(strings)).join('\n'),
        }),
  }
}

/** A value with a line break or without text can't be a line of `MAILCLAIM_RECORD_OLD_VALUES`. */
function withoutOddValues(set: TxtSet): TxtSet {
  if (set.kind === 'unseen' || set.values.every(({ bytes }) => textOf(bytes) !== undefined)) return set
  const reason = 'one of them has control characters, or bytes that are not UTF-8'
  return { kind: 'unseen', zone: set.zone, reason, partial: set.values }
}

function textOf(bytes: TxtValue['bytes']): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return /\p{Cc}/u.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

/** The program's name without its directory. Its arguments may have secrets. */
export function programOf({ command: [file] }: Pick<PublishOptions, 'command'>): string {
  return file.replace(/.*[/\\](?=.)/, '')
}

function failureOf(end: ProgramEnd, options: PublishOptions): CliError | undefined {
  const program = programOf(options)
  const failed = (why: string) =>
    new CliError('publish_failed', Exit.unavailable, `${program} ${why}`, {
      hint: `its output says more; fix the cause, then run the same command again: ${CONTINUES}`,
    })
  switch (end.kind) {
    case 'exited':
      return end.code === 0 ? undefined : failed(`ended with exit code ${end.code}`)
    case 'killed':
      return failed(`was ended by ${end.signal}`)
    case 'timed_out': {
      const time = formatDuration(options.timeoutMs / 1000)
      return new CliError('publish_timeout', Exit.unavailable, `${program} was stopped after ${time}`, {
        hint: `--publish-timeout gives it more time; run the same command again: ${CONTINUES}`,
      })
    }
    case 'not_started':
      return notStarted(options.command[0], end, `fix the command, then run it again: ${CONTINUES}`)
  }
}

/** The error for a program that can't be started: `publish_not_started`, exit 2. */
export function notStarted(file: string, problem: ProgramNotStarted, hint: string): CliError {
  const message = `couldn't run ${file}: ${startProblem(file, problem)}`
  return new CliError('publish_not_started', Exit.usage, message, { hint, cause: problem.error })
}

const CONTINUES = 'it continues the same claim'

function startProblem(file: string, { error, firstLine }: ProgramNotStarted): string {
  if (error.code === 'ENOENT' && firstLine?.endsWith('\r'))
    return 'it has Windows line ends (CR LF), which become part of the name of its interpreter; save it with LF alone'
  if (error.code === 'ENOENT' && firstLine !== undefined)
    return `the interpreter in its first line doesn't exist: ${sanitizeLine(firstLine)}`
  if (error.code === 'ENOENT')
    return file.includes('/')
      ? "the file doesn't exist"
      : `there is no such program in PATH; if it is in this directory: ./${file}`
  return START_PROBLEMS[error.code ?? ''] ?? sanitizeLine(error.message)
}

const START_PROBLEMS: Readonly<Record<string, string>> = {
  EACCES: 'it is not executable (chmod +x)',
  EISDIR: 'it is a directory',
  EPERM: 'the system does not allow it',
  ENOEXEC: 'it is not a program for this system',
  E2BIG: 'the TXT values in DNS are too long for its environment',
}

function valueUnusable({ value }: TxtRecord): CliError {
  return new CliError(
    'value_unusable',
    Exit.unavailable,
    `the value ${JSON.stringify(value.slice(0, 300))} has control characters, so no program gets it`,
    { hint: 'add the record by hand: mailclaim claims record' },
  )
}

type Unseen = Extract<TxtSet, { readonly kind: 'unseen' }>

function valuesUnknown(name: string, { reason, zone, isAlias, particulars }: Unseen): CliError {
  const message = `couldn't see which TXT values ${name} has: ${reason}`
  const onlyNew = zone === undefined || isAlias ? '' : '; or if it only adds a value, add --only-new'
  const why = isAlias
    ? 'no TXT record can be added beside an alias'
    : 'a program that replaces them would delete those it does not know'
  return new CliError('values_unknown', Exit.notYet, message, {
    hint: `${why}, so it was not run; ${whyUnseen(name)}${onlyNew}`,
    particulars,
  })
}

function zoneUnknown(name: string, set: TxtSet): CliError {
  const { reason, isAbsent, particulars } =
    set.kind === 'unseen' ? set : ({ reason: 'its zone has no name' } as Partial<Unseen>)
  return new CliError('zone_unknown', Exit.unavailable, `couldn't find the zone of ${name}: ${reason}`, {
    hint: isAbsent
      ? 'no program can add a record to a zone that does not exist; check the name servers at the registrar'
      : `the program needs to know the zone, so it was not run; ${whyUnseen(name)}`,
    particulars,
  })
}

const whyUnseen = (name: string) => `to see why, and what to do: mailclaim claims check ${name}`
