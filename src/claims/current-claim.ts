import type { Context } from '../context.ts'
import { CliError, Exit, InterruptedError } from '../errors.ts'
import { getClaim, looksLikeId } from '../service/claims.ts'
import type { RequestOptions, ServiceClient } from '../service/client.ts'
import type { DomainClaim } from '../service/types.ts'
import { connect } from '../session/connect.ts'
import type { Settings } from '../settings/settings.ts'
import { type LedgerContext, type LedgerSettings, readLedger, recordClaim, recordGone } from './ledger.ts'
import { goneError, nameOf, stateOf } from './lifecycle.ts'
import type { ResolvedClaim } from './resolve.ts'

/** A claim as the service has it now. */
export interface CurrentClaim {
  readonly domainId: string
  readonly claim: DomainClaim
}

/**
 * Gets a claim from the service. A claim that was found by its name may have ended since it was last seen; the name then
 * stands for the domain's next open one, and the ledger learns that the claim has ended or is gone.
 *
 * @throws CliError as `getClaim` does; exit 5 with what this machine knows about the id
 */
export async function currentClaim(
  { domainId, others = [], notFoundHint, claim }: Omit<ResolvedClaim, 'entry'> & Partial<CurrentClaim>,
  client: ServiceClient,
  context: LedgerContext,
  settings: LedgerSettings,
  options?: RequestOptions,
): Promise<CurrentClaim> {
  let current: CurrentClaim | undefined
  let notFound: CliError | undefined
  const ended: CurrentClaim[] = []
  for (const id of [domainId, ...others]) {
    try {
      current = { domainId: id, claim: await getClaim(client, id, { ...options, notFoundHint }) }
    } catch (error) {
      if (!(error instanceof CliError) || error.exit !== Exit.notFound) throw error
      const known = id === domainId ? claim : undefined
      const why = notFoundHint === undefined ? await explained(error, id, known, context, settings) : error
      notFound ??= why
      continue
    }
    if (stateOf(current.claim).phase !== 'ended') break
    ended.push(current)
    current = undefined
  }
  current ??= ended[0]
  if (current === undefined) throw notFound
  for (const past of ended) if (past !== current) await recordClaim(past.claim, context, settings)
  return current
}

/** The error for an id that the service doesn't know, if this machine does; the ledger then says that the claim is gone. */
async function explained(
  error: CliError,
  id: string,
  seen: DomainClaim | undefined,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<CliError> {
  // It's only for a hint, so what can't be read is left out.
  const read = (about?: string) => readLedger(context, settings, async () => {}, about).catch(() => [])
  const entry = (await read(id)).find(({ claim }) => claim.domain_id === id)
  if (entry !== undefined) await recordGone(entry, context, settings)
  const known = entry?.claim ?? seen
  if (known !== undefined) return goneError(known, error)
  const mistaken = looksLikeId(id) ? (await read()).find(({ claim }) => claim.id === id) : undefined
  if (mistaken === undefined) return error
  const { code, exit, message, status } = error
  const hint = `that is the id of the claim; give its name ${nameOf(mistaken.claim)} or its placeholder domain id ${mistaken.claim.domain_id}`
  return new CliError(code, exit, message, { status, hint, cause: error })
}

/** A claim as it was when the service was last asked about it. */
export interface SeenClaim extends CurrentClaim, Pick<ResolvedClaim, 'others'> {
  /** Milliseconds since 1970. */
  readonly seenAt: number
  /** Why the service couldn't be asked now, although that was some time ago; exit 5 if it no longer has the claim. */
  readonly unasked?: CliError
}

/** What is known of a claim is used for this long without asking the service. */
const FRESH_MS = 60_000
/** A service that doesn't answer mustn't hold up the command, which can go on with what is known. */
const ASK_WITHIN_MS = 5000
/** After a failure, a run over many claims asks about the next ones only when this is over. */
const PAUSE_MS = 30_000

/**
 * Asks the service about a claim that was seen more than `maxAgeMs` ago (by default a minute), and saves the answer: somebody
 * else may have replaced or canceled it since. If the service can't be asked, because nobody is signed in or there is no
 * answer, the claim stays as it was, with `unasked`. About a claim that was gone, it always asks.
 */
export type ClaimReader = (seen: SeenClaim, maxAgeMs?: number) => Promise<SeenClaim>

/**
 * Creates the reader of a command that uses what this machine knows of one or many claims. It asks no person anything, and
 * prints nothing.
 *
 * @param shared the client of a command that has one; by default, the reader connects by itself
 */
export function createClaimReader(
  context: Context,
  settings: Settings,
  shared?: () => ServiceClient,
): ClaimReader {
  const { clock } = context
  const quiet = { ...settings, quiet: true, interactive: false }
  let client: ServiceClient | undefined
  let failure: { readonly error: CliError; readonly until: number } | undefined
  return async (seen, maxAgeMs = FRESH_MS) => {
    const gone = seen.unasked?.exit === Exit.notFound ? seen.unasked : undefined
    const isFresh = gone === undefined && Math.abs(clock.now() - seen.seenAt) <= maxAgeMs
    if (isFresh || stateOf(seen.claim).phase === 'completed') return seen
    if (failure !== undefined && clock.monotonic() < failure.until)
      return { ...seen, unasked: gone ?? failure.error }
    try {
      client ??= shared?.() ?? connect(context, quiet)
      const options = { maxAttempts: 1, timeoutMs: ASK_WITHIN_MS }
      const current = await currentClaim(seen, client, context, quiet, options)
      await recordClaim(current.claim, context, quiet)
      const others = seen.others?.filter((id) => id !== current.domainId)
      return { ...current, ...(others && { others }), seenAt: clock.now() }
    } catch (error) {
      if (!(error instanceof CliError) || error instanceof InterruptedError) throw error
      const isAboutThisClaim = error.exit === Exit.notFound || error.exit === Exit.refused
      if (!isAboutThisClaim) failure = { error, until: clock.monotonic() + PAUSE_MS }
      return { ...seen, unasked: gone ?? error }
    }
  }
}

export interface HastyReader {
  readonly read: ClaimReader
  /** Waits for what has begun. */
  settled(): Promise<unknown>
}

/**
 * As `createClaimReader`, but the reader doesn't wait for longer than five seconds, even while a session is being renewed or a
 * rate limit lasts. What it has begun goes on until `settled`: cutting off a renewal could lose the session. A late answer is
 * what the next reading of that claim gets, so that never more than one request about a claim is waiting.
 */
export function createHastyReader(
  context: Context,
  settings: Settings,
  shared?: () => ServiceClient,
): HastyReader {
  const read = createClaimReader(context, settings, shared)
  /** By the claim's id, until somebody has the answer. */
  const begun = new Map<string, Promise<SeenClaim>>()
  return {
    async read(seen, maxAgeMs) {
      const { domainId } = seen
      const answer = begun.get(domainId) ?? read(seen, maxAgeMs)
      begun.set(domainId, answer)
      let [cancel, isLate] = [() => {}, false]
      const late = new Promise<SeenClaim>((resolve) => {
        const error = new CliError(
          'timeout',
          Exit.unavailable,
          `no answer in ${ASK_WITHIN_MS / 1000} seconds`,
        )
        cancel = context.clock.alarm(ASK_WITHIN_MS, () => {
          isLate = true
          resolve({ ...seen, unasked: error })
        })
      })
      const taken = answer.finally(() => isLate || begun.delete(domainId))
      return Promise.race([taken, late]).finally(cancel)
    },
    settled: () => Promise.allSettled(begun.values()),
  }
}
