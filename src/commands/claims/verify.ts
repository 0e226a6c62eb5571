import { currentClaim } from '../../claims/current-claim.ts'
import { followClaim, showWatch } from '../../claims/follow.ts'
import { recordClaim } from '../../claims/ledger.ts'
import { endedError, nameOf, stateOf } from '../../claims/lifecycle.ts'
import { doneClaim } from '../../claims/many/done-claim.ts'
import type { OneRun } from '../../claims/many/run-many.ts'
import { ASKING, CHECKING_DNS, type Done, VERIFYING } from '../../claims/many/tally.ts'
import { checkRequest, withDnsHint } from '../../claims/precheck.ts'
import { recordOf } from '../../claims/record.ts'
import { type ResolvedClaim, resolveClaim } from '../../claims/resolve.ts'
import {
  requestVerification,
  type Verifying,
  verifyOnce,
  WATCH_EVENTS,
  type WatchOptions,
} from '../../claims/watch.ts'
import { writeClaim } from '../../claims/write-claim.ts'
import type { Context } from '../../context.ts'
import { checkDns } from '../../dns/check.ts'
import type { CheckReport } from '../../dns/report.ts'
import { exitErrorOf } from '../../dns/report.ts'
import { dnsEffects } from '../../dns/wire/ask.ts'
import { capitalize } from '../../dns/words.ts'
import { CliError, Exit } from '../../errors.ts'
import type { ServiceClient } from '../../service/client.ts'
import { drain, timeFor } from '../../service/polling.ts'
import type { DomainClaim } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { isProgramFormat, type Settings } from '../../settings/settings.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { writeJsonLine } from '../../terminal/output.ts'
import {
  CLAIM_ARGUMENTS,
  defineCommand,
  type OptionDefinition,
  PUBLIC_RESOLVERS,
  SERVICE_EXITS,
} from '../definition.ts'
import { isMany, MANY_OPTIONS, runForAll } from './many.ts'
import { followOne, WATCH_MANY, WATCH_OPTIONS, WATCH_OUTPUT, type WatchFlags, watchOptions } from './watch.ts'

interface Flags extends WatchFlags {
  readonly check?: boolean
  readonly force?: true
  readonly publicResolvers?: true
  readonly wait?: true
}

const REQUESTED = 'verification requested'

