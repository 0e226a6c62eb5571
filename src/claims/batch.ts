import { type HttpTransport, HttpTransportError } from '../context.ts'
import { formatDnsProviders } from '../dns/hosts.ts'
import type { CheckReport } from '../dns/report.ts'
import { type CheckCache, createCheckCache } from '../dns/shared-cache.ts'
import { createChildController } from '../dns/wire/ask.ts'
import { CliError, Exit, type ExitCode, InterruptedError, usageError, WORST_EXIT_FIRST } from '../errors.ts'
import { type ConcurrencyLimiter, createConcurrencyLimiter } from '../limiter.ts'
import type { ServiceClient } from '../service/client.ts'
import { showEvents } from '../service/follow.ts'
import { createPacingTransport } from '../service/pace.ts'
import { openClient } from '../session/client.ts'
import type { Column } from '../terminal/columns.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { writeStderrLines } from '../terminal/notices.ts'
import { type Deadline, MIN_STEP_TIMEOUT_MS, startCommandDeadline } from '../timeout.ts'
import { BATCH_CLAIM_COLUMNS } from './columns.ts'
import { type BatchOptions, DEFAULT_JOBS } from './definition.ts'
import {
  collectOpenClaimDomains,
  describeLedger,
  findOtherLedgers,
  type LedgerEntry,
  readAllClaims,
} from './ledger.ts'
import { getClaimState } from './lifecycle.ts'
import { type DomainInput, parseDomainOrId, readDomainList } from './list.ts'
import { type ClaimReader, createFallbackClaimReader, findClaim } from './load.ts'
import type { ClaimEvent, ClaimEvents, ClaimOptions, ClaimTask } from './workflow.ts'

/** Result of one domain in a run over several: its row, and what the summary tells about it. */
export interface DomainResult {
  /** Word with which the summary counts the domain, such as `created` or a claim's status. */
  readonly label: string
  /** The domain's row or line of JSON. */
  readonly item: object
  readonly error?: CliError | undefined
  /** The domain's last DNS check, whose first finding may explain the error. */
  readonly report?: CheckReport | undefined
  /** Output instead of a row with `--format zone` and `--format value`, line break included. */
  readonly text?: string
}

/** Effects and limits for the work on one domain; all but `releaseSlot` are shared by all domains of the run. */
export interface BatchContext {
  /**
   * `Io` without notices, warnings, progress and prompts. Its requests are paced by the service's rate limit, and end as
   * `limitToDeadline` says.
   */
  readonly io: Io
  /** Returns the client that all domains share. @throws CliError exit 3 without a usable base URL */
  readonly client: () => ServiceClient
  /** Options for DNS checks: at most `--jobs` at once, none begun after the deadline, with a shared cache. */
  readonly dns: { readonly inTurn: ConcurrencyLimiter; readonly cache: CheckCache }
  readonly readClaim: ClaimReader
  /** Lets the work on the next domain begin; to be called when this domain only waits and polls from now on. */
  readonly releaseSlot: () => void
  readonly warn: Io['warn']
  /** Writes lines to stderr at once, even with `--quiet`, instead of in the summary. */
  readonly say: (...lines: readonly string[]) => Promise<void>
  /**
   * Prints the report's first finding and its fix as an example, once per finding code and run; not with `--quiet`, nor in JSON
   * formats.
   */
  readonly reportWait: (report: CheckReport) => Promise<void>
}

/** The work of a command on each of several domains, and how `processDomains` prints the results. */
export interface BatchCommand {
  readonly columns: readonly Column[]
  /** Whether the user can give a claim's `domain_id` instead of a domain name. */
  readonly takesIds: boolean
  /**
   * Whether each line of `--format jsonl` is a `done` event, and the final error's hint says that a repeated run skips completed
   * domains.
   */
  readonly hasEvents?: boolean
  /** Whether `readClaim` may renew an expired access token. Default: true. */
  readonly renews?: boolean
  /** Creates the row of a domain whose work threw an error. Default: a row with only the name. */
  readonly createErrorRow?: (domain: string) => object
  /** Time limit of the complete run, for all domains together. Default: none. */
  readonly deadline?: Deadline
  /**
   * Does the command's work for one domain. An error becomes the domain's row; an interrupt, or an error with exit 3 or 4, stops
   * the run.
   */
  readonly perform: (input: DomainInput, run: BatchContext) => Promise<DomainResult>
}

