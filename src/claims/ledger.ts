import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { checkName } from '../dns/wire/name.ts'
import { CliError, Exit } from '../errors.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { issuerOf, parseBaseUrl } from '../settings/addresses.ts'
import { isProfileName } from '../settings/profiles.ts'
import type { Settings } from '../settings/settings.ts'
import { isThere, removeStaleTemporaries, writeDurable } from '../storage/durable-file.ts'
import { cannotWrite } from '../storage/file-errors.ts'
import { claimFormat } from '../storage/file-formats.ts'
import { readJsonSync } from '../storage/json-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import { warn } from '../terminal/notices.ts'
import {
  appendToIndex,
  claimsIn,
  claimsNamed,
  domainsBeginning,
  dropFromIndex,
  type Index,
  type IndexedClaim,
  issuersIn,
  markComplete,
  type NewLine,
  readIndex,
  withLines,
} from './ledger-index.ts'
import { isOpen } from './lifecycle.ts'

/** Characters; a claim has about a thousand. */
const MAX_ENTRY_LENGTH = 1024 * 1024
/** Claims that are read at a time. */
const PAGE = 500
/** Of more domains than this, a completion doesn't open the claims. */
const MOST_OPENED = 100

export type LedgerContext = Pick<Context, 'clock' | 'directories' | 'stderr' | 'environment'>
type OnDamaged = (error: CliError) => Promise<void>

export type LedgerSettings = Pick<Settings, 'baseUrl' | 'profile' | 'quiet' | 'colorOption' | 'argv'>

/** A claim created or seen on this machine, as it was then. */
export interface LedgerEntry {
  /** The claim's service: an id means nothing to another one. */
  readonly issuer: string
  /** When the claim was last seen, in ISO 8601. */
  readonly seen_at: string
  /** Since when the service no longer has it, in ISO 8601; null if it does. It may have it for another account. */
  readonly gone_at: string | null
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
  return save(
    { seen_at: new Date(context.clock.now()).toISOString(), gone_at: null, claim },
    context,
    settings,
  )
}

