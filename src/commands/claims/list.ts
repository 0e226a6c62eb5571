import { CLAIM_LIST_COLUMNS, type ListedClaim, listedClaim } from '../../claims/columns.ts'
import { currentClaim } from '../../claims/current-claim.ts'
import { endedDaysAgo, KEPT_DAYS } from '../../claims/forget.ts'
import {
  asGone,
  type ClaimKey,
  forgetClaims,
  issuerIn,
  keyOf,
  type LedgerEntry,
  ledgerPages,
  recordClaim,
} from '../../claims/ledger.ts'
import { nameOf } from '../../claims/lifecycle.ts'
import { noOpenClaims } from '../../claims/resolve.ts'
import type { Context } from '../../context.ts'
import { CliError, Exit } from '../../errors.ts'
import { parseTimestamp } from '../../service/timestamps.ts'
import { CLAIM_FIELDS } from '../../service/types.ts'
import { connect } from '../../session/connect.ts'
import { parseCount } from '../../settings/parse-value.ts'
import type { Settings } from '../../settings/settings.ts'
import { hint, note, warn } from '../../terminal/notices.ts'
import { defineCommand, SERVICE_EXITS } from '../definition.ts'
import { printPages } from '../lists.ts'

/** Concurrent requests to the service. */
const PARALLEL = 6

interface Options {
  refresh?: true
  prune?: number
}

export const command = defineCommand<Options>({
  description: `Lists the claims that were made or viewed on this machine, as they were last seen. The service has no list of
claims; --refresh requests each one. A claim that the service no longer has is shown as gone, in JSON by gone_at. Claims that
ended or were gone more than ${KEPT_DAYS} days ago, and weren't viewed since, are forgotten; --prune forgets them earlier. That changes nothing at the service, where the placeholder domain id still finds a claim.`,
  options: [
    { flags: '--refresh', description: 'request each claim from the service' },
    {
      flags: '--prune <days>',
      description:
        'forget the claims that ended or were gone more than this many days ago, and list those; 0 for all of these',
      conflicts: ['--refresh'],
      parse: (text) => parseCount(text, '--prune', 0),
    },
  ],
  examples: {
    'mailclaim claims list': 'the claims known on this machine, offline',
    'mailclaim claims list --refresh --format jsonl': 'the current state of each, one per line',
    'mailclaim claims list --prune 0': 'forget every claim that has completed, expired, failed or is gone',
  },
  output: {
    schema: 'list',
    lineSchema: 'claim',
    fields: [...CLAIM_FIELDS, 'gone_at'],
    columns: CLAIM_LIST_COLUMNS,
  },
  exits: SERVICE_EXITS,
  account: 'sometimes',
  async run({ options }, io) {
    const [context, settings] = [io, io.settings]
    const { prune } = options
    const forgotten: ClaimKey[] = []
    let isEmpty = true
    const { refresh, failures = [] } = options.refresh ? createRefresh(context, settings) : {}
    async function* claims() {
      let newest: number | undefined
      for await (const page of ledgerPages(context, settings, (error) =>
        warn(`${error.message}; it is left out`, context, settings),
      )) {
        // A clock that is wrong by months must not forget an open claim: one that is newer, by the service, has to exist.
        newest ??= parseTimestamp(page[0]?.claim.created_at) ?? context.clock.now()
        const now = prune === undefined ? Math.min(newest, context.clock.now()) : context.clock.now()
        const ended = page.filter((entry) => endedDaysAgo(entry, prune ?? KEPT_DAYS, now))
        forgotten.push(...ended.map(keyOf))
        const entries = prune === undefined ? page.filter((entry) => !ended.includes(entry)) : ended
        if (entries.length === 0) continue
        isEmpty = false
        yield refresh === undefined ? entries.map(listedClaim) : await refresh(entries)
      }
    }
    const issuer = issuerIn(settings)
    const here = issuer === undefined ? '' : ` at ${issuer}`
    const nothing =
      prune === undefined
        ? `No claims${here} are known in profile ${settings.profile.value}.`
        : 'There was nothing to forget.'
    await printPages(claims(), CLAIM_LIST_COLUMNS, nothing, io)
    if (isEmpty && prune === undefined) {
      const elsewhere = await noOpenClaims(context, settings)
      await hint(elsewhere.hint ?? 'start one with: mailclaim claims create <domain>', context, settings)
    }
    await forget(forgotten, prune, context, settings)
    // The list is whole, but not up to date.
    const [failure] = failures
    if (failure !== undefined) throw failure
  },
})

async function forget(
  ended: readonly ClaimKey[],
  prune: number | undefined,
  context: Context,
  settings: Settings,
): Promise<void> {
  if (ended.length === 0) return
  try {
    forgetClaims(ended, context, settings)
  } catch (error) {
    // Where the home is read-only, a list still is what was asked for.
    if (prune !== undefined || !(error instanceof CliError)) throw error
    return
  }
  const claims = ended.length === 1 ? '1 claim' : `${ended.length} claims`
  const days = prune ?? KEPT_DAYS
  const when = days === 0 ? 'had ended' : `ended more than ${days === 1 ? 'a day' : `${days} days`} ago`
  await note(`Forgot ${claims} that ${when}.`, context, settings)
}

/** After so many failures of the service one after another, it isn't asked about the others. */
const MAX_FAILURES = 3

/** Requests claims from the service, and notes its failures. */
function createRefresh(context: Context, settings: Settings) {
  const client = connect(context, settings)
  const failures: CliError[] = []
  let inRow = 0
  const refresh = async (known: readonly LedgerEntry[]): Promise<readonly ListedClaim[]> => {
    const claims = known.map(listedClaim)
    let next = 0
    const worker = async () => {
      for (let at = next++; at < known.length; at = next++) {
        const entry = known[at]
        if (entry === undefined) continue
        const { claim } = entry
        try {
          const asked = { domainId: claim.domain_id ?? '', claim }
          const latest = await currentClaim(asked, client, context, settings)
          await recordClaim(latest.claim, context, settings)
          claims[at] = latest.claim
          inRow = 0
        } catch (error) {
          // A claim that is gone, belongs to another team, or has broken something must not hide the others.
          if (!(error instanceof CliError)) throw error
          const isFailure = error.exit === Exit.unavailable && (error.status ?? 0) >= 500
          if (isFailure) failures.push(error)
          inRow = isFailure ? inRow + 1 : 0
          const isAboutThis = isFailure || error.exit === Exit.notFound || error.exit === Exit.refused
          if (!isAboutThis || inRow >= MAX_FAILURES) throw error
          const isGone = error.exit === Exit.notFound
          if (isGone) claims[at] = listedClaim(asGone(entry, context.clock.now()))
          const problem = isGone
            ? [error.message, error.hint].filter(Boolean).join('; ')
            : `${nameOf(claim)} is shown as it was last seen: ${error.message}`
          await warn(problem, context, settings)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(PARALLEL, known.length) }, worker))
    return claims
  }
  return { refresh, failures }
}
