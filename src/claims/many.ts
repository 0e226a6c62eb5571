import { setMaxListeners } from 'node:events'
import { type HttpTransport, TransportError } from '../context.ts'
import { dnsHostOf } from '../dns/hosts.ts'
import type { CheckReport, Finding } from '../dns/report.ts'
import { createShare } from '../dns/share.ts'
import { CliError, EXIT_ORDER, Exit, InterruptedError, usageError } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { paceRequests } from '../service/pace.ts'
import type { DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Column } from '../terminal/columns.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { createTurns, type Turns } from '../turns.ts'
import { MANY_CLAIM_COLUMNS } from './columns.ts'
import { DEFAULT_JOBS, type ManyFlags } from './definition.ts'
import { type LedgerEntry, openDomains } from './ledger.ts'
import { type Reading, readDomain, readList, type Subject } from './list.ts'
import { findClaim, type KnownClaim } from './load.ts'
import { TIMED_OUT } from './verdict.ts'
import type { ClaimEnd, ClaimEvents } from './workflow.ts'

/** How the work on one of several domains ended. */
export interface Done {
  /** What it is counted as. */
  readonly label: string
  /** The row. */
  readonly item: object
  readonly error?: CliError | undefined
  /** What DNS has to do with it. */
  readonly report?: CheckReport | undefined
  /** What is printed instead of a row. */
  readonly text?: string
}

/** What the work on one domain uses, shared with the others. */
export interface OneRun {
  /** Quiet: the summary says what is worth saying. */
  readonly io: Io
  /** @throws CliError exit 3 without a usable base URL */
  readonly client: () => ServiceClient
  /** How its DNS checks go: at most as many at once as there are jobs, and none once the time is up. */
  readonly dns: { readonly inTurn: Turns; readonly share: ReturnType<typeof createShare> }
  /** Says that the work on this domain mostly waits from now on: the next one may begin. */
  readonly waits: () => void
  /** Says on stderr what can't wait for the end. */
  readonly say: (text: string) => Promise<void>
}

export interface ManyWork {
  readonly columns: readonly Column[]
  /** Whether a placeholder domain id may stand for a domain. */
  readonly takesIds: boolean
  /** Whether a line of `--format jsonl` is an event, and what is completed isn't done again. */
  readonly hasEvents?: boolean
  /** What there is of a domain if there is nothing but an error; its name by default. */
  readonly emptyItem?: (domain: string) => object
  /** For all of them together, from now on, in milliseconds. */
  readonly timeoutMs?: number | undefined
  /** Does for one domain what the command does. @throws CliError if there is nothing to show beside the error */
  readonly perform: (subject: Subject, run: OneRun) => Promise<Done>
}

/** A request that starts when the time is almost up may still take this long, in milliseconds. */
const SHORTEST_MS = 2000
/** Domains that the summary names of each group. */
const NAMED = 3

/**
 * Does the same work for several domains, and reports each as it ends: a row, or a line of JSON. For people, counts and causes
 * follow. They share one client with its credential, the rate limit of the service, and what DNS says about the zones above them. A
 * domain that fails doesn't stop the others, except for a reason that all have: no credential, or no address of the service.
 *
 * @throws CliError with the most severe exit code if not all are done
 */
