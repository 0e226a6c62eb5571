import { type HttpTransport, TransportError } from '../context.ts'
import { dnsHostOf } from '../dns/hosts.ts'
import type { CheckReport } from '../dns/report.ts'
import { createShare } from '../dns/share.ts'
import { childController } from '../dns/wire/ask.ts'
import { CliError, EXIT_ORDER, Exit, type ExitCode, InterruptedError, usageError } from '../errors.ts'
import type { ServiceClient } from '../service/client.ts'
import { consume } from '../service/follow.ts'
import { paceRequests } from '../service/pace.ts'
import { connect } from '../session/connect.ts'
import type { Column } from '../terminal/columns.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { writeLines } from '../terminal/notices.ts'
import { type Deadline, deadlineOf, MIN_STEP_MS } from '../timeout.ts'
import { createTurns, type Turns } from '../turns.ts'
import { MANY_CLAIM_COLUMNS } from './columns.ts'
import { DEFAULT_JOBS, type ManyOptions } from './definition.ts'
import { everyClaim, type LedgerEntry, ledgerInForce, openDomains, otherLedgers } from './ledger.ts'
import { judge } from './lifecycle.ts'
import { type DomainList, readDomain, readList, type Subject } from './list.ts'
import { type ClaimReader, createClaimReader, findClaim } from './load.ts'
import type { ClaimEvent, ClaimEvents, ClaimOptions, ClaimWork } from './workflow.ts'

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
  /** Asks the service about a claim, for a command that can go on without an answer. */
  readonly readClaim: ClaimReader
  /** Says that the work on this domain mostly waits from now on: the next one may begin. */
  readonly letNext: () => void
  readonly warn: Io['warn']
  /** Writes lines to stderr that can't wait for the end. */
  readonly say: (...lines: readonly string[]) => Promise<void>
  /** Tells what one domain waits for and what to do: the first time that a run sees the finding's code, as an example. */
  readonly tell: (report: CheckReport) => Promise<void>
}

export interface ManyWork {
  readonly columns: readonly Column[]
  /** Whether a placeholder domain id may stand for a domain. */
  readonly takesIds: boolean
  /** Whether a line of `--format jsonl` is an event, and what is completed isn't done again. */
  readonly hasEvents?: boolean
  /** Whether `readClaim` may renew the session: yes by default. */
  readonly renews?: boolean
  /** What there is of a domain if there is nothing but an error; its name by default. */
  readonly emptyItem?: (domain: string) => object
  /** For all of them together. */
  readonly deadline?: Deadline
  /** Does for one domain what the command does. @throws CliError if there is nothing to show beside the error */
  readonly perform: (subject: Subject, run: OneRun) => Promise<Done>
}

/**
 * Does the same work for several domains, and reports each as it ends: a row, or a line of JSON. For people, counts and causes
 * follow. They share one client with its credential, the rate limit of the service, and what DNS says about the zones above them. A
 * domain that fails doesn't stop the others, except for a reason that all have: no credential, or no address of the service.
 *
 * @throws CliError with the most severe exit code if not all are done
 */
export async function runForAll(
  domains: readonly string[],
  options: ManyOptions,
  work: ManyWork,
  io: Io,
): Promise<void> {
  const { jobs = DEFAULT_JOBS } = options
  const { subjects, problems } = await subjectsOf(domains, options, work.takesIds, io)
  const reporter = createReporter(work, problems, io)
  const stop = childController(io.interrupts.signal)
  const { requireTime, ...shared } = shareAmong(jobs, work, stop.signal, io)

  const one = async (subject: Subject, letNext: () => void) => {
    const { domain } = subject
    try {
      requireTime()
      await reporter.done(domain, await work.perform(subject, { ...shared, ...reporter, letNext }))
    } catch (error) {
      if (error instanceof InterruptedError || shared.io.interrupts.signal.aborted) throw error
      const failure = error instanceof CliError ? error : new CliError('bug', `this is a bug: ${error}`)
      const item = work.emptyItem?.(domain) ?? { name: domain }
      await reporter.done(domain, { label: labelOf(failure), item, error: failure })
      if (failure.exit === Exit.notConfigured || failure.exit === Exit.notSignedIn) throw failure
    }
  }
  const inTurn = createTurns(jobs)
  const stopAll = (error: unknown) => stop.abort(error)
  await Promise.all(subjects.map((subject) => inTurn((leave) => one(subject, leave).catch(stopAll))))

  const ends = await reporter.end()
  const { signal } = io.interrupts
  if (signal.aborted) {
    const { message } = signal.reason as CliError
    const hint = 'nothing is lost; to continue, run the same command again'
    throw (signal.reason as CliError).with({ message: `${message} after ${ends.length} domains`, hint })
  }
  stop.signal.throwIfAborted()
  throwUnlessAllDone(ends, problems, work.hasEvents)
}

