import { createHash } from 'node:crypto'
import { chmodSync, type Dir, opendirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { parseDomainName } from '../dns/wire/name.ts'
import { CliError } from '../errors.ts'
import { parseTimestampMs } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { isProfileName } from '../settings/profiles.ts'
import { getSetting, type Settings } from '../settings/settings.ts'
import { writeFileDurably } from '../storage/atomic-file.ts'
import { cannotWriteError, catchError, errnoCode, reasonOf } from '../storage/file-errors.ts'
import { readJsonFile, requireFormatNumber, unusableFileError } from '../storage/json-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { getClaimState } from './lifecycle.ts'

/**
 * The ledger of a profile: claims that this machine has received from the service, which has no operation that lists claims. Each
 * claim is one file below `claims/<profile>` in the state directory, and is replaced atomically, so processes need no lock.
 * Claims are found by paths, so finding one by its domain or id costs the same in a ledger of any size:
 *
 * - `names/<first two characters>/<domain>/<hash(service, id)>.json` holds a claim of the domain.
 * - `ids/<hash(id)>/<domain>` is an empty file: a claim with this id belongs to the domain. The pointer is created before the
 *   claim's file and never removed, so no kill and no other process can leave a claim without its pointer. A pointer without a
 *   claim is harmless.
 */

const FORMAT = 1
/**
 * Maximum number of domains that completion offers with the statuses of their claims. For a longer list, no status is read,
 * because each takes file reads, which slow completion down.
 */
const MAX_STATUSES = 100
/**
 * Maximum number of domains with the same first two characters that completion reads, so that it stays fast in a large ledger.
 */
const MAX_NAMES = 3000

/** Callback for each damaged or unreadable ledger file; the file is skipped and left unchanged. */
type OnDamaged = (error: CliError) => Promise<void>
/** A ledger, by its state directory and profile. The base URL in `settings`, if set, selects the claims of one service. */
type Ledger = Pick<Context, 'directories'> & { readonly settings: Pick<Settings, 'chosen' | 'profile'> }

/** A claim in the ledger, from the last response about the claim. */
export interface LedgerEntry {
  /** Base URL of the service that has the claim; stored because two services may use the same `domain_id`. */
  readonly issuer: string
  /** Time of the last response about the claim, in ISO 8601. */
  readonly seen_at: string
  readonly claim: DomainClaim
}

/**
 * Saves a claim in the ledger, unless the claim has no `domain_id` or no base URL is set. Only warns if the claim can't be saved
 * (read-only home, full disk), because the command can still show it.
 */
export async function trySaveClaim(claim: DomainClaim, io: Io): Promise<void> {
  const issuer = getBaseUrlIfSet(io.settings)
  if (!claim.domain_id || issuer === undefined) return
  const seen_at = new Date(io.clock.now()).toISOString()
  const text = JSON.stringify({ format: FORMAT, issuer, seen_at, claim })
  const path = pathOf({ issuer, claim }, io)
  const names = idDirectory(claim.domain_id, io)
  const save = async () => {
    for (const directory of [directoryOf(io), names, dirname(path)]) await ensurePrivateDirectory(directory)
    const pointer = join(names, nameKey(claim.name ?? ''))
    writeFileSync(pointer, '')
    chmodSync(pointer, 0o600)
    writeFileDurably(path, text)
  }
  try {
    // `forgetClaim` in another process may remove the directory between two steps of `save`, so retry once: the second attempt
    // recreates the directory.
    await save().catch(save)
  } catch (error) {
    await io.warn(`couldn't save the claim on this machine: ${cannotWriteError(path, error).message}`)
  }
}

/**
 * Removes a claim from the ledger. No error if the file is gone already.
 *
 * @throws CliError `cannot_write`, exit 1, if the file can't be removed
 */
export async function forgetClaim(entry: LedgerEntry, ledger: Ledger): Promise<void> {
  const path = pathOf(entry, ledger)
  const failure = catchError(() => rmSync(path, { force: true }))
  if (failure !== undefined) throw cannotWriteError(path, failure)
  // `rmdir` removes only an empty directory, and throws if the domain has other claims, so ignore its error.
  catchError(() => rmdirSync(dirname(path)))
}

/**
 * Reads a domain's claims from the ledger, the newest first: those at the service in use, or at every service if no base URL is
 * set.
 */
export function findClaimsByDomain(domain: string, ledger: Ledger, onDamaged?: OnDamaged) {
  return read([nameKey(domain)], ledger, onDamaged)
}

/**
 * Finds the newest claim with the given `domain_id` in the ledger: at the service in use, or at any service if no base URL is
 * set; undefined if there is none.
 */
export async function findClaimByDomainId(
  domainId: string,
  ledger: Ledger,
  onDamaged?: OnDamaged,
): Promise<LedgerEntry | undefined> {
  const found = await read(namesBelow(idDirectory(domainId, ledger)), ledger, onDamaged)
  return found.find(({ claim }) => claim.domain_id === domainId)
}

/** Reads all claims in the ledger at the service in use, or at every service if no base URL is set; the newest first. */
export function readAllClaims(ledger: Ledger, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  return read(keysIn(ledger), ledger, onDamaged)
}

/**
 * Returns the profile and, if set, the base URL of a ledger, as the end of a message: "in profile default at
 * https://api.example".
 */
export const describeLedger = ({ settings }: Pick<Ledger, 'settings'>): string =>
  formatLedgerPlace(settings.profile.value, getBaseUrlIfSet(settings))

const formatLedgerPlace = (profile: string, issuer?: string): string =>
  `in profile ${profile}${issuer === undefined ? '' : ` at ${issuer}`}`

/**
 * Finds matching claims in the ledgers of other profiles, or at other services, for a hint at where a claim is.
 *
 * @param find returns the matching claims of one profile, at any service
 * @returns sorted descriptions, in the form of `describeLedger`
 */
export async function locateInOtherLedgers(
  find: (other: Ledger) => Promise<readonly LedgerEntry[]>,
  ledger: Ledger,
): Promise<string[]> {
  const { directories, settings } = ledger
  const found = new Set<string>()
  const chosen = { ...settings.chosen, base_url: undefined }
  for (const value of namesBelow(join(directories.state, 'claims')).filter(isProfileName)) {
    const profile = { ...settings.profile, value }
    const claims = await find({ directories, settings: { chosen, profile } })
    for (const { issuer } of claims) found.add(formatLedgerPlace(value, issuer))
  }
  found.delete(describeLedger(ledger))
  return [...found].sort()
}

/**
 * Collects the domains whose newest claim is open. Claims without a name count as those of one domain, which is listed by the
 * `domain_id` of the newest.
 */
export async function collectOpenClaimDomains(io: Io): Promise<string[]> {
  const open: string[] = []
  for (const key of keysIn(io)) {
    const [newest] = await read([key], io)
    if (newest !== undefined && getClaimState(newest.claim, io.clock.now()).isOpen)
      open.push(toComparableDomain(newest.claim.name ?? '') || (newest.claim.domain_id ?? ''))
  }
  return open.sort()
}

/**
 * Collects the domains that start with a prefix, for shell completion: pairs of a name and its newest claim's status. To stay
 * fast, reads no claims if many domains match: then statuses are empty, and some domains may have claims at other services only.
 *
 * @param most maximum number of domains to return
 */
export async function collectDomainCompletions(
  prefix: string,
  most: number,
  ledger: Ledger,
): Promise<[string, string][]> {
  const shown: string[] = []
  for (const name of keysIn(ledger, prefix.toLowerCase(), MAX_NAMES))
    if (name.includes('.') && shown.push(name) === most) break
  if (shown.length > MAX_STATUSES) return shown.map((name) => [name, ''])
  const found: [string, string][] = []
  for (const name of shown) {
    const [newest] = await findClaimsByDomain(name, ledger)
    if (newest !== undefined) found.push([name, newest.claim.status ?? ''])
  }
  return found
}

/**
 * Reads the claims of several domains, the newest claim first: those at the service in use, or at every service if no base URL
 * is set. Skips damaged files of the ledger after a call of `onDamaged`.
 *
 * @param keys names of the domains' directories
 *
 * @throws CliError `cannot_read`, exit 1, if a directory can't be read
 */
async function read(keys: Iterable<string>, ledger: Ledger, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  const issuer = getBaseUrlIfSet(ledger.settings)
  const entries: LedgerEntry[] = []
  for (const key of keys) {
    const directory = nameDirectory(key, ledger)
    for (const file of namesBelow(directory).filter((name) => /^[0-9a-f]{32}\.json$/.test(name))) {
      try {
        const entry = readJsonFile(join(directory, file), parseEntry)
        if (entry !== undefined && (issuer ?? entry.issuer) === entry.issuer) entries.push(entry)
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        await onDamaged?.(error)
      }
    }
  }
  const seenAt = ({ seen_at }: LedgerEntry) => Date.parse(seen_at)
  // The service may omit `created_at`, so fall back to the time of the last response with the claim.
  const at = (entry: LedgerEntry) => parseTimestampMs(entry.claim.created_at) ?? seenAt(entry)
  return entries.sort((one, other) => at(other) - at(one) || seenAt(other) - seenAt(one))
}

/**
 * Yields the names of the domains' directories that start with `prefix`.
 *
 * @param most maximum number of names to read per shard (the domains with the same first two characters), before the filter
 */
function* keysIn(ledger: Ledger, prefix = '', most?: number): Generator<string, void, void> {
  const names = join(directoryOf(ledger), 'names')
  const shards = namesBelow(names).filter((shard) => shard.startsWith(shardOf(prefix)))
  for (const shard of shards.sort())
    yield* namesBelow(join(names, shard), most)
      .filter((key) => key.startsWith(prefix))
      .sort()
}

/** Validates the JSON of a ledger file, which holds one claim. @throws Error with the defect */
function parseEntry(value: unknown): LedgerEntry {
  const entry = value as Partial<LedgerEntry> & { readonly format?: unknown }
  requireFormatNumber(entry?.format, FORMAT)
  const { issuer, seen_at, claim } = entry
  if (typeof issuer !== 'string' || typeof seen_at !== 'string' || typeof claim?.domain_id !== 'string')
    throw new Error('it is damaged: a field is missing')
  return { issuer, seen_at, claim }
}

/**
 * Reads the names in a directory, at most `most`; none if the path doesn't exist or is a file.
 *
 * @throws CliError `cannot_read`, exit 1, if the directory can't be read
 */
function namesBelow(directory: string, most = Number.POSITIVE_INFINITY): string[] {
  const names: string[] = []
  let opened: Dir | undefined
  try {
    opened = opendirSync(directory)
    for (let next = opened.readSync(); next !== null && names.length < most; next = opened.readSync())
      names.push(next.name)
    return names
  } catch (error) {
    // Other programs leave files among the ledger's directories, such as .DS_Store on macOS. So treat a file (ENOTDIR) like a
    // missing directory (ENOENT), and return no names.
    if (['ENOENT', 'ENOTDIR'].includes(errnoCode(error) ?? '')) return []
    throw unusableFileError(directory, `it can't be read (${reasonOf(error)})`, { cause: error })
  } finally {
    opened?.closeSync()
  }
}

/**
 * Returns a domain name in its form for comparisons: lower case, A-labels (RFC 5890), without the final dot. A malformed name
 * isn't converted to A-labels.
 */
export function toComparableDomain(name: string): string {
  const checked = parseDomainName(name)
  return checked.ok ? checked.ascii : name.toLowerCase().replace(/\.$/, '')
}

/**
 * Returns the name of a domain's directory. A name that isn't a valid domain is hashed, because it could be a path such as `..`.
 */
function nameKey(name: string): string {
  const checked = parseDomainName(name)
  return checked.ok ? checked.ascii : hashOf(toComparableDomain(name))
}

/**
 * Returns the base URL of the service in use, by which the ledger distinguishes services; undefined if none is set.
 *
 * @throws CliError as `getSetting`
 */
export const getBaseUrlIfSet = (settings: Pick<Settings, 'chosen'>): string | undefined =>
  getSetting('base_url', settings)

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

/**
 * Returns the name of the directory above a domain's directory `key`: the first two characters of `key`, without a dot, because
 * Windows removes a dot at the end of a file name.
 */
const shardOf = (key: string): string => key.slice(0, 2).replace('.', '')

const pathOf = ({ issuer, claim }: Pick<LedgerEntry, 'issuer' | 'claim'>, ledger: Ledger): string =>
  join(nameDirectory(nameKey(claim.name ?? ''), ledger), `${hashOf(`${issuer}\n${claim.domain_id}`)}.json`)

const nameDirectory = (key: string, ledger: Ledger): string =>
  join(directoryOf(ledger), 'names', shardOf(key), key)

const idDirectory = (domainId: string, ledger: Ledger): string =>
  join(directoryOf(ledger), 'ids', hashOf(domainId))

const directoryOf = ({ directories, settings }: Ledger): string =>
  join(directories.state, 'claims', settings.profile.value)