export async function runForAll(
  domains: readonly string[],
  { from, all, jobs = DEFAULT_JOBS }: ManyFlags,
  work: ManyWork,
  io: Io,
): Promise<void> {
  if (all && domains.length > 0) throw usageError("a domain and --all can't be used together")
  const { clock, interrupts } = io
  const typed = all ? await openDomains(io) : domains.map((domain) => readDomain(domain, work.takesIds))
  if (all && typed.length === 0) await io.note('no open claim is known on this machine')
  const stop = new AbortController()
  const signal = AbortSignal.any([interrupts.signal, stop.signal])
  // Any number of requests and waits follow it.
  setMaxListeners(0, signal)
  const end = clock.monotonic() + (work.timeoutMs ?? Number.POSITIVE_INFINITY)
  const inTime = () => {
    signal.throwIfAborted()
    if (clock.monotonic() >= end)
      throw new CliError(TIMED_OUT, Exit.notYet, 'the time was up before its turn')
  }
  const turns = createTurns(jobs)
  const http = paceRequests(untilEnd(io, end), clock, { concurrent: jobs })
  const context = { ...io, http, interrupts: { ...interrupts, signal } }
  const own = createIo(context, { ...io.settings, quiet: true, silent: true, interactive: false })
  const report = createReporter(work, io)
  let client: ServiceClient | undefined
  const shared = {
    io: own,
    client() {
      client ??= connect(own)
      return client
    },
    dns: {
      inTurn: <T>(check: () => Promise<T>): Promise<T> =>
        turns(async () => {
          inTime()
          return check()
        }),
      share: createShare(clock),
    },
    say: report.say,
  }

  const one = async (subject: Subject, waits: () => void) => {
    const { domain } = subject
    try {
      inTime()
      const done = await work.perform(subject, { ...shared, waits })
      await report.done(domain, done)
    } catch (error) {
      if (error instanceof InterruptedError || signal.aborted) throw error
      const failure =
        error instanceof CliError ? error : new CliError('bug', Exit.bug, `this is a bug: ${error}`)
      const item = work.emptyItem?.(domain) ?? { name: domain }
      await report.done(domain, { label: labelOf(failure), item, error: failure })
      if ([Exit.notConfigured, Exit.notSignedIn].includes(failure.exit as 3)) throw failure
    }
  }

  const seen = new Set<string>()
  async function* readings(): AsyncGenerator<Reading, void, void> {
    for (const domain of typed) yield { domain }
    if (from !== undefined) yield* readList(from, work.takesIds, io)
  }
  // A list that is still being typed or generated isn't waited for.
  const halt = () => from === '-' && io.stdin.stream.destroy()
  signal.addEventListener('abort', halt, { once: true })
  await runPool(
    readings(),
    jobs,
    async (reading, waits) => {
      if ('problem' in reading) return report.problem(reading.problem)
      if (seen.has(reading.domain)) return
      seen.add(reading.domain)
      await one(reading, waits)
    },
    stop,
    signal,
  )
  signal.removeEventListener('abort', halt)
  halt()
  const { done, failed, problems, exits } = await report.end()
  if (interrupts.signal.aborted) throw interruptedAfter(interrupts.signal.reason, done)
  stop.signal.throwIfAborted()
  if (done + problems === 0 && from !== undefined) throw usageError('--from: the list has no domain')
  const exit = EXIT_ORDER.find((code) => exits.has(code))
  if (exit === undefined) return
  const parts = [
    failed > 0 ? `domains not done: ${failed} of ${done}` : '',
    problems > 0 ? `lines that can't be used: ${problems}` : '',
  ]
  const rest = 'to go on with the rest, run the same command again: what is completed is not done again'
  const hint = work.hasEvents ? rest : undefined
  throw new CliError('domains_failed', exit, parts.filter(Boolean).join('; '), { hint })
}

function interruptedAfter(reason: unknown, done: number): unknown {
  if (!(reason instanceof CliError)) return reason
  return new CliError(reason.code, reason.exit, `${reason.message} after ${done} domains`, {
    hint: 'nothing is lost; to continue, run the same command again',
  })
}

/** What is counted if there is nothing but an error: the status of a claim that has ended is in its code. */
const labelOf = ({ code, exit }: CliError): string =>
  exit === Exit.negativeEnd ? code.replace(/^claim_/, '') : exit === Exit.refused ? 'refused' : 'error'

/**
 * Works on items as they come, at most `limit` at once besides those that wait, until all are done or the signal aborts; then it
 * waits for those that have begun. The first failure stops it.
 */
async function runPool<T>(
  items: AsyncIterable<T>,
  limit: number,
  work: (item: T, waits: () => void) => Promise<void>,
  stop: AbortController,
  signal: AbortSignal,
): Promise<void> {
  let busy = 0
  let wake = () => {}
  const running = new Set<Promise<void>>()
  // Only the first reason counts: a list that is no longer read is no problem of the list.
  const fail = (error: unknown) => signal.aborted || stop.abort(error)
  signal.addEventListener('abort', () => wake(), { once: true })
  try {
    for await (const item of items) {
      if (signal.aborted) break
      busy += 1
      let isBusy = true
      const free = () => {
        if (isBusy) busy -= 1
        isBusy = false
        wake()
      }
      const task: Promise<void> = work(item, free)
        .catch(fail)
        .finally(() => {
          running.delete(task)
          free()
        })
        .then(() => {})
      running.add(task)
      while (busy >= limit && !signal.aborted)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    }
  } catch (error) {
    fail(error)
  }
  await Promise.all(running)
}

/**
 * Requests of which none starts once the time is up, except for a renewal of the session; those that change something get their
 * answer although the run stops, since otherwise nobody would know of it.
 */
function untilEnd({ http, clock, interrupts }: Io, end: number): HttpTransport {
  return {
    close: () => http.close(),
    async send(request) {
      const { method, signal, beforeSend } = request
      if (beforeSend === undefined && clock.monotonic() >= end + SHORTEST_MS)
        throw new TransportError('timeout', 'no', 'the time was up')
      return http.send(method === 'GET' || !signal ? request : { ...request, signal: interrupts.signal })
    },
  }
}

/** What domains have in common that need the same: the first one's own words are the example. */
interface Group {
  readonly title: string
  readonly message: string
  readonly fix: string | undefined
  readonly names: string[]
}

/** The mistake in DNS if that is why a domain isn't done, or a warning beside a record that is ready; else the error. */
function causeOf(error: CliError | undefined, finding: Finding | undefined) {
  const isDns = error === undefined || error.exit === Exit.notYet
  if (finding !== undefined && isDns) return finding
  return error && { code: error.code, message: error.message, fix: error.hint }
}

