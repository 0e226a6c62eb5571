import { currentClaim } from '../../claims/current-claim.ts'
import { followClaim, showWatch } from '../../claims/follow.ts'
import { recordClaim } from '../../claims/ledger.ts'
import { endedError, nameOf, stateOf } from '../../claims/lifecycle.ts'
import { doneClaim } from '../../claims/many/done-claim.ts'
import type { OneRun } from '../../claims/many/run-many.ts'
import type { Done } from '../../claims/many/tally.ts'
import { checkRequest, withDnsHint } from '../../claims/precheck.ts'
import { recordOf } from '../../claims/record.ts'
import { resolveClaim } from '../../claims/resolve.ts'
import { requestVerification, verifyOnce, WATCH_EVENTS, type WatchOptions } from '../../claims/watch.ts'
import { writeClaim } from '../../claims/write-claim.ts'
import type { Context } from '../../context.ts'
import { checkDns } from '../../dns/check.ts'
import { exitErrorOf } from '../../dns/diagnosis/exit-status.ts'
import type { CheckReport } from '../../dns/diagnosis/report.ts'
import { dnsEffects } from '../../dns/wire/effects.ts'
import { CliError, Exit } from '../../errors.ts'
import { deadlineOf, drain } from '../../service/polling.ts'
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
in the record stops it before the service is asked (exit 8). --wait follows the claim until it ends.`,
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
    stopped: 'a mistake in the record has to be fixed first, so the service was not asked: exit code 8',
    verification: 'the service was asked to verify',
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
  async run({ arguments: domains, options }, context, settings) {
    const watch = watchOptions(options, context)
    if (isMany(domains, options)) {
      const { wait: waits = false } = options
      const perform = (subject: { readonly domain: string }, run: OneRun) =>
        verifyOne(subject.domain, options, watch, run)
      const notDone = waits ? WATCH_MANY.notDone : "weren't sent for verification"
      const work = { ...WATCH_MANY, command: 'claims verify', notDone, waits, perform }
      return runForAll(domains, options, work, context, settings)
    }
    const [argument] = domains
    const resolved = await resolveClaim(argument, context, settings)
    const client = connect(context, settings)
    const deadline = deadlineOf(watch, context.clock)
    const current = await currentClaim(resolved, client, context, settings, { deadline })
    const { domainId, claim: before } = current
    await recordClaim(before, context, settings)
    if (isOver(before)) return printEnd(before)
    const isVerified = before.status === 'verified'
    const { mistake } =
      options.check === false || isVerified ? {} : await precheck(before, options, context, settings)
    if (mistake !== undefined) {
      if (isProgramFormat(settings)) await print('stopped', mistake.message, before)
      throw mistake
    }

    if (!options.wait) {
      const claim = await verifyOnce(current, client)
      await recordClaim(claim, context, settings)
      if (isOver(claim)) return printEnd(claim)
      await print('verification', REQUESTED, claim)
      const state = stateOf(claim)
      const block = endedError(claim, state)
      const next =
        state.phase === 'blocked'
          ? `${block.message}; ${block.hint}`
          : `verification is running; follow it with: mailclaim claims watch ${argument ?? domainId}`
      return hint(next, context, settings)
    }
    const asking = requestVerification(current, watch, client, context)
    const claim = await showWatch(asking, context, settings, 'mailclaim claims verify ID --wait')
    if (settings.format === 'jsonl') await print('verification', REQUESTED, claim)
    await note(`The service was asked to verify ${nameOf(claim)}.`, context, settings)
    await followClaim({ domainId }, { ...watch, verifying: claim }, client, context, settings)

    async function printEnd(claim: DomainClaim): Promise<void> {
      const state = stateOf(claim)
      await print('done', state.description, claim)
      if (state.phase === 'ended') throw endedError(claim, state)
      return note(`${nameOf(claim)} is already completed: there is nothing to verify.`, context, settings)
    }

    async function print(event: string, message: string, claim: DomainClaim): Promise<void> {
      if (settings.format !== 'jsonl') return writeClaim(claim, context, settings)
      const at = new Date(context.clock.now()).toISOString()
      await writeJsonLine(context, settings, { event, at, message, claim })
    }
  },
})

function isOver(claim: DomainClaim): boolean {
  return ['completed', 'ended'].includes(stateOf(claim).phase)
}

/** Does the same for one of several claims. */
async function verifyOne(domain: string, options: Flags, watch: WatchOptions, run: OneRun): Promise<Done> {
  const { context, settings, client } = run
  const resolved = await resolveClaim(domain, context, settings)
  const known = resolved.entry?.claim
  if (known !== undefined && stateOf(known).phase === 'completed')
    return doneClaim(known, undefined, 'done', context, settings)
  const deadline = deadlineOf(watch, context.clock)
  const current = await currentClaim(resolved, client(), context, settings, { deadline })
  const { domainId, claim: before } = current
  await recordClaim(before, context, settings)
  if (isOver(before)) return doneEnd(before)
  let unseen: CheckReport | undefined
  let latest = before
  if (before.status !== 'verified') {
    const { mistake, report } =
      options.check === false ? {} : await precheck(before, options, context, settings)
    unseen = report?.ready ? undefined : report
    if (mistake !== undefined)
      return {
        ...doneClaim(before, mistake, 'stopped', context, settings, unseen),
        label: 'record not ready',
      }
    const { claim, error } = options.wait
      ? await drain(requestVerification(current, watch, client(), context), async () => {})
      : { claim: await verifyOnce(current, client()), error: undefined }
    await recordClaim(claim, context, settings)
    if (error !== undefined) {
      const shown = withDnsHint(error, unseen && exitErrorOf(unseen))
      return doneClaim(claim, shown, 'done', context, settings, unseen)
    }
    if (!options.wait) {
      if (isOver(claim)) return doneEnd(claim)
      const done = doneClaim(claim, undefined, 'verification', context, settings, unseen)
      return stateOf(claim).phase === 'blocked' ? done : { ...done, label: REQUESTED }
    }
    latest = claim
  } else if (!options.wait) return doneClaim(before, undefined, 'verification', context, settings)
  return followOne({ domainId, entry: undefined }, { ...watch, verifying: latest }, run, unseen)

  function doneEnd(claim: DomainClaim): Done {
    const state = stateOf(claim)
    const error = state.phase === 'ended' ? endedError(claim, state) : undefined
    return doneClaim(claim, error, 'done', context, settings)
  }
}

/**
 * Checks DNS and reports the result, except for a mistake that has to be fixed first.
 *
 * @returns the report; for such a mistake, unless `force`, with the error `record_not_visible`, exit 8
 */
async function precheck(
  claim: DomainClaim,
  { force, publicResolvers }: Flags,
  context: Context,
  settings: Settings,
): Promise<{ readonly report: CheckReport; readonly mistake?: CliError }> {
  const report = await checkDns(checkRequest(recordOf(claim), settings, publicResolvers), dnsEffects(context))
  const failure = exitErrorOf(report)
  if (failure === undefined) {
    await note(`DNS: the record is visible at ${report.name}.`, context, settings)
    return { report }
  }
  const again = `to see the evidence: mailclaim claims check ${nameOf(claim)}; to ask the service anyway, add --force`
  if (report.verdict === 'fix' && !force) {
    const hint = [failure.hint, again].filter((part) => part).join('\n')
    return { report, mistake: new CliError(failure.code, failure.exit, failure.message, { hint }) }
  }
  // Caches, slow servers and a network that hides DNS from here may not affect the service, which checks for itself.
  await warn(`DNS: ${failure.message}`, context, settings)
  return { report }
}