/**
 * Does the same work for several domains, at most `--jobs` at once besides domains that only wait, and prints a row or a line of
 * JSON as each ends, then a summary on stderr. The domains share one client, the service's rate limit and a cache of the DNS
 * checks. An error of one domain doesn't stop the others, unless all would fail with it: no usable credential, or no usable base
 * URL.
 *
 * @throws CliError `domains_failed` with the most severe exit code, if a domain failed or a line of the list can't be used; exit
 *   2, as `readInputs`; the error that stops all domains; `InterruptedError`
 */
export async function processDomains(
  domains: readonly string[],
  options: BatchOptions,
  work: BatchCommand,
  io: Io,
): Promise<void> {
  const { jobs = DEFAULT_JOBS } = options
  const { inputs, badLines } = await readInputs(domains, options, work.takesIds, io)
  const reporter = createReporter(work, badLines, io)
  const stop = createChildController(io.interrupts.signal)
  const { requireTime, ...shared } = createShared(jobs, work, stop.signal, io)

  const processInput = async (input: DomainInput, releaseSlot: () => void) => {
    const { domain } = input
    try {
      requireTime()
      await reporter.addResult(domain, await work.perform(input, { ...shared, ...reporter, releaseSlot }))
    } catch (error) {
      if (error instanceof InterruptedError || shared.io.interrupts.signal.aborted) throw error
      const failure = error instanceof CliError ? error : new CliError('bug', `this is a bug: ${error}`)
      const item = work.createErrorRow?.(domain) ?? { name: domain }
      await reporter.addResult(domain, { label: labelOf(failure), item, error: failure })
      if (failure.exit === Exit.notConfigured || failure.exit === Exit.notSignedIn) throw failure
    }
  }
  const inTurn = createConcurrencyLimiter(jobs)
  const stopAll = (error: unknown) => stop.abort(error)
  await Promise.all(inputs.map((input) => inTurn((leave) => processInput(input, leave).catch(stopAll))))

  const { finished, error } = await reporter.end()
  const { aborted, reason }: { aborted: boolean; reason: CliError } = io.interrupts.signal
  const hint = 'nothing is lost; to continue, run the same command again'
  if (aborted) throw reason.with({ message: `${reason.message} after ${finished} domains`, hint })
  stop.signal.throwIfAborted()
  if (error !== undefined) throw error
}

/**
 * Collects the domains from the command line and the list, or with `--all` from the ledger, without duplicates, and counts the
 * list's unusable lines.
 *
 * @throws CliError exit 2 for an invalid domain, for a domain together with `--all`, or as `readDomainList`
 */
async function readInputs(args: readonly string[], { from, all }: BatchOptions, takesIds: boolean, io: Io) {
  if (all && args.length > 0) throw usageError("a domain and --all can't be used together")
  const typed = all ? await collectOpenClaimDomains(io) : args.map((arg) => parseDomainOrId(arg, takesIds))
  if (all && typed.length === 0) {
    const isOpen = ({ claim }: LedgerEntry) => getClaimState(claim, io.clock.now()).isOpen
    const others = await findOtherLedgers(async (one) => (await readAllClaims(one)).filter(isOpen), io)
    const elsewhere = others.length === 0 ? '' : `; there are some ${others.join(', ')}`
    await io.warn(`no open claim is known ${describeLedger(io)}${elsewhere}`)
  }
  const listed = from === undefined ? { inputs: [], badLines: 0 } : await readDomainList(from, takesIds, io)
  const every = [...typed.map((domain): DomainInput => ({ domain })), ...listed.inputs]
  const byDomain = new Map(every.map((input) => [input.domain, input]))
  return { inputs: [...byDomain.values()], badLines: listed.badLines }
}

/**
 * Creates the part of `BatchContext` that all domains share, except for `say` and `reportWait`.
 *
 * @param signal aborts on an interrupt, or when an error of one domain stops all
 * @returns also `requireTime`, which throws after the deadline or the abort; called before work begins
 */
function createShared(jobs: number, work: BatchCommand, signal: AbortSignal, io: Io) {
  const { clock, interrupts, settings } = io
  const deadline = work.deadline ?? startCommandDeadline({}, clock)
  const requireTime = () => {
    signal.throwIfAborted()
    if (deadline.remainingMs() <= 0) throw new CliError('timed_out', 'the time was up before its turn')
  }
  const http = createPacingTransport(limitToDeadline(io, deadline), clock, { concurrent: jobs })
  const context = { ...io, http, interrupts: { ...interrupts, signal } }
  const sharedIo = createIo(context, { ...settings, quiet: true, silent: true, interactive: false })
  const turns = createConcurrencyLimiter(jobs)
  const inTurn: ConcurrencyLimiter = (check) =>
    turns(async (leave) => {
      requireTime()
      return check(leave)
    })
  let client: ServiceClient | undefined
  return {
    requireTime,
    io: sharedIo,
    warn: io.warn,
    client() {
      client ??= openClient(sharedIo)
      return client
    },
    readClaim: createFallbackClaimReader(sharedIo, { renews: work.renews !== false, warn: io.warn }),
    dns: { inTurn, cache: createCheckCache(clock) },
  }
}