export const command = defineCommand<Flags>({
  description: `Checks DNS first, then asks the service to verify the claim; the service checks DNS itself, some time later. A mistake
in the record stops it before the service is asked (exit 8, or 9 if the claim is blocked). --wait follows the claim until it ends.`,
  arguments: [CLAIM_ARGUMENTS],
  options: [
    {
      flags: '--no-check',
      description: "don't check DNS first",
      conflicts: ['--force', PUBLIC_RESOLVERS.flags],
    },
    { flags: '--force', description: 'check DNS, but continue whatever the result' },
    { flags: '--wait', description: 'follow the claim until it ends, as claims watch does' },
    ...WATCH_OPTIONS.map((option): OptionDefinition => ({ ...option, needs: '--wait' })),
    PUBLIC_RESOLVERS,
    ...MANY_OPTIONS,
  ],
  events: {
    stopped:
      'a mistake in the record has to be fixed first, so the service was not asked: exit code 8, or 9 if the claim is blocked',
    verification: 'the service was asked to verify, or is already past that',
    ...WATCH_EVENTS,
  },
  examples: {
    'mailclaim claims verify example.com --wait': 'check, verify, and wait until it ends',
    'mailclaim claims verify example.com --no-check': 'only ask the service',
    'mailclaim claims verify --all --wait': 'all open claims, until each has ended',
  },
  output: WATCH_OUTPUT,
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  changes: true,
  async run({ arguments: domains, options }, io) {
    const [context, settings] = [io, io.settings]
    const watch = watchOptions(options, context)
    if (isMany(domains, options)) {
      const { wait: waits = false } = options
      const perform = (subject: { readonly domain: string }, run: OneRun) =>
        verifyOne(subject.domain, options, watch, run)
      const notDone = waits ? WATCH_MANY.notDone : "weren't accepted for verification"
      const work = { ...WATCH_MANY, command: 'claims verify', notDone, waits, perform }
      return runForAll(domains, options, work, context, settings)
    }
    const [argument] = domains
    const resolved = await resolveClaim(argument, context, settings)
    const client = connect(context, settings)
    const ask: Ask = (asking) => showWatch(asking, context, settings, 'mailclaim claims verify ID --wait')
    const begun = await begin(resolved, options, watch, client, { ask }, context, settings)
    const { domainId, claim, event, message, error, refusal } = begun
    const isFollowed = event === 'verification' && options.wait
    const isShown = isFollowed
      ? settings.format === 'jsonl'
      : event !== 'stopped' || isProgramFormat(settings)
    const at = new Date(context.clock.now()).toISOString()
    if (isShown && settings.format === 'jsonl')
      await writeJsonLine(context, settings, { event, at, message, claim })
    else if (isShown) await writeClaim(claim, context, settings)
    if (error !== undefined) throw error
    const name = nameOf(claim)
    if (event === 'done')
      return note(`${name} is already completed: there is nothing to verify.`, context, settings)
    const isAccepted = claim.status === 'verified'
    const accepted = `the service has accepted the record of ${name}, and the transfer is in progress`
    if (isFollowed) {
      const now = isAccepted ? capitalize(accepted) : `The service was asked to verify ${name}`
      if (refusal === undefined) await note(`${now}.`, context, settings)
      return followClaim({ domainId }, { ...watch, verifying: claim, refusal }, client, context, settings)
    }
    const now = isAccepted ? accepted : 'verification is running'
    return hint(`${now}; follow it with: mailclaim claims watch ${argument ?? domainId}`, context, settings)
  },
})

/** Does the same for one of several claims. */
async function verifyOne(domain: string, options: Flags, watch: WatchOptions, run: OneRun): Promise<Done> {
  const { context, settings, client, progress } = run
  const resolved = await resolveClaim(domain, context, settings)
  const known = resolved.entry?.claim
  if (known !== undefined && stateOf(known).phase === 'completed')
    return doneClaim(known, undefined, 'done', context, settings)
  progress({ step: ASKING })
  const ask: Ask = async (asking) => {
    progress({ step: VERIFYING })
    const asked = await drain(asking, async () => {})
    await recordClaim(asked.claim, context, settings)
    return asked
  }
  const onCheck = () => progress({ step: CHECKING_DNS })
  const begun = await begin(resolved, options, watch, client(), { ask, onCheck }, context, settings)
  const { domainId, claim, event, message, error, unseen, refusal } = begun
  if (event === 'verification' && options.wait)
    return followOne({ domainId, entry: undefined }, { ...watch, verifying: claim, refusal }, run, unseen)
  const done = doneClaim(claim, error, event, context, settings, unseen)
  if (event === 'stopped' && error?.exit === Exit.notYet) return { ...done, label: 'record not ready' }
  return message === REQUESTED && error === undefined ? { ...done, label: REQUESTED } : done
}

/** Asks the service to verify, shows what fails meanwhile, and saves the claim. */
type Ask = (asking: ReturnType<typeof requestVerification>) => Promise<Verifying>

/** How far a claim is once it was checked, and the service was asked to verify it if that was needed. */
interface Begun {
  readonly domainId: string
  readonly claim: DomainClaim
  readonly event: 'done' | 'stopped' | 'verification'
  readonly message: string
  /** How the command ends now. */
  readonly error?: CliError | undefined
  /** The check that didn't show the record. */
  readonly unseen?: CheckReport | undefined
  readonly refusal?: CliError | undefined
}

/**
 * Checks the claim and its record, and asks the service to verify.
 *
 * @param ask is used with `--wait`; without it, the service is asked once
 * @param onCheck is called before DNS is checked
 */
