import type { Context } from '../context.ts'
import { checkName } from '../dns/wire/name.ts'
import { CliError, Exit, usageError } from '../errors.ts'
import type { Settings } from '../settings/settings.ts'
import { warn } from '../terminal/notices.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { type LedgerEntry, readLedger } from './ledger.ts'
import { nameOf, standingOf } from './lifecycle.ts'

/** What a person means by `<claim>`. */
export interface ResolvedClaim {
  /** The placeholder domain id: what the service knows a claim by. */
  readonly domainId: string
  /** What this machine remembers of it. */
  readonly entry: LedgerEntry | undefined
}

/**
 * Finds the claim that is meant: a domain name that the ledger knows (the newest claim of that name), else a placeholder
 * domain id. Left out on a terminal, the person picks one.
 *
 * @throws CliError `claim_unknown`, exit 5, for a domain name that this machine has no claim of; exit 2 where nothing is
 *   given and nobody can be asked.
 */
export async function resolveClaim(
  argument: string | undefined,
  context: Context,
  settings: Settings,
): Promise<ResolvedClaim> {
  const entries = await readLedger(context, settings, (error) =>
    warn(`${error.message}; it is left out`, context, settings),
  )
  if (argument === undefined) return pick(entries, context, settings)
  const byId = entries.find((entry) => entry.claim.domain_id === argument)
  if (byId !== undefined) return found(byId)
  const name = checkName(argument)
  const byName = name.ok ? entries.find((entry) => entry.claim.name?.toLowerCase() === name.ascii) : undefined
  if (byName !== undefined) return found(byName)
  if (name.ok) {
    throw new CliError('claim_unknown', Exit.notFound, `no claim of ${argument} is known on this machine`, {
      hint: `start it with: mailclaim claims create ${name.ascii} (a claim made elsewhere: give its placeholder domain id once)`,
    })
  }
  if (!/^[\w-]{1,128}$/.test(argument)) {
    throw usageError(name.problem, name.fix)
  }
  return { domainId: argument, entry: undefined }
}

async function pick(
  entries: readonly LedgerEntry[],
  context: Context,
  settings: Settings,
): Promise<ResolvedClaim> {
  if (!settings.interactive || entries.length === 0) {
    throw usageError(
      'which claim? Its domain name or placeholder domain id is missing',
      entries.length === 0
        ? 'start one with: mailclaim claims create <domain>'
        : 'mailclaim claims list shows those known on this machine',
    )
  }
  return context.prompts.select({
    message: 'Which claim?',
    choices: entries.map((entry) => ({
      name: sanitizeLine(`${nameOf(entry.claim)}  ${entry.claim.status ?? ''}`),
      value: found(entry),
      description: sanitizeLine(standingOf(entry.claim).says),
    })),
  })
}

function found(entry: LedgerEntry): ResolvedClaim {
  // The ledger keeps no claim without an id.
  return { domainId: entry.claim.domain_id ?? '', entry }
}