/**
 * Returns the heading under which the summary counts a failed domain: `not started` if the time was up; for a claim that is blocked
 * or has ended, the error's code without `claim_`; else `refused` or `error`.
 */
function labelOf({ code, exit }: CliError): string {
  if (code === 'timed_out') return 'not started'
  if (exit === Exit.negativeEnd) return code.replace(/^claim_/, '')
  return exit === Exit.refused ? 'refused' : 'error'
}

/**
 * Returns a transport whose requests end two seconds after the deadline at the latest. Only the refresh of an access token and
 * requests with a body (creation of a claim, etcd, DNS over HTTPS) keep their own timeout. When one domain's error stops the run,
 * GET requests are canceled, but a POST only by an interrupt, since the result of a change would be lost.
 */
function limitToDeadline({ http, interrupts }: Io, deadline: Deadline): HttpTransport {
  return {
    close: () => http.close(),
    async send(request) {
      if (request.beforeSend !== undefined) return http.send(request)
      const remainingMs = deadline.remainingMs() + MIN_STEP_TIMEOUT_MS
      if (remainingMs <= 0) throw new HttpTransportError('timeout', 'no', 'the time was up')
      const { method, body, signal } = request
      const timeoutMs = body === undefined ? Math.min(request.timeoutMs, remainingMs) : request.timeoutMs
      const until = method === 'GET' || !signal ? {} : { signal: interrupts.signal }
      return http.send({ ...request, timeoutMs, ...until })
    },
  }
}

/** A DNS finding or an error of one or more domains, for the summary. */
interface Cause {
  /**
   * Code of the error or of the finding; after a finding's code, the DNS hosting company if known ("CODE at COMPANY"). Domains with
   * the same title are counted together.
   */
  readonly title: string
  /** Message and fix of the first domain, as an example. */
  readonly message: string
  readonly fix: string | undefined
  readonly domains: string[]
}

/**
 * Returns what the summary says about a domain: for an error with exit 8, the first DNS finding if there is one, else the error.
 * Without an error, returns the first finding, such as a warning about a record that is ready; undefined without error and finding.
 */
function causeOf({ error, report }: DomainResult): Cause | undefined {
  const isDns = error === undefined || error.exit === Exit.notYet
  const finding = isDns ? report?.findings[0] : undefined
  if (report !== undefined && finding !== undefined) {
    const host = formatDnsProviders(report.nameservers.map((server) => server.host))
    return { ...finding, title: host === null ? finding.code : `${finding.code} at ${host}`, domains: [] }
  }
  return error && { title: error.shownCode, message: error.message, fix: error.hint, domains: [] }
}

/**
 * Creates the output of a run over several domains: a row for each, then the summary with counts and causes on stderr.
 *
 * @param badLines number of unusable lines in the list
 */