async function begin(
  resolved: ResolvedClaim,
  options: Flags,
  watch: WatchOptions,
  client: ServiceClient,
  { ask, onCheck }: { readonly ask: Ask; readonly onCheck?: () => void },
  context: Context,
  settings: Settings,
): Promise<Begun> {
  const timeoutMs = timeFor(watch, context.clock)
  const current = await currentClaim(resolved, client, context, settings, { timeoutMs })
  const { domainId, claim: before } = current
  await recordClaim(before, context, settings)
  const known = { domainId, claim: before, ...eventOf(before) }
  if (before.status === 'verified' || ['completed', 'ended'].includes(stateOf(before).phase)) return known
  if (options.check !== false) onCheck?.()
  const { mistake, unseen } =
    options.check === false ? {} : await precheck(before, options, context, settings)
  if (mistake !== undefined) {
    const error = stoppedBy(mistake, before, watch)
    return { ...known, event: 'stopped', message: error.message, error, unseen }
  }
  const failure = unseen && exitErrorOf(unseen)
  if (options.wait) {
    const { claim, error, refusal } = await ask(requestVerification(current, watch, client, context))
    const message = refusal?.message ?? REQUESTED
    const asked = { domainId, claim, event: 'verification', message, unseen, refusal } as const
    return error ? { ...asked, event: 'done', error: withDnsHint(error, failure) } : asked
  }
  const claim = await verifyOnce(current, client)
  await recordClaim(claim, context, settings)
  const { error, ...ended } = eventOf(claim)
  return { domainId, claim, ...ended, error: error && withDnsHint(error, failure), unseen }
}

/** Why the service isn't asked: a block first, unless it is to be waited for; the mistake has to be fixed in any case. */
function stoppedBy(mistake: CliError, claim: DomainClaim, { throughBlocked }: WatchOptions): CliError {
  const state = stateOf(claim)
  if (state.phase !== 'blocked') return mistake
  const block = endedError(claim, state)
  if (!throughBlocked) return withDnsHint(block, mistake)
  const { code, exit, message, hint } = mistake
  const then = `once that is fixed, --through-blocked waits for the block to lift: ${block.message}`
  return new CliError(code, exit, message, { hint: `${hint}\n${then}` })
}

/** What there is to say of a claim that the service was asked to verify, or that doesn't need it. */
function eventOf(claim: DomainClaim): Pick<Begun, 'event' | 'message' | 'error'> {
  const state = stateOf(claim)
  const { phase, description: message } = state
  if (phase === 'completed') return { event: 'done', message }
  if (phase === 'ended' || phase === 'blocked')
    return { event: 'done', message, error: endedError(claim, state) }
  return { event: 'verification', message: claim.status === 'verified' ? message : REQUESTED }
}

/**
 * Checks DNS and reports the result, except for a mistake that has to be fixed first.
 *
 * @returns the report unless it shows the record; for such a mistake, unless `force`, with the error `record_not_visible`, exit 8
 */
async function precheck(
  claim: DomainClaim,
  { force, publicResolvers }: Flags,
  context: Context,
  settings: Settings,
): Promise<{ readonly unseen?: CheckReport; readonly mistake?: CliError }> {
  const report = await checkDns(checkRequest(recordOf(claim), settings, publicResolvers), dnsEffects(context))
  const failure = exitErrorOf(report)
  if (failure === undefined) {
    await note(`DNS: the record is visible at ${report.name}.`, context, settings)
    return {}
  }
  const again = `to see the evidence: mailclaim claims check ${nameOf(claim)}; to ask the service anyway, add --force`
  if (report.verdict === 'fix' && !force) {
    const hint = [failure.hint, again].filter((part) => part).join('\n')
    return { unseen: report, mistake: new CliError(failure.code, failure.exit, failure.message, { hint }) }
  }
  // Caches, slow servers and a network that hides DNS from here may not affect the service, which checks for itself.
  await warn(`DNS: ${failure.message}`, context, settings)
  return { unseen: report }
}