/** The domains of a run, each once, with what its lines in the list say. @throws CliError exit 2, as `readList` */
async function subjectsOf(
  domains: readonly string[],
  { from, all }: ManyOptions,
  takesIds: boolean,
  io: Io,
): Promise<DomainList> {
  if (all && domains.length > 0) throw usageError("a domain and --all can't be used together")
  const typed = all ? await openDomains(io) : domains.map((domain) => readDomain(domain, takesIds))
  if (all && typed.length === 0) {
    const isOpen = ({ claim }: LedgerEntry) => judge(claim, io.clock.now()).isOpen
    const others = await otherLedgers(async (other) => (await everyClaim(other)).filter(isOpen), io)
    const elsewhere = others.length === 0 ? '' : `; there are some ${others.join(', ')}`
    await io.warn(`no open claim is known ${ledgerInForce(io)}${elsewhere}`)
  }
  const listed = from === undefined ? { subjects: [], problems: 0 } : await readList(from, takesIds, io)
  const every = [...typed.map((domain): Subject => ({ domain })), ...listed.subjects]
  const byDomain = new Map(every.map((subject) => [subject.domain, subject]))
  return { subjects: [...byDomain.values()], problems: listed.problems }
}

/**
 * What the work on all domains shares.
 *
 * @param signal aborts on an interrupt, or if one domain fails for a reason that all have
 * @returns also `requireTime`, which throws once nothing may begin any more
 */
function shareAmong(jobs: number, work: ManyWork, signal: AbortSignal, io: Io) {
  const { clock, interrupts, settings } = io
  const deadline = work.deadline ?? deadlineOf({}, clock)
  const requireTime = () => {
    signal.throwIfAborted()
    if (deadline.leftMs() <= 0) throw new CliError('timed_out', 'the time was up before its turn')
  }
  const http = paceRequests(untilEnd(io, deadline), clock, { concurrent: jobs })
  const context = { ...io, http, interrupts: { ...interrupts, signal } }
  const own = createIo(context, { ...settings, quiet: true, silent: true, interactive: false })
  const turns = createTurns(jobs)
  const inTurn: Turns = (check) =>
    turns(async (leave) => {
      requireTime()
      return check(leave)
    })
  let client: ServiceClient | undefined
  return {
    requireTime,
    io: own,
    warn: io.warn,
    client() {
      client ??= connect(own)
      return client
    },
    readClaim: createClaimReader(own, { renews: work.renews !== false, warn: io.warn }),
    dns: { inTurn, share: createShare(clock) },
  }
}

/** @throws CliError with the most severe exit code, unless all are done */
function throwUnlessAllDone(ends: readonly End[], problems: number, hasEvents = false): void {
  const exits: readonly ExitCode[] = ends.flatMap(({ error }) => error?.exit ?? [])
  const exit = EXIT_ORDER.find((code) => exits.includes(code) || (code === Exit.usage && problems > 0))
  if (exit === undefined) return
  const parts = [
    ...(exits.length > 0 ? [`domains not done: ${exits.length} of ${ends.length}`] : []),
    ...(problems > 0 ? [`lines that can't be used: ${problems}`] : []),
  ]
  const hint = "to continue, run the same command again: completed domains aren't repeated"
  throw new CliError('domains_failed', parts.join('; '), { exit, ...(hasEvents && { hint }) })
}

/** What is counted if there is nothing but an error: the status of a claim that has ended is in its code. */
function labelOf({ code, exit }: CliError): string {
  if (code === 'timed_out') return 'not started'
  if (exit === Exit.negativeEnd) return code.replace(/^claim_/, '')
  return exit === Exit.refused ? 'refused' : 'error'
}

/**
 * Requests that are over two seconds after the end at the latest, except for a renewal of the session and the creation of a claim
 * (the only request with a body), which keep their own limit; those that change something get their answer although the run stops,
 * since otherwise nobody would know of it.
 */
function untilEnd({ http, interrupts }: Io, deadline: Deadline): HttpTransport {
  return {
    close: () => http.close(),
    async send(request) {
      if (request.beforeSend !== undefined) return http.send(request)
      const leftMs = deadline.leftMs() + MIN_STEP_MS
      if (leftMs <= 0) throw new TransportError('timeout', 'no', 'the time was up')
      const { method, body, signal } = request
      const timeoutMs = body === undefined ? Math.min(request.timeoutMs, leftMs) : request.timeoutMs
      const until = method === 'GET' || !signal ? {} : { signal: interrupts.signal }
      return http.send({ ...request, timeoutMs, ...until })
    },
  }
}

/** What is counted of a domain that has ended. */
interface End extends Pick<Done, 'label' | 'error'> {
  readonly domain: string
  readonly cause: ReturnType<typeof causeOf>
}

/**
 * The mistake in DNS if that is why a domain isn't done, or a warning beside a record that is ready; else the error. Other domains
 * may have it as well; the first one's own words are the example.
 */
function causeOf({ error, report }: Done) {
  const isDns = error === undefined || error.exit === Exit.notYet
  const finding = isDns ? report?.findings[0] : undefined
  const cause = finding ?? error
  if (cause === undefined) return undefined
  const host = report && finding ? dnsHostOf(report.nameservers.map((server) => server.host)) : null
  const code = cause instanceof CliError ? cause.shownCode : cause.code
  const title = host === null ? code : `${code} at ${host}`
  return { title, message: cause.message, fix: 'fix' in cause ? cause.fix : cause.hint }
}