function createReporter(work: BatchCommand, badLines: number, io: Io) {
  const { format, quiet } = io.settings
  const isText = format === 'zone' || format === 'value'
  const rows = io.list(work.columns)
  const inTurn = createConcurrencyLimiter(1)
  const labels = new Map<string, number>()
  const causes = new Map<string, Cause>()
  const exits: ExitCode[] = []
  let finished = 0
  const printedCodes = new Set<string>()
  const say: BatchContext['say'] = (...lines) => inTurn(() => writeStderrLines(lines, io))
  return {
    say,
    async reportWait({ name, findings: [first] }: CheckReport) {
      if (quiet || first === undefined || printedCodes.has(first.code)) return
      printedCodes.add(first.code)
      await say(`${name}: ${first.message}`, `  fix: ${first.fix}`)
    },
    async addResult(domain: string, result: DomainResult): Promise<void> {
      const { label, error } = result
      finished += 1
      labels.set(label, (labels.get(label) ?? 0) + 1)
      if (error !== undefined) exits.push(error.exit)
      const cause = causeOf(result)
      if (cause !== undefined) {
        if (!causes.has(cause.title)) causes.set(cause.title, cause)
        causes.get(cause.title)?.domains.push(domain)
      }
      const at = new Date(io.clock.now()).toISOString()
      const isEvent = format === 'jsonl' && work.hasEvents
      const item = isEvent ? { event: 'done', at, name: domain, claim: result.item } : result.item
      if (io.stderr.isTTY) await io.progress.update(`domains done: ${finished}`)
      await inTurn(() => {
        if (isText) return io.stdout.write(result.text ?? '')
        return rows.page({ items: [{ ...item, ...error?.toJSON() }] })
      })
    },
    /**
     * Prints the summary. @returns the number of domains with a result, and an error with the most severe exit code if a domain
     * failed or a line of the list can't be used
     */
    async end() {
      await io.progress.end()
      if (!isText) await rows.end(false)
      const bad = badLines > 0 ? [`lines that can't be used: ${badLines}`] : []
      const counts = [...labels].map(([label, count]) => `${label} ${count}`).sort()
      const all = `domains: ${finished}${counts.length > 0 ? ` (${counts.join(', ')})` : ''}`
      const lines = [...causes.values()].sort(byDomainCount).flatMap(formatCause)
      if (!quiet && finished + badLines > 0) await io.say(all, ...bad, ...lines)
      const exit = WORST_EXIT_FIRST.find((one) => exits.includes(one) || (one === Exit.usage && badLines > 0))
      if (exit === undefined) return { finished }
      const failed = exits.length > 0 ? [`domains not done: ${exits.length} of ${finished}`] : []
      const hint = "to continue, run the same command again: completed domains aren't repeated"
      const details = { exit, ...(work.hasEvents && { hint }) }
      return { finished, error: new CliError('domains_failed', [...failed, ...bad].join('; '), details) }
    },
  }
}

const byDomainCount = (one: Cause, other: Cause): number => other.domains.length - one.domains.length

/** Maximum number of domains that the summary names for each cause. */
const MAX_NAMED_DOMAINS = 3

function formatCause({ title, message, fix, domains }: Cause): string[] {
  const names = domains.slice(0, MAX_NAMED_DOMAINS).join(', ')
  const more = domains.length > MAX_NAMED_DOMAINS ? ', …' : ''
  const lines = [`  ${title}: ${domains.length} (${names}${more})`, `    ${message}`]
  return fix ? [...lines, `    fix: ${fix}`] : lines
}

/**
 * Works on several claims, for `claims verify` and `claims watch`. Sends no request for a claim that was completed when last seen.
 *
 * @param begin starts the work on one claim
 */
export function processClaims(
  domains: readonly string[],
  flags: BatchOptions,
  options: ClaimOptions,
  begin: (task: ClaimTask) => ClaimEvents,
  io: Io,
): Promise<void> {
  const perform = async ({ domain }: DomainInput, run: BatchContext) => {
    const target = await findClaim(domain, run.io)
    const task = { target, client: run.client(), io: run.io, options: { ...options, ...run.dns } }
    return resultIfCompleted(target.entry, io.clock.now()) ?? drainClaimEvents(begin(task), run)
  }
  const shown = { columns: BATCH_CLAIM_COLUMNS, takesIds: true, hasEvents: true }
  return processDomains(domains, flags, { ...shown, deadline: options.deadline, perform }, io)
}

/**
 * Returns the result for a ledger entry whose claim was completed when last seen, else undefined. Such a claim needs no more work,
 * so the row shows the ledger's copy and the time of the last response (`seen_at`).
 */
export function resultIfCompleted(entry: LedgerEntry | undefined, now: number): DomainResult | undefined {
  if (entry === undefined || getClaimState(entry.claim, now).phase !== 'completed') return undefined
  return { label: 'completed', item: { ...entry.claim, seen_at: entry.seen_at } }
}

/**
 * Runs the work on one of several claims to its end. Prints DNS findings (`reportWait`), and warnings about a replaced claim or
 * ignored options. Lets the work on the next domain begin (`releaseSlot`) at the first event `waiting` or `status`.
 */
export async function drainClaimEvents(
  events: ClaimEvents,
  { releaseSlot, warn, reportWait }: BatchContext,
  onEvent?: (event: ClaimEvent) => Promise<void>,
): Promise<DomainResult> {
  const { claim, error, report } = await showEvents(events, async (seen) => {
    if (seen.event === 'waiting' || seen.event === 'status') releaseSlot()
    if (seen.error?.code === 'claim_replaced' || seen.error?.code === 'options_ignored')
      await warn(`${seen.claim.name}: ${seen.text}`)
    if (seen.report !== undefined) await reportWait(seen.report)
    await onEvent?.(seen)
  })
  return { label: claim.status ?? 'no status', item: claim, error, report }
}
