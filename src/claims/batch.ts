import { type HttpTransport, HttpTransportError } from '../context.ts'
import { formatDnsProviders } from '../dns/hosts.ts'
import type { CheckReport } from '../dns/report.ts'
import { type CheckCache, createCheckCache } from '../dns/shared-cache.ts'
import { createChildController } from '../dns/wire/ask.ts'
import { CliError, Exit, type ExitCode, InterruptedError, usageError, WORST_EXIT_FIRST } from '../errors.ts'
import { type ConcurrencyLimiter, createConcurrencyLimiter } from '../limiter.ts'
import type { ServiceClient } from '../service/client.ts'
import { showEvents } from '../service/follow.ts'
import { createThrottlingTransport } from '../service/throttle.ts'
import { openClient } from '../session/client.ts'
import type { Column } from '../terminal/columns.ts'
import { createIo, type Io } from '../terminal/io.ts'
import { writeStderrLines } from '../terminal/notices.ts'
import { createCommandDeadline, type Deadline, MIN_REMAINING_MS } from '../timeout.ts'
import { BATCH_CLAIM_COLUMNS } from './columns.ts'
import { type BatchOptions, DEFAULT_JOBS } from './definition.ts'
import {
  collectOpenClaimDomains,
  describeLedger,
  type LedgerEntry,
  locateInOtherLedgers,
  readAllClaims,
} from './ledger.ts'
import { getClaimState } from './lifecycle.ts'
import { type BatchDomain, parseDomainOrId, readUsableDomains } from './list.ts'
import { type ClaimReader, createClaimReader, findClaim } from './load.ts'
import type { ClaimEvent, ClaimEvents, ClaimTask, ClaimWorkflowOptions } from './workflow.ts'

/** Result of one domain in a run over several: its row, and what the summary tells about it. */
export interface BatchItemResult {
  /** Label under which the summary counts the domain, such as `created` or a claim's status. */
  readonly label: string
  /** The domain's data, for its row or line of JSON. */
  readonly item: object
  readonly error?: CliError | undefined
  /** The domain's last DNS check, whose first finding may explain the error. */
  readonly report?: CheckReport | undefined
  /** Text that `--format zone` or `--format value` prints for the domain, line break included. */
  readonly text?: string
}

/**
 * Context of the work on one domain: its `Io`, client, DNS options and output functions. All but `releaseSlot` are shared by all
 * domains of the run.
 */
export interface BatchDomainContext {
  /**
   * `Io` without notices, warnings, hints, progress and prompts. Its requests to the service respect the rate limit and the run's
   * deadline (`limitToDeadline`).
   */
  readonly io: Io
  /** Returns the client that all domains share. @throws CliError exit 3 without a usable base URL */
  readonly client: () => ServiceClient
  /**
   * Options for the DNS checks of the run: `inTurn` runs at most `--jobs` checks or `--publish` commands at once and begins none
   * after the deadline; `cache` is shared by the checks.
   */
  readonly dns: { readonly inTurn: ConcurrencyLimiter; readonly cache: CheckCache }
  readonly readClaim: ClaimReader
  /** Lets the work on the next domain begin; to be called when this domain starts to wait. */
  readonly releaseSlot: () => void
  readonly warn: Io['warn']
  /** Writes lines to stderr during the run, even with `--quiet`. */
  readonly say: (...lines: readonly string[]) => Promise<void>
  /**
   * Prints the report's first finding and its fix, unless this run has printed a finding with the same code. Prints nothing with
   * `--quiet`, nor in JSON formats.
   */
  readonly reportWait: (report: CheckReport) => Promise<void>
}

/** Definition of a command's run over several domains: the work on each domain, and how `runBatchCommand` prints the results. */
export interface BatchDefinition {
  readonly columns: readonly Column[]
  /** Whether the user can give a claim's `domain_id` instead of a domain name. */
  readonly takesIds: boolean
  /**
   * Whether the command outputs events: each line of `--format jsonl` is then a `done` event. The final error then has the hint
   * that a repeated run skips completed domains.
   */
  readonly outputsEvents?: boolean
  /** Whether `readClaim` may renew an expired access token. Default: true. */
  readonly renews?: boolean
  /** Creates the row of a domain whose work threw an error. Default: a row with only the field `name`. */
  readonly createErrorRow?: (domain: string) => object
  /** Time limit of the complete run, for all domains together. Default: none. */
  readonly deadline?: Deadline
  /**
   * Does the command's work for one domain. A thrown error becomes the domain's row; one with exit 3 (not configured) or 4 (not
   * signed in) also stops the run. An interrupt stops the run without a row.
   */
  readonly perform: (input: BatchDomain, run: BatchDomainContext) => Promise<BatchItemResult>
}

/**
 * Does a command's work for several domains, at most `--jobs` at once (domains that only wait aren't counted), and prints each
 * result, then a summary on stderr. An error of one domain stops the others only if they would fail with it too: no usable
 * credential or base URL.
 *
 * @throws CliError `domains_failed` with the most severe exit code, if a domain failed or a line of the list is unusable; the
 *   error or interrupt that stopped the run; as `readInputs`
 */