/** Prints each domain as it ends, and for people counts and causes, most frequent first. */
function createReporter(work: ManyWork, io: Io) {
  const { format, quiet } = io.settings
  const isText = format === 'zone' || format === 'value'
  const rows = io.list(work.columns)
  const inTurn = createTurns(1)
  const exits = new Set<number>()
  const labels = new Map<string, number>()
  const groups = new Map<string, Group>()
  let [done, failed, problems] = [0, 0, 0]

  function count(domain: string, { label, error, report }: Done): void {
    done += 1
    labels.set(label, (labels.get(label) ?? 0) + 1)
    if (error !== undefined) {
      failed += 1
      exits.add(error.exit)
    }
    const finding = report?.findings.find(({ severity }) => severity !== 'info')
    const cause = causeOf(error, finding)
    if (cause === undefined) return
    const { code, message, fix } = cause
    const host = report && finding ? dnsHostOf(report.nameservers.map((server) => server.host)) : null
    const title = host === null ? code : `${code} at ${host}`
    const group = groups.get(title) ?? { title, message, fix, names: [] }
    group.names.push(domain)
    groups.set(title, group)
  }

  function summary(): string {
    const counts = [...labels].sort().map(([label, number]) => `${label} ${number}`)
    const lines = [`domains: ${done}${counts.length > 0 ? ` (${counts.join(', ')})` : ''}`]
    if (problems > 0) lines.push(`lines that can't be used: ${problems}`)
    for (const { title, names, message, fix } of [...groups.values()].sort(
      (one, other) => other.names.length - one.names.length,
    )) {
      const more = names.length > NAMED ? ', …' : ''
      lines.push(`  ${title}: ${names.length} (${names.slice(0, NAMED).join(', ')}${more})`, `    ${message}`)
      if (fix) lines.push(`    fix: ${fix}`)
    }
    return lines.join('\n')
  }

  return {
    say: (text: string) => inTurn(() => io.stderr.write(`${sanitizeLine(text)}\n`)),
    async problem(text: string): Promise<void> {
      problems += 1
      exits.add(Exit.usage)
      await inTurn(() => io.warn(text))
    },
    async done(domain: string, end: Done): Promise<void> {
      count(domain, end)
      const error = end.error?.toJSON()
      const at = new Date(io.clock.now()).toISOString()
      const isEvent = format === 'jsonl' && work.hasEvents
      const item = isEvent
        ? { event: 'done', at, name: domain, claim: end.item, ...error }
        : { ...end.item, ...error }
      if (io.stderr.isTTY) await io.progress.update(`domains done: ${done}`)
      await inTurn(async () => {
        if (isText) return end.text === undefined ? undefined : io.stdout.write(end.text)
        return rows.page({ items: [item] })
      })
    },
    async end() {
      await io.progress.end()
      if (!isText) await rows.end(false)
      if (!quiet && done + problems > 0) await io.note(summary())
      return { done, failed, problems, exits }
    },
  }
}

/** Does the work on each of several claims, each to its end. @param begin starts it for one */
export function runClaims(
  domains: readonly string[],
  flags: ManyFlags & { readonly timeoutMs: number | undefined },
  begin: (known: KnownClaim, run: OneRun) => ClaimEvents,
  io: Io,
): Promise<void> {
  const perform = async ({ domain }: Subject, run: OneRun) => {
    const known = await findClaim(domain, run.io)
    return completedBefore(known.entry) ?? drainOne(begin(known, run), run)
  }
  const { timeoutMs } = flags
  const work = { columns: MANY_CLAIM_COLUMNS, takesIds: true, hasEvents: true, timeoutMs, perform }
  return runForAll(domains, flags, work, io)
}

/** One of several claims that the ledger has as completed isn't asked about again: its row says when that was seen. */
export function completedBefore(newest: LedgerEntry | undefined): Done | undefined {
  if (newest?.claim.status !== 'completed') return undefined
  return { label: 'completed', item: { ...newest.claim, seen_at: newest.seen_at } }
}

/** Runs the events of the work on one of several claims; the next one begins as soon as this one waits. */
export async function drainOne(
  events: ClaimEvents,
  { waits }: OneRun,
  onEvent?: (event: { readonly event: string; readonly claim: DomainClaim }) => Promise<void>,
): Promise<Done> {
  for (;;) {
    const step = await events.next()
    if (step.done) return doneClaim(step.value)
    const { event } = step.value
    if (event === 'waiting' || event === 'status') waits()
    await onEvent?.(step.value)
  }
}

const doneClaim = ({ claim, error, report }: ClaimEnd): Done => ({
  label: claim.status ?? 'no status',
  item: claim,
  error,
  report: error === undefined || error.exit === Exit.notYet ? report : undefined,
})
