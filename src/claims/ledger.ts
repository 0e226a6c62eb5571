import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { CliError, Exit } from '../errors.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { isProfileName } from '../settings/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { writeDurable } from '../storage/durable-file.ts'
import { claimFormat } from '../storage/file-formats.ts'
import { readJson } from '../storage/json-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { warn } from '../terminal/notices.ts'
import { isOpen } from './lifecycle.ts'

/** Characters; a claim has about a thousand. */
const MAX_ENTRY_LENGTH = 1024 * 1024

export type LedgerContext = Pick<Context, 'clock' | 'directories' | 'stderr' | 'environment'> & IndexedLedger

/** A ledger whose files have been read once: a run over many domains looks up each by its name or id. */
export interface IndexedLedger {
  readonly ledgerIndex?: LedgerIndex
}

/** The names of the ledger's files by domain name, in lower case, and by placeholder domain id. */
export type LedgerIndex = ReadonlyMap<string, readonly string[]>
export type LedgerSettings = Pick<Settings, 'baseUrl' | 'profile' | 'quiet' | 'colorOption' | 'argv'>

/** A claim created or seen on this machine, as it was then. */
export interface LedgerEntry {
  /** The claim's service: an id means nothing to another one. */
  readonly issuer: string
  /** When the claim was last seen, in ISO 8601. */
  readonly seen_at: string
  readonly claim: DomainClaim
}

/**
 * Saves a claim to the ledger. Each claim has its own file, which is replaced as a whole, so any number of processes can
 * write without a lock.
 *
 * If the file can't be written (a read-only home, a full disk), that's a warning: the command still has to show the claim.
 *
 * @returns whether the claim was saved; if not, only its id finds it
 */
export async function recordClaim(
  claim: DomainClaim,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<boolean> {
  try {
    await writeEntry(claim, context, settings)
    return true
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await warn(`couldn't save the claim on this machine: ${error.message}`, context, settings)
    return false
  }
}

async function writeEntry(
  claim: DomainClaim,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<void> {
  if (!claim.domain_id || settings.baseUrl === undefined) return
  const directory = ledgerDirectory(context, settings)
  await ensurePrivateDirectory(directory)
  const issuer = issuerOf(parseBaseUrl(settings.baseUrl.value))
  const name = createHash('sha256').update(`${issuer}\n${claim.domain_id}`).digest('hex').slice(0, 32)
  const text = claimFormat.text({ issuer, seen_at: new Date(context.clock.now()).toISOString(), claim })
  // No real claim is this large, and the file couldn't be read back.
  if (text.length > MAX_ENTRY_LENGTH)
    throw new CliError('claim_too_large', Exit.unavailable, `it has ${text.length} characters`)
  await writeDurable(join(directory, `${name}.json`), text)
}

/**
 * The profile's claims at the active service, the most recently created first.
 *
 * @param onDamaged called for each file that can't be read; the file stays where it is
 * @param about a domain name or placeholder domain id, if only its claims are wanted: with an index, no others are read
 */
export async function readLedger(
  context: Pick<Context, 'directories'> & IndexedLedger,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
  onDamaged: (error: CliError) => Promise<void>,
  about?: string,
): Promise<LedgerEntry[]> {
  const indexed = about === undefined ? undefined : context.ledgerIndex
  const entries: LedgerEntry[] = []
  const files = indexed ? (indexed.get(about?.toLowerCase() ?? '') ?? []) : undefined
  for await (const { entry } of ledgerFiles(context, settings, onDamaged, files)) entries.push(entry)
  return entries.sort((one, other) => createdAt(other) - createdAt(one))
}

/** Reads the ledger once, and keeps only where each claim is. Damaged files are left out. */
export async function indexLedger(
  context: Pick<Context, 'directories'>,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
): Promise<LedgerIndex> {
  const index = new Map<string, string[]>()
  for await (const { file, entry } of ledgerFiles(context, settings, async () => {}))
    for (const key of [entry.claim.name?.toLowerCase(), entry.claim.domain_id?.toLowerCase()])
      if (key) index.set(key, [...(index.get(key) ?? []), file])
  return index
}

/** @param only the names of the files to read; by default all */
export async function* ledgerFiles(
  context: Pick<Context, 'directories'>,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
  onDamaged: (error: CliError) => Promise<void>,
  only?: readonly string[],
): AsyncGenerator<{ readonly file: string; readonly entry: LedgerEntry }, void, void> {
  const directory = ledgerDirectory(context, settings)
  const files =
    only ??
    (await readdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw new CliError(
        'ledger_unreadable',
        Exit.bug,
        `couldn't read the claims known on this machine: ${error.message}`,
        { hint: `check the directory ${directory}`, cause: error },
      )
    }))
  const issuer = settings.baseUrl === undefined ? undefined : issuerOf(parseBaseUrl(settings.baseUrl.value))
  for (const file of files.filter((candidate) => /^[0-9a-f]{32}\.json$/.test(candidate)).sort()) {
    try {
      const entry = await readJson(join(directory, file), claimFormat.parse)
      if (entry !== undefined && (issuer === undefined || entry.issuer === issuer))
        yield { file, entry: entry as LedgerEntry }
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      await onDamaged(error)
    }
  }
}

/**
 * The other profiles that have a claim of this domain, at any service.
 *
 * @param name in its ASCII form
 */
export async function otherProfilesWith(
  name: string,
  context: Pick<Context, 'directories' | 'clock'>,
  settings: Pick<Settings, 'profile'>,
): Promise<string[]> {
  const found: string[] = []
  // It's only for a hint, so what can't be read is left out.
  for (const value of await readdir(join(context.directories.state, 'claims')).catch(() => [])) {
    if (value === settings.profile.value || !isProfileName(value)) continue
    const profile = { value, source: 'flag' } as const
    const entries = await readLedger(context, { baseUrl: undefined, profile }, async () => {}).catch(() => [])
    if (claimsOf(entries, name, context.clock.now()).length > 0) found.push(value)
  }
  return found.sort()
}

/** Milliseconds since 1970. When a claim was seen last says nothing about its age. */
function createdAt({ claim, seen_at }: LedgerEntry): number {
  return parseTimestamp(claim.created_at) ?? Date.parse(seen_at)
}

/**
 * The claims of a domain: open ones first, and within each group the newest first. So the first is what the domain's name
 * stands for.
 *
 * @param entries newest first, as `readLedger` returns them
 * @param name in its ASCII form
 * @param now milliseconds since 1970
 */
export function claimsOf(entries: readonly LedgerEntry[], name: string, now: number): LedgerEntry[] {
  const own = entries.filter(({ claim }) => claim.name?.toLowerCase() === name)
  return [...own.filter(({ claim }) => isOpen(claim, now)), ...own.filter(({ claim }) => !isOpen(claim, now))]
}

function ledgerDirectory(context: Pick<Context, 'directories'>, settings: Pick<Settings, 'profile'>): string {
  return join(context.directories.state, 'claims', settings.profile.value)
}
