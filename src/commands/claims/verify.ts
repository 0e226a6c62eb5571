import { BATCH_OPTIONS, VERIFY_EVENT_MEANINGS } from '../../claims/definition.ts'
import { createCommandDeadline } from '../../timeout.ts'
import { CLAIMS_ARGUMENT, defineCommand, PUBLIC_RESOLVERS_OPTION } from '../definition.ts'
import { CLAIM_WAITING_OPTIONS, runVerifyOrWatchCommand, WATCH_OUTPUT } from './watch.ts'

export const command = defineCommand({
  description:
    'Checks DNS, then asks the service to verify the claim, unless the record is missing; to wait for the record, use claim or claims check --wait.',
  arguments: [CLAIMS_ARGUMENT],
  options: [
    { flags: '--no-check', description: "don't check DNS first", conflicts: [PUBLIC_RESOLVERS_OPTION.flags] },
    { flags: '--wait', description: 'follow the claim until it ends, as claims watch does' },
    ...CLAIM_WAITING_OPTIONS.map((option) => ({ ...option, needs: '--wait' })),
    PUBLIC_RESOLVERS_OPTION,
    ...BATCH_OPTIONS,
  ],
  events: VERIFY_EVENT_MEANINGS,
  examples: {
    'mailclaim claims verify example.com --wait': 'check, verify, and wait until it ends',
    'mailclaim claims verify example.com --no-check': 'only ask the service',
    'mailclaim claims verify --all --wait': 'all open claims, until each has ended',
  },
  output: WATCH_OUTPUT,
  errors: ['claim', 'check', 'follow', 'several'],
  account: 'signed_in',
  toleratesClosedPipe: true,
  async run({ arguments: domains, options }, io) {
    const { wait = false, check = true, publicResolvers, throughBlocked } = options
    const deadline = createCommandDeadline(options, io.clock)
    const verify = { deadline, wait, check, publicResolvers, throughBlocked }
    const { checkDnsOnceAndVerify } = await import('../../claims/workflow.ts')
    const claim = await runVerifyOrWatchCommand(domains, options, verify, checkDnsOnceAndVerify, io)
    if (!wait && claim !== undefined && claim.status !== 'completed' && !io.settings.quiet)
      await io.hint(`to follow it: mailclaim claims watch${domains.map((domain) => ` ${domain}`)}`)
  },
})
