import { lstatSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Context } from '../../context.ts'
import { seal, unseal } from '../../credentials/etcd/sealed.ts'
import { CliError, Exit } from '../../errors.ts'
import { loginCommand } from '../../settings/login-command.ts'
import { DEFAULT_PROFILE } from '../../settings/profiles.ts'
import { removeDurable, writeDurable } from '../../storage/durable-file.ts'
import { POSIX } from '../../storage/file-errors.ts'
import { pendingFormat, sharedSessionFormat } from '../../storage/file-formats.ts'
import { moveAway, readJsonSync } from '../../storage/json-file.ts'
import { namesIn, ownUser } from '../../storage/private-directory.ts'
import type { Contents } from '../../storage/schema.ts'
import { sanitizeLine } from '../../terminal/sanitize.ts'
import { ensureProfileDirectory, sessionPaths } from '../paths.ts'
import { profilesWithSecrets } from '../profiles.ts'
import {
  isAttempt,
  isValue,
  type NewContents,
  type NoValue,
  type Replaced,
  type SharedContents,
  type SharedContext,
  type SharedValue,
  type SharedVault,
} from './vault.ts'

/** A write that settles a journal entry and that etcd has not acknowledged. */
export interface Pending {
  /** The journal entry that it settles. */
  readonly writer: string
  /** The revision that the entry was written over, if the entry may still arrive. */
  readonly revision: string
  readonly cluster: string
  readonly next: NewContents
}

/** A file of such a write. */
interface PendingFile {
  readonly path: string
  /** As the file's name says. */
  readonly writer: string
  /** What it holds, or why it can't be read. */
  readonly file: Contents<typeof pendingFormat> | CliError
}

/** How long another process of this machine may take to store what it has written. */
const PAUSE_MS = 500

const NAME = /^pending\.(?<profile>.+)\.(?<writer>[0-9a-f]{32})\.json$/

/**
 * Keeps a write on this machine, encrypted, in a file that only its user can read.
 *
 * @returns the path; undefined if no directory takes it.
 */
export async function keepPending(
  context: SharedContext,
  vault: SharedVault,
  { writer, revision, cluster, next }: Pending,
): Promise<string | undefined> {
  const { key } = vault.access
  const contents: SharedContents = {
    ...next,
    journal: next.journal === null || 'writer' in next.journal ? next.journal : null,
    attempts: [],
    writer,
    host: vault.host,
    writtenAt: context.clock.now(),
    cluster: 'none',
    writes: '0',
  }
  const { generation } = next.secret
  const about = { key, cluster, session: next.record.id, generation, writer, revision }
  const sealed = await seal(sharedSessionFormat.text(contents), placeOf(about), vault.keys)
  await ensureProfileDirectory(context, vault.paths).catch(() => undefined)
  for (const directory of directoriesOf(vault)) {
    const path = join(directory, `pending.${vault.paths.profile}.${writer}.json`)
    try {
      writeDurable(path, pendingFormat.text({ ...about, sealed }))
      return path
    } catch (error) {
      if (!(error instanceof CliError)) throw error
    }
  }
  return undefined
}

/** The files of writes that this machine keeps for the key of a profile. The cluster of a damaged one is undefined. */
export function pendingFiles(
  vault: Pick<SharedVault, 'paths' | 'access'>,
): { readonly path: string; readonly cluster: string | undefined }[] {
  return readPending(vault).map(({ path, file }) => ({
    path,
    cluster: file instanceof CliError ? undefined : file.cluster,
  }))
}

/**
 * The paths of all such files in this program's directories, whatever their key and cluster.
 *
 * @param profile undefined: of every profile
 */
export function pendingPaths(context: Pick<Context, 'directories'>, profile: string | undefined): string[] {
  const profiles = profile === undefined ? [DEFAULT_PROFILE, ...profilesWithSecrets(context)] : [profile]
  const directories = profiles.flatMap((name) => {
    const { directory, fallbackDirectories } = sessionPaths(context, name)
    return [directory, ...fallbackDirectories]
  })
  return [...new Set(directories)]
    .flatMap(filesIn)
    .filter((file) => profile === undefined || file.profile === profile)
    .map(({ path }) => path)
}

/** What is in etcd, once this machine has offered what it keeps. */
export interface Offered {
  readonly found: SharedValue | NoValue
  /** Why the session must not be renewed: this machine keeps how the last renewal ended, and can't read or store it. */
  readonly blocked: CliError | undefined
}

/**
 * Reads the value, and puts into etcd what this machine keeps for it and still settles what it was made for. What is older than
 * the value is removed, even without the key that it is encrypted with. Only what was kept before the value was read can be
 * older: a file that is written later may belong to a later session.
 *
 * @param until by the monotonic clock: when to stop trying, at the latest.
 * @throws CliError as `SharedVault.read`.
 */