/** Marks a claim that the service no longer has, so that nothing takes it for open. */
export async function recordGone(
  entry: LedgerEntry,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<void> {
  const gone = asGone(entry, context.clock.now())
  if (gone !== entry) await save(gone, context, settings)
}

/** The entry of a claim that the service no longer has; the same if it was gone before, or over. */
export function asGone(entry: LedgerEntry, now: number): LedgerEntry {
  const isOver = !isOpenEntry(entry, Number.NEGATIVE_INFINITY)
  return isOver ? entry : { ...entry, gone_at: new Date(now).toISOString() }
}

async function save(
  seen: Omit<LedgerEntry, 'issuer'>,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<boolean> {
  try {
    await writeEntry(seen, context, settings)
    return true
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await warn(`couldn't save the claim on this machine: ${error.message}`, context, settings)
    return false
  }
}

async function writeEntry(
  seen: Omit<LedgerEntry, 'issuer'>,
  context: LedgerContext,
  settings: LedgerSettings,
): Promise<void> {
  const { claim } = seen
  const issuer = issuerIn(settings)
  if (!claim.domain_id || issuer === undefined) return
  const directory = ledgerDirectory(context, settings)
  await ensurePrivateDirectory(directory)
  const entry = { ...seen, issuer }
  const text = claimFormat.text(entry)
  // No real claim is this large, and the file couldn't be read back.
  if (text.length > MAX_ENTRY_LENGTH)
    throw new CliError('claim_too_large', Exit.unavailable, `it has ${text.length} characters`)
  const file = fileOf(issuer, claim.domain_id)
  if (!isThere(pathOf(directory, file)))
    await appendToIndex(directory, [lineOf(file, entry)], context.clock.now())
  writeDurable(pathOf(directory, file), text, 'leave')
}

/**
 * The profile's claims at the active service, the most recently created first.
 *
 * @param onDamaged called for each file that can't be read; the file stays where it is
 * @param about only the claim with this placeholder domain id, or else the claims of the domain with this name, in its ASCII
 *   form: only their files are opened
 */
export async function readLedger(
  context: Pick<Context, 'clock' | 'directories'>,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
  onDamaged: OnDamaged,
  about?: string,
): Promise<LedgerEntry[]> {
  if (about === undefined) {
    const entries: LedgerEntry[] = []
    for await (const page of ledgerPages(context, settings, onDamaged)) entries.push(...page)
    return entries
  }
  const directory = ledgerDirectory(context, settings)
  const issuer = issuerIn(settings)
  const byId = issuer && (await readEntry(directory, fileOf(issuer, about), onDamaged))
  if (byId) return [byId]
  const index = await ledgerIndex(directory, context, onDamaged)
  const named = claimsNamed(about.toLowerCase(), index, issuer).sort(byCreation)
  const withId = issuer === undefined ? issuersIn(index).map((one) => ({ file: fileOf(one, about) })) : []
  return readEntries(directory, [...withId, ...named], onDamaged)
}

/**
 * As `readLedger`, in pages, so that memory doesn't grow with the ledger. Every file is looked at, so this also finds claims
 * that the index lacks, such as those that were copied here.
 */
export async function* ledgerPages(
  context: Pick<Context, 'clock' | 'directories'>,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
  onDamaged: OnDamaged,
): AsyncGenerator<LedgerEntry[], void, void> {
  const directory = ledgerDirectory(context, settings)
  const index = await completeIndex(directory, readIndex(directory), context, onDamaged)
  const claims = claimsIn(index, issuerIn(settings)).sort(byCreation)
  for (let at = 0; at < claims.length; at += PAGE) {
    // Lets other work run in between.
    await new Promise((resolve) => setImmediate(resolve))
    const entries = await readEntries(directory, claims.slice(at, at + PAGE), onDamaged)
    if (entries.length > 0) yield entries
  }
}

/** What identifies a claim in the ledger. */
export interface ClaimKey {
  readonly issuer: string
  readonly domainId: string
}

export function keyOf({ issuer, claim }: LedgerEntry): ClaimKey {
  // Every claim in the ledger has an id.
  return { issuer, domainId: claim.domain_id ?? '' }
}

/** Removes claims from the ledger. @throws CliError `cannot_write`, exit 1, for the first that can't be removed */
export function forgetClaims(
  claims: readonly ClaimKey[],
  context: Pick<Context, 'clock' | 'directories'>,
  settings: Pick<Settings, 'profile'>,
): void {
  if (claims.length === 0) return
  const directory = ledgerDirectory(context, settings)
  const files = new Set(claims.map(({ issuer, domainId }) => fileOf(issuer, domainId)))
  for (const file of files) remove(pathOf(directory, file))
  try {
    dropFromIndex(directory, files, context.clock.now())
  } catch {
    // The lines that are left do no harm: every reader looks for the file.
  }
  removeStaleTemporaries(directory)
}

/** If a power loss brings it back, the next list forgets it again. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

/**
 * The domains that begin like this, with the status of the newest claim of each if there aren't many.
 *
 * @param most how many domains; see `domainsBeginning`
 */
export async function knownDomains(
  prefix: string,
  most: number,
  context: Pick<Context, 'clock' | 'directories'>,
  settings: Pick<Settings, 'baseUrl' | 'profile'>,
): Promise<[string, string][]> {
  const directory = ledgerDirectory(context, settings)
  const index = await ledgerIndex(directory, context, async () => {})
  const domains = domainsBeginning(prefix, index, issuerIn(settings), most)
  if (domains.size > MOST_OPENED) return [...domains.keys()].map((name) => [name, ''])
  const found: [string, string][] = []
  for (const [name, claims] of domains) {
    const [newest] = await readEntries(directory, claims.sort(byCreation), async () => {})
    if (newest !== undefined) found.push([name, statusOf(newest)])
  }
  return found
}

/** The index, complete. Only a ledger of an earlier version, or one without its index, has to be read for it. */
async function ledgerIndex(directory: string, context: Pick<Context, 'clock'>, onDamaged: OnDamaged) {
  const index = readIndex(directory)
  return index.isComplete ? index : completeIndex(directory, index, context, onDamaged)
}

/** Adds the claims that the index lacks, also to the file, if possible. */
async function completeIndex(
  directory: string,
  index: Index,
  { clock }: Pick<Context, 'clock'>,
  onDamaged: OnDamaged,
): Promise<Index> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new CliError(
      'ledger_unreadable',
      Exit.bug,
      `couldn't read the claims known on this machine: ${error.message}`,
      { hint: `check the directory ${directory}`, cause: error },
    )
  })
  if (names === undefined) return index
  const known = new Set(claimsIn(index).map(({ file }) => file))
  const lacking = names
    .flatMap((name) => /^([0-9a-f]{32})\.json$/.exec(name)?.[1] ?? [])
    .filter((file) => !known.has(file))
  const lines: NewLine[] = []
  for (let at = 0; at < lacking.length; at++) {
    if (at % PAGE === 0) await new Promise((resolve) => setImmediate(resolve))
    const file = lacking[at] ?? ''
    const entry = await readEntry(directory, file, onDamaged)
    if (entry !== undefined) lines.push(lineOf(file, entry))
  }
  lines.sort((one, other) => one.createdAt - other.createdAt)
  try {
    await appendToIndex(directory, lines, clock.now())
    if (!index.isComplete) markComplete(directory)
  } catch (error) {
    // The next command tries again.
    if (!(error instanceof CliError)) throw error
    return withLines(index, lines)
  }
  return readIndex(directory)
}