export async function runBatchCommand(
  domains: readonly string[],
  options: BatchOptions,
  work: BatchDefinition,
  io: Io,
): Promise<void> {
  const { jobs = DEFAULT_JOBS } = options
  const { inputs, badLines } = await readInputs(domains, options, work.takesIds, io)
  const reporter = createReporter(work, badLines, io)
  const stop = createChildController(io.interrupts.signal)
  const { requireTime, ...shared } = createShared(jobs, work, stop.signal, io)

  const processInput = async (input: BatchDomain, releaseSlot: () => void) => {
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
 * Collects the domains from the command line and the `--from` list, or with `--all` from the ledger, without duplicates.
 *
 * @param takesIds whether the command line and the list may have a claim's `domain_id` in place of a domain
 * @returns `inputs`: the domains; `badLines`: the number of unusable lines in the list
 * @throws CliError exit 2 for an invalid domain, for a domain together with `--all`, or as `readUsableDomains`
 */
async function readInputs(args: readonly string[], { from, all }: BatchOptions, takesIds: boolean, io: Io) {
  if (all && args.length > 0) throw usageError("a domain and --all can't be used together")
  const typed = all ? await collectOpenClaimDomains(io) : args.map((arg) => parseDomainOrId(arg, takesIds))
  if (all && typed.length === 0) {
    const isOpen = ({ claim }: LedgerEntry) => getClaimState(claim, io.clock.now()).isOpen
    const others = await locateInOtherLedgers(async (one) => (await readAllClaims(one)).filter(isOpen), io)
    const elsewhere = others.length === 0 ? '' : `; there are some ${others.join(', ')}`
    await io.warn(`no open claim is known ${describeLedger(io)}${elsewhere}`)
  }
  const list = from === undefined ? { inputs: [], badLines: 0 } : await readUsableDomains(from, takesIds, io)
  const every = [...typed.map((domain): BatchDomain => ({ domain })), ...list.inputs]
  const byDomain = new Map(every.map((input) => [input.domain, input]))
  return { inputs: [...byDomain.values()], badLines: list.badLines }
}

/**
 * Creates the members of `BatchDomainContext` that are the same for all domains, except `say` and `reportWait` (see
 * `createReporter`).
 *
 * @param signal aborts on an interrupt, or when an error of one domain stops all
 * @returns these members, and `requireTime`, which throws after the deadline or the abort, so that no work on a domain begins
 */
function createShared(jobs: number, work: BatchDefinition, signal: AbortSignal, io: Io) {
  const { clock, interrupts, settings } = io
  const deadline = work.deadline ?? createCommandDeadline({}, clock)
  const requireTime = () => {
    signal.throwIfAborted()
    if (deadline.remainingMs() <= 0) throw new CliError('timed_out', 'the time was up before its turn')
  }
  const http = createThrottlingTransport(limitToDeadline(io, deadline), clock, { concurrent: jobs })
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
    readClaim: createClaimReader(sharedIo, { renews: work.renews !== false, warn: io.warn }),
    dns: { inTurn, cache: createCheckCache(clock) },
  }
}

/**
 * Returns the label under which the summary counts a domain whose work threw an error. `timed_out` means that the deadline passed
 * while the domain waited for its turn.
 */
function labelOf({ code, exit }: CliError): string {
  if (code === 'timed_out') return 'not started'
  if (exit === Exit.negativeEnd) return code.replace(/^claim_/, '')
  return exit === Exit.refused ? 'refused' : 'error'
}

/**
 * Returns a transport that sends no request later than two seconds after the deadline, and by then ends requests without a body:
 * GETs, and the POST for verification. A token refresh (`beforeSend`) is exempt. Another domain's error cancels only GETs,
 * because the result of a change would be lost.
 */
function limitToDeadline({ http, interrupts }: Io, deadline: Deadline): HttpTransport {
  return {
    close: () => http.close(),
    async send(request) {
      if (request.beforeSend !== undefined) return http.send(request)
      const remainingMs = deadline.remainingMs() + MIN_REMAINING_MS
      if (remainingMs <= 0) throw new HttpTransportError('timeout', 'no', 'the time was up')
      const { method, body, signal } = request
      const timeoutMs = body === undefined ? Math.min(request.timeoutMs, remainingMs) : request.timeoutMs
      const until = method === 'GET' || !signal ? {} : { signal: interrupts.signal }
      return http.send({ ...request, timeoutMs, ...until })
    },
  }
}

/** A DNS finding or an error that one or more domains of the run have, for the summary of the run. */
interface Cause {
  /**
   * Code of the error or finding; for a finding whose DNS provider is known, "CODE at PROVIDER". Domains with the same title are
   * counted together.
   */
  readonly title: string
  /** Message of the finding or error for the first domain that has it, as an example. */
  readonly message: string
  readonly fix: string | undefined
  readonly domains: string[]
}

/**
 * Returns the cause that the summary names for a domain: an error with an exit other than 8, else the first finding of the DNS
 * check, else the error; undefined without any of these.
 */
function causeOf({ error, report }: BatchItemResult): Cause | undefined {
  const isDns = error === undefined || error.exit === Exit.notYet
  const finding = isDns ? report?.findings[0] : undefined
  if (report !== undefined && finding !== undefined) {
    const host = formatDnsProviders(report.nameservers.map((server) => server.host))
    return { ...finding, title: host === null ? finding.code : `${finding.code} at ${host}`, domains: [] }
  }
  return error && { title: error.shownCode, message: error.message, fix: error.hint, domains: [] }
}

/**
 * Creates the output of a run over several domains: a row for each, then on stderr the summary: counts and causes of problems.
 *
 * @param badLines number of unusable lines in the `--from` list
 */
function createReporter(work: BatchDefinition, badLines: number, io: Io) {
  const { format, quiet } = io.settings
  const isText = format === 'zone' || format === 'value'
  const rows = io.list(work.columns)
  const inTurn = createConcurrencyLimiter(1)
  const labels = new Map<string, number>()
  const causes = new Map<string, Cause>()
  const exits: ExitCode[] = []
  let finished = 0
  const printedCodes = new Set<string>()
  const say: BatchDomainContext['say'] = (...lines) => inTurn(() => writeStderrLines(lines, io))
  return {
    say,
    async reportWait({ name, findings: [first] }: CheckReport) {
      if (quiet || first === undefined || printedCodes.has(first.code)) return
      printedCodes.add(first.code)
      await say(`${name}: ${first.message}`, `  fix: ${first.fix}`)
    },
    async addResult(domain: string, result: BatchItemResult): Promise<void> {
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
      const isEvent = format === 'jsonl' && work.outputsEvents
      const item = isEvent ? { event: 'done', at, name: domain, claim: result.item } : result.item
      if (io.stderr.isTTY) await io.progress.update(`domains done: ${finished}`)
      await inTurn(() => {
        if (isText) return io.stdout.write(result.text ?? '')
        return rows.page({ items: [{ ...item, ...error?.toJSON() }] })
      })
    },
    /**
     * Ends the output of the domains' rows, and prints the summary, but not with `--quiet`, nor in JSON formats.
     *
     * @returns the number of domains with a result, and an error with the most severe exit code if a domain failed or a line of
     *   the list is unusable
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
      const details = { exit, ...(work.outputsEvents && { hint }) }
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
 * Does the work of `claims verify` or `claims watch` for several claims, except those that were completed when last seen.
 *
 * @param begin returns the events of the work on one claim
 */
export function runVerifyOrWatchBatch(
  domains: readonly string[],
  flags: BatchOptions,
  options: ClaimWorkflowOptions,
  begin: (task: ClaimTask) => ClaimEvents,
  io: Io,
): Promise<void> {
  const perform = async ({ domain }: BatchDomain, run: BatchDomainContext) => {
    const target = await findClaim(domain, run.io)
    const task = { target, client: run.client(), io: run.io, options: { ...options, ...run.dns } }
    return resultIfCompleted(target.entry, io.clock.now()) ?? runClaimInBatch(begin(task), run)
  }
  const shown = { columns: BATCH_CLAIM_COLUMNS, takesIds: true, outputsEvents: true }
  return runBatchCommand(domains, flags, { ...shown, deadline: options.deadline, perform }, io)
}

/**
 * Returns the result for a ledger entry whose claim was completed when last seen, else undefined: a completed claim needs no
 * request.
 */
export function resultIfCompleted(entry: LedgerEntry | undefined, now: number): BatchItemResult | undefined {
  if (entry === undefined || getClaimState(entry.claim, now).phase !== 'completed') return undefined
  return { label: 'completed', item: { ...entry.claim, seen_at: entry.seen_at } }
}

/**
 * Runs the work on one of several claims to its end, and returns the result for its row. Prints DNS findings, and the warnings that
 * an open claim may be replaced or that options of the request have no effect. Calls `releaseSlot` when the claim starts to wait.
 */
export async function runClaimInBatch(
  events: ClaimEvents,
  { releaseSlot, warn, reportWait }: BatchDomainContext,
  onEvent?: (event: ClaimEvent) => Promise<void>,
): Promise<BatchItemResult> {
  const { claim, error, report } = await showEvents(events, async (seen) => {
    if (seen.event === 'waiting' || seen.event === 'status') releaseSlot()
    if (seen.error?.code === 'claim_replaced' || seen.error?.code === 'options_ignored')
      await warn(`${seen.claim.name}: ${seen.text}`)
    if (seen.report !== undefined) await reportWait(seen.report)
    await onEvent?.(seen)
  })
  return { label: claim.status ?? 'no status', item: claim, error, report }
}