export async function readAndOffer(
  context: SharedContext,
  vault: SharedVault,
  until?: number,
): Promise<Offered> {
  let kept = readPending(vault)
  let found = await vault.read(until)
  let blocked: CliError | undefined
  // Whoever has just written it is perhaps about to store it.
  if (isValue(found) && isNewer(kept, found)) {
    await context.clock.sleep(PAUSE_MS, context.interrupts.signal)
    kept = readPending(vault)
    found = await vault.read(until)
  }
  if (!isValue(found)) return { found, blocked }
  for (const pending of kept) {
    const { path } = pending
    const use = useOf(pending, found)
    if (use === 'none') removeQuietly(path)
    if (use === 'set back')
      blocked = vault.restored(`it is from before the renewal whose token this machine keeps (${path})`)
    if (use !== 'newer' && use !== 'settles') continue
    const next = await unsealPending(vault, pending)
    if (next instanceof CliError) {
      blocked = next
      continue
    }
    let replaced: Replaced
    try {
      replaced = await vault.replace(found, next, vault.newWriter(), until)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      // What was read is still good to look at.
      blocked = error
      continue
    }
    // The next command tries again.
    if (replaced.kind === 'lost') return { found: await vault.read(until), blocked }
    found = replaced.value
    removeQuietly(path)
    if (use === 'newer')
      await context.stderr.write(
        `note: ${sanitizeLine(`the refresh token that was kept on this machine (${path}) is in etcd now`)}\n`,
      )
  }
  return { found, blocked }
}

const isNewer = (kept: readonly PendingFile[], found: SharedValue) =>
  kept.some((pending) => useOf(pending, found) === 'newer')

/**
 * What a kept write is to the value in etcd: a `newer` refresh token; one whose renewal etcd has lost, because it was
 * `set back`, and which may have been stored and used before that; it `settles` the journal entry that is there; `later`,
 * perhaps, because the entry may still arrive, as long as nothing else has been written, or because it is for another cluster;
 * `none`.
 */
function useOf(
  { writer, file }: PendingFile,
  { contents, cluster, revision }: SharedValue,
): 'newer' | 'set back' | 'settles' | 'later' | 'none' {
  const settled = contents.journal?.writer
  if (file instanceof CliError) return writer === settled ? 'settles' : 'later'
  if (file.cluster !== cluster) return 'later'
  const isSameSession = contents.record.id === file.session
  if (isSameSession && file.generation > contents.secret.generation)
    return isAttempt(contents, file.writer) ? 'newer' : 'set back'
  if (isSameSession && file.writer === settled) return 'settles'
  return revision === file.revision ? 'later' : 'none'
}

/** Each file is read once. */
function readPending({ paths, access }: Pick<SharedVault, 'paths' | 'access'>): PendingFile[] {
  return directoriesOf({ paths }).flatMap((directory) =>
    filesIn(directory).flatMap(({ path, profile, writer }) => {
      if (profile !== paths.profile) return []
      const file = readFile(path)
      const isElsewhere = !(file instanceof CliError) && file?.key !== access.key
      return file === undefined || isElsewhere ? [] : [{ path, writer, file }]
    }),
  )
}

/** By their names, unread. */
function filesIn(directory: string): { path: string; profile: string; writer: string }[] {
  return namesIn(directory, 'skip').flatMap((name) => {
    const { profile, writer = '' } = NAME.exec(name)?.groups ?? {}
    const path = join(directory, name)
    return profile !== undefined && isOwn(path) ? [{ path, profile, writer }] : []
  })
}

/** @returns undefined if it has just been removed. */
function readFile(path: string): PendingFile['file'] | undefined {
  try {
    return readJsonSync(path, pendingFormat.parse)
  } catch (error) {
    if (error instanceof CliError) return error
    throw error
  }
}

async function unsealPending(
  vault: SharedVault,
  { path, file }: PendingFile,
): Promise<NewContents | CliError> {
  if (file instanceof CliError) return blockedBy(file, vault, path)
  try {
    const text = await unseal(file.sealed, placeOf(file), vault.keys, `the file ${path}`)
    return sharedSessionFormat.parse(JSON.parse(text))
  } catch (error) {
    return blockedBy(error, vault, path)
  }
}

function blockedBy(error: unknown, { paths: { profile } }: SharedVault, path: string): CliError {
  const { code, message } =
    error instanceof CliError ? error : new CliError('file_unusable', Exit.bug, String(error))
  const isKey = code === 'store_key_wrong'
  const remedy = isKey
    ? 'add the key that is missing behind the others, in MAILCLAIM_STORE_KEY or in the file of --store-key-file, and run this command again. If nobody has it anymore'
    : 'put back a copy of that file, if there is one. Otherwise'
  return new CliError(
    code,
    Exit.notSignedIn,
    `${message.replace(/\. Nothing was sent$/, '')}. It says how the last renewal of profile ${profile} ended, and may hold the only good refresh token, so nothing is sent`,
    {
      hint: `${remedy}, sign in again, for the whole fleet: ${loginCommand({ profile })}. To go on without that file: ${moveAway(path)}`,
      cause: error,
    },
  )
}

/** Not the key itself: the file's text must not be of use in etcd. */
function placeOf(about: Omit<Contents<typeof pendingFormat>, 'sealed'>): string {
  const { key, cluster, session, generation, writer, revision } = about
  return `${key} (pending ${cluster} ${session} ${generation} ${writer} ${revision})`
}

function directoriesOf({ paths }: Pick<SharedVault, 'paths'>): string[] {
  return [paths.directory, ...paths.fallbackDirectories, tmpdir()]
}

/** The directory for temporary files belongs to everybody. */
function isOwn(path: string): boolean {
  try {
    return !POSIX || lstatSync(path).uid === ownUser()
  } catch {
    return false
  }
}

/** What stays settles nothing, and the next command finds that out again. */
export function removeQuietly(path: string): void {
  try {
    removeDurable(path)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
  }
}
