import { createHash } from 'node:crypto'
import { chmodSync, type Dir, opendirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { checkName } from '../dns/wire/name.ts'
import { CliError } from '../errors.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { isProfileName } from '../settings/profiles.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { writeDurable } from '../storage/atomic-file.ts'
import { cannotWrite, catchError, codeOf, reason } from '../storage/file-errors.ts'
import { readJson, requireFormat, unusable } from '../storage/json-file.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { judge } from './lifecycle.ts'

/**
 * The claims that were created or viewed on this machine: the service has no list of them. Each claim is one file, replaced as a
 * whole, so any number of processes can write without a lock. A claim is found by a path, so its cost doesn't grow with the ledger:
 *
 * - `names/<first two letters>/<domain>/<hash(service, id)>.json` is a claim of the domain.
 * - `ids/<hash(id)>/<domain>`, an empty file, says that a claim with this id belongs to the domain. It is created before the claim
 *   and never removed, so no kill and no other process can leave a claim without it; without a claim it has no effect.
 */

const FORMAT = 1
/** Completion opens the claims, to show their status, of at most this many domains. */
const MOST_OPENED = 100
/** Names that completion reads of one directory, which take 5 ms. */
const MOST_READ = 3000

/** Gets each file that can't be read; the file stays where it is. */
type OnDamaged = (error: CliError) => Promise<void>
type Place = Pick<Context, 'directories'> & { readonly settings: Pick<Settings, 'chosen' | 'profile'> }

/** A claim as it was when the service last answered. */
export interface LedgerEntry {
  /** The claim's service: an id means nothing to another one. */
  readonly issuer: string
  /** In ISO 8601. */
  readonly seen_at: string
  readonly claim: DomainClaim
}

/**
 * Saves a claim as it is now. If the file can't be written (a read-only home, a full disk), that's a warning: the command still
 * has to show the claim.
 */
export async function remember(claim: DomainClaim, io: Io): Promise<void> {
  const issuer = issuerIn(io.settings)
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
    writeDurable(path, text)
  }
  try {
    // Between two steps of this, `forget` in another process may remove the domain's directory; the second attempt recreates it.
    await save().catch(save)
  } catch (error) {
    await io.warn(`couldn't save the claim on this machine: ${cannotWrite(path, error).message}`)
  }
}

/** Removes a claim from the ledger: the service still has it. @throws CliError `cannot_write`, exit 1 */
export async function forget(entry: LedgerEntry, place: Place): Promise<void> {
  const path = pathOf(entry, place)
  const failure = catchError(() => rmSync(path, { force: true }))
  if (failure !== undefined) throw cannotWrite(path, failure)
  // Fails, as it should, while the domain has other claims.
  catchError(() => rmdirSync(dirname(path)))
}

/**
 * The claims of a domain at the service in force, or without one at any, the newest first: the first is what the name means.
 *
 * @param name in its ASCII form
 */
export function claimsNamed(name: string, place: Place, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  return read([nameKey(name)], place, onDamaged)
}

/** The claim with this placeholder domain id at the service in force, or without one at any. */
export async function claimWithId(
  domainId: string,
  place: Place,
  onDamaged?: OnDamaged,
): Promise<LedgerEntry | undefined> {
  const found = await read(namesBelow(idDirectory(domainId, place)), place, onDamaged)
  return found.find(({ claim }) => claim.domain_id === domainId)
}

/** All claims at the service in force, or without one at any, the newest first. */
export function everyClaim(place: Place, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  return read(keysIn(place), place, onDamaged)
}

/** The ledger in force, as the rest of a sentence: a claim is known in one profile, at one service. */
export function ledgerInForce({ settings }: Pick<Place, 'settings'>): string {
  return nameOfLedger(settings.profile.value, issuerIn(settings))
}

const nameOfLedger = (profile: string, issuer?: string): string =>
  `in profile ${profile}${issuer === undefined ? '' : ` at ${issuer}`}`

/**
 * The other ledgers of this machine with such claims, as `ledgerInForce` names one; sorted.
 *
 * @param find returns such claims of one profile, at any service
 */
export async function otherLedgers(
  find: (other: Place) => Promise<readonly LedgerEntry[]>,
  place: Place,
): Promise<string[]> {
  const { directories, settings } = place
  const found = new Set<string>()
  const chosen = { ...settings.chosen, base_url: undefined }
  for (const value of namesBelow(join(directories.state, 'claims')).filter(isProfileName)) {
    const profile = { ...settings.profile, value }
    const claims = await find({ directories, settings: { chosen, profile } })
    for (const { issuer } of claims) found.add(nameOfLedger(value, issuer))
  }
  found.delete(ledgerInForce(place))
  return [...found].sort()
}

/** The names of the domains whose newest claim is open, or the id of one without a name; sorted. */
export async function openDomains(place: Place & Pick<Context, 'clock'>): Promise<string[]> {
  const open: string[] = []
  for (const key of keysIn(place)) {
    const claims = await read([key], place)
    // Each claim without a name stands for itself.
    for (const [age, { claim }] of claims.entries())
      if ((age === 0 || !claim.name) && judge(claim, place.clock.now()).isOpen)
        open.push(asciiName(claim.name ?? '') || (claim.domain_id ?? ''))
  }
  return open.sort()
}

