import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import type { DomainClaim } from '../service/types.ts'
import { issuerOf } from '../settings/addresses.ts'
import type { Settings } from '../settings/settings.ts'
import { writeDurable } from '../storage/durable-file.ts'
import { claimFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { warn } from '../terminal/notices.ts'

/** Characters; a claim has about one thousand. */
const LARGEST_ENTRY = 1024 * 1024

/** A claim that was made or looked at from this machine, as it was then. */
export interface LedgerEntry {
  /** The service that the claim is at: ids of another service mean nothing there. */
  readonly issuer: string
  /** When the claim was last seen, in ISO 8601. */
  readonly seen_at: string
  readonly claim: DomainClaim
}

/**
 * Remembers a claim. One file a claim, replaced whole: any number of processes can write at once without a lock, and
 * none can lose what another wrote about another claim.
 *
 * Where it cannot be written (a read-only home, a full disk) that is a warning: what the service said has to be shown.
 *
 * @returns false there: the claim goes by its id alone.
 */
export async function recordClaim(
  claim: DomainClaim,
  context: Context,
  settings: Settings,
): Promise<boolean> {
  try {
    await writeEntry(claim, context, settings)
    return true
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await warn(`the claim is not remembered on this machine: ${error.message}`, context, settings)
    return false
  }
}

async function writeEntry(claim: DomainClaim, context: Context, settings: Settings): Promise<void> {
  if (!claim.domain_id || settings.baseUrl === undefined) return
  const directory = ledgerDirectory(context, settings)
  await ensurePrivateDirectory(directory)
  const issuer = issuerOf(new URL(settings.baseUrl.value))
  const name = createHash('sha256').update(`${issuer}\n${claim.domain_id}`).digest('hex').slice(0, 32)
  const text = claimFormat.text({ issuer, seen_at: new Date(context.clock.now()).toISOString(), claim })
  // An answer of that size is no honest claim, and its file would not be read again.
  if (text.length > LARGEST_ENTRY) return
  await writeDurable(join(directory, `${name}.json`), text)
}

/**
 * Every claim that the profile remembers at the service in force, newest first.
 *
 * @param damaged is told of each file that cannot be read; it stays where it is.
 */
export async function readLedger(
  context: Context,
  settings: Settings,
  damaged: (error: CliError) => Promise<void>,
): Promise<LedgerEntry[]> {
  const directory = ledgerDirectory(context, settings)
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new CliError(
      'ledger_unreadable',
      Exit.bug,
      `the claims known on this machine cannot be read: ${error.message}`,
      {
        hint: `check the directory ${directory}`,
        cause: error,
      },
    )
  })
  const issuer = settings.baseUrl === undefined ? undefined : issuerOf(new URL(settings.baseUrl.value))
  const entries: LedgerEntry[] = []
  for (const name of names.filter((candidate) => /^[0-9a-f]{32}\.json$/.test(candidate)).sort()) {
    try {
      const entry = await readJson(join(directory, name), claimFormat.parse)
      if (entry !== undefined && (issuer === undefined || entry.issuer === issuer))
        entries.push(entry as LedgerEntry)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      await damaged(error)
    }
  }
  return entries.sort((one, other) => other.seen_at.localeCompare(one.seen_at))
}

function ledgerDirectory(context: Context, settings: Settings): string {
  return join(context.directories.state, 'claims', settings.profile.value)
}
