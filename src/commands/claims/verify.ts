import { currentClaim } from '../../claims/current-claim.ts'
import { followClaim } from '../../claims/follow.ts'
import { recordClaim } from '../../claims/ledger.ts'
import { endedError, nameOf, stateOf } from '../../claims/lifecycle.ts'
import { checkRequest } from '../../claims/precheck.ts'
import { recordOf } from '../../claims/record.ts'
import { resolveClaim } from '../../claims/resolve.ts'
import { WATCH_EVENTS } from '../../claims/watch.ts'
import { writeClaim } from '../../claims/write-claim.ts'
import type { Context } from '../../context.ts'
import { checkDns } from '../../dns/check.ts'
import { exitErrorOf } from '../../dns/diagnosis/exit-status.ts'
import { dnsEffects } from '../../dns/wire/effects.ts'
import { CliError, Exit } from '../../errors.ts'
import { verifyClaim } from '../../service/claims.ts'
import type { DomainClaim } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { isProgramFormat, type Settings } from '../../settings/settings.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { writeJsonLine } from '../../terminal/output.ts'
import {
  CLAIM_ARGUMENT,
  defineCommand,
  type OptionDefinition,
  PUBLIC_RESOLVERS,
  SERVICE_EXITS,
} from '../definition.ts'
import { WATCH_OPTIONS, WATCH_OUTPUT, type WatchFlags } from './watch.ts'

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
  arguments: [CLAIM_ARGUMENT],
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
  ],
  events: {
    stopped: 'a mistake in the record has to be fixed first, so the service was not asked: exit code 8',
    verification: 'the service was asked to verify',
    ...WATCH_EVENTS,
  },
  examples: {
    'mailclaim claims verify example.com --wait': 'check, verify, and wait until it ends',
    'mailclaim claims verify example.com --no-check': 'only ask the service',
  },
  output: WATCH_OUTPUT,
  exits: [...SERVICE_EXITS, Exit.notYet, Exit.negativeEnd],
  account: 'signed_in',
  async run({ arguments: [argument], options }, context, settings) {
    const resolved = await resolveClaim(argument, context, settings)
    const client = connect(context, settings)
    const { domainId, claim: before } = await currentClaim(resolved, client, context, settings)
    await recordClaim(before, context, settings)
    const state = stateOf(before)
    if (state.phase === 'completed' || state.phase === 'ended') {
      await print('done', state.description, before)
      if (state.phase === 'ended') throw endedError(before, state)
      return note(`${nameOf(before)} is already completed: there is nothing to verify.`, context, settings)
    }
    const mistake = options.check === false ? undefined : await precheck(before, options, context, settings)
    if (mistake !== undefined) {
      if (isProgramFormat(settings)) await print('stopped', mistake.message, before)
      throw mistake
    }

    const claim = await verifyClaim(client, domainId)
    await recordClaim(claim, context, settings)
    if (!options.wait) {
      await print('verification', REQUESTED, claim)
      return hint(
        `verification is running; follow it with: mailclaim claims watch ${argument ?? domainId}`,
        context,
        settings,
      )
    }
    if (settings.format === 'jsonl') await print('verification', REQUESTED, claim)
    await note(`The service was asked to verify ${nameOf(claim)}.`, context, settings)
    await followClaim({ domainId }, { ...options, isVerifying: true }, client, context, settings)

    async function print(event: string, message: string, claim: DomainClaim): Promise<void> {
      if (settings.format !== 'jsonl') return writeClaim(claim, context, settings)
      const at = new Date(context.clock.now()).toISOString()
      await writeJsonLine(context, settings, { event, at, message, claim })
    }
  },
})

/**
 * Checks DNS and reports the result, except for a mistake that has to be fixed first.
 *
 * @returns for such a mistake, unless `force`: the error `record_not_visible`, exit 8
 */
async function precheck(
  claim: DomainClaim,
  { force, publicResolvers }: Flags,
  context: Context,
  settings: Settings,
): Promise<CliError | undefined> {
  const report = await checkDns(checkRequest(recordOf(claim), settings, publicResolvers), dnsEffects(context))
  const failure = exitErrorOf(report)
  if (failure === undefined) {
    await note(`DNS: the record is visible at ${report.name}.`, context, settings)
    return undefined
  }
  const again = `to see the evidence: mailclaim claims check ${nameOf(claim)}; to ask the service anyway, add --force`
  if (report.verdict === 'fix' && !force) {
    return new CliError(failure.code, failure.exit, failure.message, {
      hint: [failure.hint, again].filter((part) => part).join('\n'),
    })
  }
  // Caches, slow servers and a network that hides DNS from here may not affect the service, which checks for itself.
  await warn(`DNS: ${failure.message}`, context, settings)
  return undefined
}
