import { CLAIM_LIST_COLUMNS } from '../../claims/columns.ts'
import { endedDaysAgo, KEPT_DAYS } from '../../claims/forget.ts'
import { type ClaimKey, forgetClaims, keyOf, ledgerPages } from '../../claims/ledger.ts'
import { Exit } from '../../errors.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { parseCount } from '../../settings/parse-value.ts'
import { note, warn } from '../../terminal/notices.ts'
import { defineCommand } from '../definition.ts'
import { printPages } from '../lists.ts'

export const command = defineCommand<{ days?: number; dryRun?: true }>({
  description: `Forgets the claims that have completed, expired or failed and were last seen longer ago than --days, and
prints them. Only what this machine knows is removed: nothing changes at the service, where a claim can still be found by its
placeholder domain id.`,
  options: [
    {
      flags: '--days <n>',
      description: 'how long ago a claim must have ended; 0 for all that have ended',
      default: String(KEPT_DAYS),
      parse: (text) => parseCount(text, '--days', 0),
    },
    { flags: '--dry-run', description: 'only print what would be forgotten' },
  ],
  examples: {
    'mailclaim claims prune': `forget what ended more than ${KEPT_DAYS} days ago`,
    'mailclaim claims prune --days 0 --dry-run': 'which claims have ended?',
  },
  output: { fields: CLAIM_FIELDS, columns: CLAIM_LIST_COLUMNS, open: true },
  exits: [Exit.notConfigured],
  async run({ options: { days = KEPT_DAYS, dryRun } }, context, settings) {
    const now = context.clock.now()
    const ended: ClaimKey[] = []
    async function* claims() {
      for await (const page of ledgerPages(context, settings, (error) =>
        warn(`${error.message}; it is left as it is`, context, settings),
      )) {
        const entries = page.filter((entry) => endedDaysAgo(entry, days, now))
        ended.push(...entries.map(keyOf))
        if (entries.length > 0) yield entries.map(({ claim }) => claim)
      }
    }
    await printPages(claims(), CLAIM_LIST_COLUMNS, 'There was nothing to forget.', context, settings)
    if (ended.length === 0) return
    if (!dryRun) forgetClaims(ended, context, settings)
    const number = ended.length === 1 ? '1 claim' : `${ended.length} claims`
    await note(`${dryRun ? 'Would forget' : 'Forgot'} ${number}.`, context, settings)
  },
})
