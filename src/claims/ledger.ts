import { createHash } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { checkName } from '../dns/wire/name.ts'
import { CliError } from '../errors.ts'
import { parseTimestamp } from '../service/timestamps.ts'
import type { DomainClaim } from '../service/types.ts'
import { isProfileName } from '../settings/profiles.ts'
import { type Settings, settingValue } from '../settings/settings.ts'
import { writeDurable } from '../storage/atomic-file.ts'
import { cannotWrite } from '../storage/file-errors.ts'
import { readJson, requireFormat } from '../storage/json-file.ts'
import { ensurePrivateDirectory, namesIn } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { judge } from './lifecycle.ts'

/**
 * The claims that were made or looked at on this machine: the service has no list of them. Each is one file, which is replaced as
 * a whole, so any number of processes can write without a lock. Its name is the index: `<domain>~<hash(service, id)>.json`.
 */

const FORMAT = 1
/** Characters of a domain in a file's name; a longer one is hashed, since file systems allow 255 bytes. */
const MAX_NAME_LENGTH = 200
/** Of more domains than this, a completion doesn't open the claims. */
const MOST_OPENED = 100

/** Gets each file that can't be read; the file stays where it is. */
type OnDamaged = (error: CliError) => Promise<void>
type Place = { readonly directories: Context['directories']; readonly settings: Where }
type Where = Pick<Settings, 'chosen' | 'profile'>

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
  try {
    await ensurePrivateDirectory(directoryOf(io))
    writeDurable(pathOf({ issuer, claim }, io), text)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    await io.warn(`couldn't save the claim on this machine: ${error.message}`)
  }
}

/** Removes a claim from the ledger: the service still has it. @throws CliError `cannot_write`, exit 1 */
export async function forget(entry: LedgerEntry, place: Place): Promise<void> {
  const path = pathOf(entry, place)
  try {
    rmSync(path, { force: true })
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

/**
 * The claims of a domain at the service in force, or without one at any, the newest first: the first is what the name means.
 *
 * @param name in its ASCII form
 */
export async function claimsNamed(name: string, place: Place, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  const beginning = `${nameKey(name)}~`
  return read((file) => file.startsWith(beginning), place, onDamaged)
}

/** The claim with this placeholder domain id at the service in force, or without one at any. */
export async function claimWithId(
  domainId: string,
  place: Place,
  onDamaged?: OnDamaged,
): Promise<LedgerEntry | undefined> {
  const issuer = issuerIn(place.settings)
  const ending = issuer === undefined ? '.json' : `~${hashOf(issuer, domainId)}.json`
  const found = await read((file) => file.endsWith(ending), place, onDamaged)
  return found.find(({ claim }) => claim.domain_id === domainId)
}

/** All claims at the service in force, or without one at any, the newest first. */
export async function everyClaim(place: Place, onDamaged?: OnDamaged): Promise<LedgerEntry[]> {
  return read(() => true, place, onDamaged)
}

/** The ledger in force, as the rest of a sentence: a claim is known in one profile, at one service. */
export function ledgerInForce({ settings }: Pick<Place, 'settings'>): string {
  return nameOfLedger(settings.profile.value, issuerIn(settings))
}

const nameOfLedger = (profile: string, issuer?: string): string =>
  `in profile ${profile}${issuer === undefined ? '' : ` at ${issuer}`}`

/** The other ledgers of this machine with such claims, as `ledgerInForce` names one; sorted. */
export async function otherLedgers(
  isMeant: (claim: DomainClaim) => boolean,
  place: Place,
): Promise<string[]> {
  const { directories, settings } = place
  const found = new Set<string>()
  for (const profile of namesIn(join(directories.state, 'claims')).filter(isProfileName)) {
    const anyService = { chosen: { ...settings.chosen, base_url: undefined } }
    const other = {
      directories,
      settings: { ...anyService, profile: { ...settings.profile, value: profile } },
    }
    for (const { claim, issuer } of await everyClaim(other))
      if (isMeant(claim)) found.add(nameOfLedger(profile, issuer))
  }
  found.delete(ledgerInForce(place))
  return [...found].sort()
}

/** The names of the domains whose newest claim is open, or the id of one without a name; sorted. */
export async function openDomains(place: Place & Pick<Context, 'clock'>): Promise<string[]> {
  const newest = new Map<string, DomainClaim>()
  for (const { claim } of await everyClaim(place)) {
    const key = asciiName(claim.name ?? '') || (claim.domain_id ?? '')
    if (!newest.has(key)) newest.set(key, claim)
  }
  const now = place.clock.now()
  return [...newest].flatMap(([name, claim]) => (judge(claim, now).isOpen ? [name] : [])).sort()
}

/**
 * The domains that begin like this, with the status of the newest claim of each if there aren't many.
 *
 * @param most how many domains
 */
export async function knownDomains(prefix: string, most: number, place: Place): Promise<[string, string][]> {
  const names = filesIn(directoryOf(place)).flatMap((file) => {
    const name = file.slice(0, file.lastIndexOf('~'))
    return name.includes('.') && name.startsWith(prefix.toLowerCase()) ? [name] : []
  })
  const shown = [...new Set(names)].sort().slice(0, most)
  if (shown.length > MOST_OPENED) return shown.map((name) => [name, ''])
  const found: [string, string][] = []
  for (const name of shown) {
    const [newest] = await claimsNamed(name, place)
    if (newest !== undefined) found.push([name, newest.claim.status ?? ''])
  }
  return found
}

/** The newest first. */
async function read(
  isMeant: (file: string) => boolean,
  place: Place,
  onDamaged?: OnDamaged,
): Promise<LedgerEntry[]> {
  const directory = directoryOf(place)
  const issuer = issuerIn(place.settings)
  const entries: LedgerEntry[] = []
  for (const file of filesIn(directory).filter(isMeant)) {
    try {
      const entry = readJson(join(directory, file), parseEntry)
      if (entry !== undefined && (issuer ?? entry.issuer) === entry.issuer) entries.push(entry)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      await onDamaged?.(error)
    }
  }
  return sorted(entries)
}

function parseEntry(value: unknown): LedgerEntry {
  const entry = value as Partial<LedgerEntry> & { readonly format?: unknown }
  requireFormat(entry?.format, FORMAT)
  const { issuer, seen_at, claim } = entry
  if (typeof issuer !== 'string' || typeof seen_at !== 'string' || typeof claim?.domain_id !== 'string')
    throw new Error('it is damaged: a field is missing')
  return { issuer, seen_at, claim }
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => /~[0-9a-f]{32}\.json$/.test(name))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return []
    throw new CliError('cannot_read', `couldn't read the claims on this machine: ${message}`, {
      hint: `check the directory ${directory}`,
      cause: error,
    })
  }
}

