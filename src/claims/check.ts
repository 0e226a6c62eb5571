import { type CheckReport, exitErrorOf, reportJson } from '../dns/report.ts'
import { formatDnsAddress } from '../dns/wire/address.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import { commandLine } from '../shell-quote.ts'
import type { Column } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { stdoutPalette } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { formatDuration } from '../terminal/time.ts'
import { judge } from './lifecycle.ts'
import {
  type Asker,
  createAsker,
  domainToClaim,
  findClaimOrDomain,
  type LoadedClaim,
  staleText,
} from './load.ts'
import { readValue, recordOf } from './record.ts'
import {
  type CheckOptions,
  type CheckTarget,
  checkOnce,
  notInTime,
  TIMED_OUT,
  watchDns,
  withClaim,
} from './verdict.ts'

export interface CheckFlags extends CheckOptions {
  readonly wait: boolean
  readonly timeoutMs: number
  /** On `clock.monotonic()`. */
  readonly since: number
  /** Says that it mostly waits from now on. */
  readonly waits?: () => void
}

/** What came of a check. */
export interface Checked {
  readonly report: CheckReport
  /** How the command ends. */
  readonly error?: CliError | undefined
  /** Why the claim may have ended since. */
  readonly warning?: string | undefined
  readonly note?: string | undefined
  /** Whether no value was expected. */
  readonly isLook?: boolean
}

/** Asks about the claims of checks: once each, never renewing a session. */
export const createCheckAsker = (io: Io): Asker => createAsker(io, { renews: false })

/** Checks for a value that a person gave, at this name or at that of the record of the claim that is named. */
export async function checkGiven(
  argument: string,
  given: string,
  flags: CheckFlags,
  mayBeClaim: boolean,
  io: Io,
): Promise<Checked> {
  const value = readValue(given, '--value')
  const found = mayBeClaim ? await findClaimOrDomain(argument, io) : { domain: domainToClaim(argument) }
  const entry = 'domain' in found ? undefined : found.entry
  const name = 'domain' in found ? found.domain : entry && recordOf(entry.claim, found.name).name
  if (name === undefined)
    throw usageError(`"${argument}" is neither a domain nor a claim known on this machine`)
  const warning =
    value === given ? undefined : 'ignoring spaces, quotation marks, or invisible characters around --value'
  const { report, error } = await checkTarget({ name, value }, undefined, flags, io)
  return { report, error, warning }
}

/** Checks the record of a claim; of a domain without a known one, shows what is in DNS. */
export async function checkClaim(
  argument: string | undefined,
  flags: CheckFlags,
  ask: Asker,
  io: Io,
): Promise<Checked> {
  const found = await findClaimOrDomain(argument, io)
  if ('domain' in found) {
    if (flags.wait)
      throw usageError(
        `--wait needs a value to wait for, and no claim of ${found.domain} is known`,
        'add --value',
      )
    const seen = await checkTarget({ name: found.domain, value: null }, undefined, flags, io)
    return { ...seen, isLook: true }
  }
  const answer = ask(found)
  // DNS meanwhile: the service may take its time. Who waits has the time.
  let loaded: LoadedClaim =
    found.entry && !flags.wait ? { ...found, claim: found.entry.claim } : await answer()
  const target = targetOf(loaded, io)
  const again = async () => {
    const now = await ask(found)()
    if (now.stale === undefined) loaded = now
    return now.stale === undefined ? now.claim : undefined
  }
  let checked = await checkTarget(target, { claim: loaded.claim, ask: again }, flags, io)
  if (!flags.wait) {
    loaded = await answer()
    const now = targetOf(loaded, io)
    if (now.name !== target.name || now.value !== target.value)
      checked = await checkTarget(now, undefined, flags, io)
  }
  const { report, error, note } = withClaim(checked.report, loaded.claim, io.clock.now())
  const warning = loaded.stale === undefined ? undefined : staleText(loaded, io)
  return { report, error: error ?? (report.ready ? undefined : checked.error), warning, note }
}