/**
 * The domains that begin like this, with the status of the newest claim of each if there aren't many. Of a directory with very many
 * domains, only some are considered.
 *
 * @param most how many domains
 */
export async function knownDomains(prefix: string, most: number, place: Place): Promise<[string, string][]> {
  const shown: string[] = []
  for (const name of keysIn(place, prefix.toLowerCase(), MOST_READ))
    if (name.includes('.') && shown.push(name) === most) break
  if (shown.length > MOST_OPENED) return shown.map((name) => [name, ''])
  const found: [string, string][] = []
  for (const name of shown) {
    const [newest] = await claimsNamed(name, place)
    if (newest !== undefined) found.push([name, newest.claim.status ?? ''])
  }
  return found
}

/** The claims in these domains' directories, the newest first. */
async function read(keys: Iterable<string>, place: Place, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  const issuer = issuerIn(place.settings)
  const entries: LedgerEntry[] = []
  for (const key of keys) {
    const directory = nameDirectory(key, place)
    for (const file of namesBelow(directory).filter((name) => /^[0-9a-f]{32}\.json$/.test(name))) {
      try {
        const entry = readJson(join(directory, file), parseEntry)
        if (entry !== undefined && (issuer ?? entry.issuer) === entry.issuer) entries.push(entry)
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        await onDamaged?.(error)
      }
    }
  }
  const seenAt = ({ seen_at }: LedgerEntry) => Date.parse(seen_at)
  // The time of the last view says nothing about a claim's age, but is all there is if the service sends no `created_at`.
  const at = (entry: LedgerEntry) => parseTimestamp(entry.claim.created_at) ?? seenAt(entry)
  return entries.sort((one, other) => at(other) - at(one) || seenAt(other) - seenAt(one))
}

/** The keys, with this prefix, of the domains that have a directory; sorted. @param most how many are read of one directory */
function* keysIn(place: Place, prefix = '', most?: number): Generator<string, void, void> {
  const names = join(directoryOf(place), 'names')
  const shards = namesBelow(names).filter((shard) => shard.startsWith(shardOf(prefix)))
  for (const shard of shards.sort())
    yield* namesBelow(join(names, shard), most)
      .filter((key) => key.startsWith(prefix))
      .sort()
}

function parseEntry(value: unknown): LedgerEntry {
  const entry = value as Partial<LedgerEntry> & { readonly format?: unknown }
  requireFormat(entry?.format, FORMAT)
  const { issuer, seen_at, claim } = entry
  if (typeof issuer !== 'string' || typeof seen_at !== 'string' || typeof claim?.domain_id !== 'string')
    throw new Error('it is damaged: a field is missing')
  return { issuer, seen_at, claim }
}

/** The names in a directory; none if it doesn't exist. */
function namesBelow(directory: string, most = Number.POSITIVE_INFINITY): string[] {
  const names: string[] = []
  let opened: Dir | undefined
  try {
    opened = opendirSync(directory)
    for (let next = opened.readSync(); next !== null && names.length < most; next = opened.readSync())
      names.push(next.name)
    return names
  } catch (error) {
    // A file that isn't this program's may lie where directories are.
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
    throw unusable(directory, `it can't be read (${reason(error)})`, { cause: error })
  } finally {
    opened?.closeSync()
  }
}

/** A domain's name as names are compared: in lower case and A-labels, without the final dot. */
export function asciiName(name: string): string {
  const checked = checkName(name)
  return checked.ok ? checked.ascii : name.toLowerCase().replace(/\.$/, '')
}

/** The name of a domain's directory: the domain, or the hash of a name that isn't a domain, and could be any path. */
function nameKey(name: string): string {
  const checked = checkName(name)
  return checked.ok ? checked.ascii : hashOf(asciiName(name))
}

/** The issuer of the service in force; undefined without a base URL. @throws CliError exit 2 if that is no address */
export function issuerIn(settings: Pick<Settings, 'chosen'>): string | undefined {
  return settingValue('base_url', settings)
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** Without the dot of a label of one letter: Windows removes a dot at the end of a name. */
const shardOf = (key: string): string => key.slice(0, 2).replace('.', '')

const pathOf = ({ issuer, claim }: Pick<LedgerEntry, 'issuer' | 'claim'>, place: Place): string =>
  join(nameDirectory(nameKey(claim.name ?? ''), place), `${hashOf(`${issuer}\n${claim.domain_id}`)}.json`)

const nameDirectory = (key: string, place: Place): string =>
  join(directoryOf(place), 'names', shardOf(key), key)

const idDirectory = (domainId: string, place: Place): string =>
  join(directoryOf(place), 'ids', hashOf(domainId))

const directoryOf = ({ directories, settings }: Place): string =>
  join(directories.state, 'claims', settings.profile.value)