/** When a claim was seen last says nothing about its age, but it's all there is if the service doesn't say. */
function sorted(entries: readonly LedgerEntry[]): LedgerEntry[] {
  const seenAt = ({ seen_at }: LedgerEntry) => Date.parse(seen_at)
  const at = (entry: LedgerEntry) => parseTimestamp(entry.claim.created_at) ?? seenAt(entry)
  return [...entries].sort((one, other) => at(other) - at(one) || seenAt(other) - seenAt(one))
}

/** A domain's name as names are compared: in lower case and A-labels, without the final dot. */
export function asciiName(name: string): string {
  const checked = checkName(name)
  return checked.ok ? checked.ascii : name.toLowerCase().replace(/\.$/, '')
}

/** What a claim's file is found by. */
function nameKey(name: string): string {
  const ascii = asciiName(name)
  const isPlain = /^[\w.-]+$/.test(ascii) && ascii.length <= MAX_NAME_LENGTH
  return isPlain ? ascii : createHash('sha256').update(ascii).digest('hex').slice(0, 32)
}

/** The issuer of the service in force; undefined without a base URL. @throws CliError exit 2 if that is no address */
export function issuerIn(settings: Pick<Settings, 'chosen'>): string | undefined {
  return settingValue('base_url', settings)
}

const hashOf = (issuer: string, domainId: string): string =>
  createHash('sha256').update(`${issuer}\n${domainId}`).digest('hex').slice(0, 32)

const pathOf = ({ issuer, claim }: Pick<LedgerEntry, 'issuer' | 'claim'>, place: Place): string =>
  join(directoryOf(place), `${nameKey(claim.name ?? '')}~${hashOf(issuer, claim.domain_id ?? '')}.json`)

const directoryOf = ({ directories, settings }: Place): string =>
  join(directories.state, 'claims', settings.profile.value)