/** The record of a claim; one that is over may have none. */
function targetOf({ claim, domainId, name: asked }: LoadedClaim, io: Io): CheckTarget {
  const { needsRecord, phase } = judge(claim, io.clock.now())
  if (needsRecord || phase === 'blocked') return recordTarget(claim, asked)
  return claim.record?.value
    ? recordTarget(claim, asked)
    : { name: asked ?? claim.name ?? domainId, value: null }
}

function recordTarget(...claim: Parameters<typeof recordOf>): CheckTarget {
  const { name, value } = recordOf(...claim)
  return { name, value }
}

/** Checks once, or with `wait` until the record is ready, the claim no longer needs it, or the time is up. */
async function checkTarget(
  target: CheckTarget,
  of: { readonly claim: DomainClaim; readonly ask: () => Promise<DomainClaim | undefined> } | undefined,
  flags: CheckFlags,
  io: Io,
): Promise<{ readonly report: CheckReport; readonly error: CliError | undefined }> {
  const waits = flags.wait && target.value !== null && (!of || judge(of.claim, io.clock.now()).needsRecord)
  if (waits || io.stderr.isTTY) await io.progress.update(`querying the name servers of ${target.name}`)
  try {
    if (!waits) {
      const report = await checkOnce(target, flags, io)
      return { report, error: exitErrorOf(report, isShown(io)) }
    }
    const left = Math.max(0, flags.since + flags.timeoutMs - io.clock.monotonic())
    let report: CheckReport | undefined
    for await (const step of watchDns(target, of?.claim, left, of?.ask, flags, io)) {
      ;({ report } = step)
      if (step.nextInMs === null) break
      flags.waits?.()
      const why = report.findings[0]?.message ?? 'not ready yet'
      const [next, rest] = [step.nextInMs, step.leftMs].map((ms) => formatDuration(ms / 1000))
      await io.progress.update(`${why}; next check in ${next}, ${rest} left`)
    }
    if (report === undefined) throw new CliError(TIMED_OUT, Exit.notYet, 'the time was up before its turn')
    const failure = exitErrorOf(report)
    const isUp = failure?.exit === Exit.notYet || failure?.exit === Exit.unavailable
    return { report, error: isUp ? notInTime(report, flags.timeoutMs) : failure }
  } finally {
    await io.progress.end()
  }
}

/** Whether people have just read the findings, so that the error needn't repeat them. */
const isShown = ({ settings }: Io): boolean => ['table', 'markdown', 'html'].includes(settings.format)

/** What there is of a domain that wasn't checked. */
export const emptyReport = (name: string): object => ({
  name,
  expected: null,
  verdict: 'unknown',
  ready: false,
  retry_after_seconds: null,
  claim: null,
  zone: null,
  nameservers: [],
  resolvers: [],
  findings: [],
})

/** Writes the report of one domain in the chosen format. */
export async function writeReport(
  { report, note }: Checked,
  columns: readonly Column[],
  io: Io,
): Promise<void> {
  const { stdout, settings, clock, program } = io
  const { format, resolvers } = settings
  if (format === 'markdown' || format === 'html') {
    const asked = resolvers ?? (await io.dns.systemResolvers())
    const made = { at: clock.now(), version: program.version, resolvers: asked.map(formatDnsAddress) }
    if (format === 'markdown') {
      const { renderMarkdown } = await import('../dns/markdown.ts')
      return stdout.write(renderMarkdown(report, made))
    }
    const { renderHtml } = await import('../dns/html.ts')
    return stdout.write(renderHtml(report, { ...made, command: commandLine(settings.argv, io.platform) }))
  }
  if (format !== 'table' || settings.fields !== undefined) return io.write(reportJson(report), columns)
  // What is in DNS no longer matters.
  if (note !== undefined) return stdout.write(`${sanitizeLine(note)}\n`)
  const palette = await stdoutPalette(io)
  const { renderReport } = await import('../dns/terminal.ts')
  await stdout.write(renderReport(report, { palette, width: stdout.columns ?? Number.POSITIVE_INFINITY }))
}