async function readEntries(
  directory: string,
  claims: readonly Pick<IndexedClaim, 'file'>[],
  onDamaged: OnDamaged,
): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = []
  for (const { file } of claims) {
    const entry = await readEntry(directory, file, onDamaged)
    if (entry !== undefined) entries.push(entry)
  }
  return entries
}

async function readEntry(
  directory: string,
  file: string,
  onDamaged: OnDamaged,
): Promise<LedgerEntry | undefined> {
  try {
    return readJsonSync(pathOf(directory, file), claimFormat.parse) as LedgerEntry | undefined
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await onDamaged(error)
    return undefined
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
    const every = { baseUrl: undefined, profile }
    const entries = await readLedger(context, every, async () => {}, name).catch(() => [])
    if (entries.length > 0) found.push(value)
  }
  return found.sort()
}

/** When a claim was seen last says nothing about its age, but it's all there is if the service doesn't say. */
function lineOf(file: string, { issuer, seen_at, claim }: LedgerEntry): NewLine {
  const createdAt = parseTimestamp(claim.created_at) ?? Date.parse(seen_at)
  return { file, createdAt, issuer, name: lookupName(claim) }
}

/** What a claim is found by: people and the service may each have their own spelling of the domain. */
function lookupName({ name }: DomainClaim): string {
  const checked = checkName(name ?? '')
  return checked.ok ? checked.ascii : (name ?? '').toLowerCase()
}

const byCreation = (one: IndexedClaim, other: IndexedClaim) => other.createdAt - one.createdAt

/**
 * The claims of a domain: open ones first, and within each group the newest first. So the first is what the domain's name
 * stands for.
 *
 * @param entries newest first, as `readLedger` returns them
 * @param name in its ASCII form
 * @param now milliseconds since 1970
 */
export function claimsOf(entries: readonly LedgerEntry[], name: string, now: number): LedgerEntry[] {
  const own = entries.filter(({ claim }) => lookupName(claim) === name)
  return [
    ...own.filter((entry) => isOpenEntry(entry, now)),
    ...own.filter((entry) => !isOpenEntry(entry, now)),
  ]
}

/** Whether the claim may still complete, as the service last answered. @param now milliseconds since 1970 */
export const isOpenEntry = ({ gone_at, claim }: LedgerEntry, now: number): boolean =>
  gone_at === null && isOpen(claim, now)

/** A claim's status for people. */
export const statusOf = ({ gone_at, claim }: Pick<LedgerEntry, 'gone_at' | 'claim'>): string =>
  gone_at === null ? (claim.status ?? '') : 'gone'

/** The issuer of the active service; undefined without a base URL. @throws CliError exit 2 if that is no address */
export function issuerIn({ baseUrl }: Pick<Settings, 'baseUrl'>): string | undefined {
  return baseUrl === undefined ? undefined : issuerOf(parseBaseUrl(baseUrl.value))
}

function fileOf(issuer: string, domainId: string): string {
  return createHash('sha256').update(`${issuer}\n${domainId}`).digest('hex').slice(0, 32)
}

const pathOf = (directory: string, file: string) => join(directory, `${file}.json`)

function ledgerDirectory(context: Pick<Context, 'directories'>, settings: Pick<Settings, 'profile'>): string {
  return join(context.directories.state, 'claims', settings.profile.value)
}