/** Prints each domain as it ends, and at the end counts and causes for people. @param problems lines that can't be used */
function createReporter(work: ManyWork, problems: number, io: Io) {
  const { format, quiet } = io.settings
  const isText = format === 'zone' || format === 'value'
  const rows = io.list(work.columns)
  const inTurn = createTurns(1)
  const ends: End[] = []
  const told = new Set<string>()
  const say: OneRun['say'] = (...lines) => inTurn(() => writeLines(lines, io))
  return {
    say,
    async tell({ name, findings: [first] }: CheckReport) {
      if (quiet || first === undefined || told.has(first.code)) return
      told.add(first.code)
      await say(`${name}: ${first.message}`, `  fix: ${first.fix}`)
    },
    async done(domain: string, done: Done): Promise<void> {
      const { label, error } = done
      ends.push({ domain, label, error, cause: causeOf(done) })
      const at = new Date(io.clock.now()).toISOString()
      const isEvent = format === 'jsonl' && work.hasEvents
      const item = isEvent ? { event: 'done', at, name: domain, claim: done.item } : done.item
      if (io.stderr.isTTY) await io.progress.update(`domains done: ${ends.length}`)
      await inTurn(async () => {
        if (isText) return done.text === undefined ? undefined : io.stdout.write(done.text)
        return rows.page({ items: [{ ...item, ...error?.toJSON() }] })
      })
    },
    async end() {
      await io.progress.end()
      if (!isText) await rows.end(false)
      if (!quiet && ends.length + problems > 0) await io.say(...summaryOf(ends, problems))
      return ends
    },
  }
}

/** Domains that the summary names of each cause. */
const NAMED = 3

/** Counts, and causes: the most frequent first. */
function summaryOf(ends: readonly End[], problems: number): string[] {
  const counts = [...groupBy(ends, ({ label }) => label)].map(([label, { length }]) => `${label} ${length}`)
  const lines = [`domains: ${ends.length}${counts.length > 0 ? ` (${counts.toSorted().join(', ')})` : ''}`]
  if (problems > 0) lines.push(`lines that can't be used: ${problems}`)
  const causes = groupBy(ends, ({ cause }) => cause?.title)
  causes.delete(undefined)
  for (const [title, group] of [...causes].sort(([, one], [, other]) => other.length - one.length)) {
    const names = group.slice(0, NAMED).map(({ domain }) => domain)
    const more = group.length > NAMED ? ', …' : ''
    const { message, fix } = group[0]?.cause ?? {}
    lines.push(`  ${title}: ${group.length} (${names.join(', ')}${more})`, `    ${message}`)
    if (fix) lines.push(`    fix: ${fix}`)
  }
  return lines
}

function groupBy<T, K>(all: readonly T[], keyOf: (one: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const one of all) {
    const group = groups.get(keyOf(one)) ?? []
    group.push(one)
    groups.set(keyOf(one), group)
  }
  return groups
}

/** Does the work on each of several claims, each to its end. */
export function runClaims(
  domains: readonly string[],
  flags: ManyOptions,
  options: ClaimOptions,
  begin: (work: ClaimWork) => ClaimEvents,
  io: Io,
): Promise<void> {
  const perform = async ({ domain }: Subject, run: OneRun) => {
    const known = await findClaim(domain, run.io)
    const work = { known, client: run.client(), io: run.io, options: { ...options, ...run.dns } }
    return completedBefore(known.entry, io.clock.now()) ?? drainOne(begin(work), run)
  }
  const shown = { columns: MANY_CLAIM_COLUMNS, takesIds: true, hasEvents: true }
  return runForAll(domains, flags, { ...shown, deadline: options.deadline, perform }, io)
}

/** One of several claims that the ledger has as completed isn't asked about again: its row says when that was seen. */
export function completedBefore(newest: LedgerEntry | undefined, now: number): Done | undefined {
  if (newest === undefined || judge(newest.claim, now).phase !== 'completed') return undefined
  return { label: 'completed', item: { ...newest.claim, seen_at: newest.seen_at } }
}

/** Runs the events of the work on one of several claims; the next one begins as soon as this one waits. */
export async function drainOne(
  events: ClaimEvents,
  { letNext, warn, tell }: OneRun,
  onEvent?: (event: ClaimEvent) => Promise<void>,
): Promise<Done> {
  const { claim, error, report } = await consume(events, async (seen) => {
    if (seen.event === 'waiting' || seen.event === 'status') letNext()
    if (seen.error?.code === 'claim_replaced' || seen.error?.code === 'options_ignored')
      await warn(`${seen.claim.name}: ${seen.text}`)
    if (seen.report !== undefined) await tell(seen.report)
    await onEvent?.(seen)
  })
  return { label: claim.status ?? 'no status', item: claim, error, report }
}
