import { access, constants, lstat, readdir, rm } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import type { Context } from '../context.ts'
import { proveKeychain } from '../credentials/keychain.ts'
import { CliError, Exit } from '../errors.ts'
import { profileFiles, readSessionIfAny } from '../session/session-file.ts'
import { configPath } from '../settings/config.ts'
import { requireBaseUrl, requireClientId, type Settings, settingValue } from '../settings/settings.ts'
import { isShared } from '../settings/shared-store.ts'
import { shellQuote } from '../shell-quote.ts'
import { isThere, removeDurable, writeDurable } from '../storage/atomic-file.ts'
import { cannotWrite } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import { type Diagnosis, ok, problem, skipped, warning } from './report.ts'

type LockContext = Pick<Context, 'directories' | 'clock' | 'random' | 'interrupts'>

/** Whether the configuration is valid and has what a request needs. */
export async function examineConfiguration(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'configuration'
  if (settings.configProblem !== undefined) return problem(check, settings.configProblem)
  try {
    const base = requireBaseUrl(settings)
    const profile = `profile ${settings.profile.value}`
    const at = `${profile} at ${base.href.replace(/\/+$/, '')}`
    if (context.environment.apiKey === undefined) requireClientId(settings)
    const file = configPath(context)
    return ok(check, isThere(file) ? `${at} (${file})` : `${at}; no settings are saved yet`)
  } catch (error) {
    return problem(check, asCliError(error))
  }
}

/** Whether this user, and nobody else, can write to the directories. */
export async function examineDirectories(
  context: Pick<Context, 'directories' | 'environment' | 'platform'>,
): Promise<Diagnosis> {
  const check = 'folders'
  const { config, state } = context.directories
  try {
    const missing: string[] = []
    for (const directory of [config, state]) {
      const found = await lstat(directory).catch(() => undefined)
      if (found === undefined) {
        await requireCreatable(directory)
        missing.push(directory)
        continue
      }
      // In the way that tokens are written: with a temporary file in the same directory.
      const path = join(directory, '.doctor.tmp')
      writeDurable(path, ' '.repeat(1024))
      removeDurable(path)
    }
    const exposed = context.platform === 'win32' ? [] : await accessibleToOthers([config, state])
    if (exposed.length > 0) {
      const tops = [config, state].filter((top) =>
        exposed.some((path) => `${path}${sep}`.startsWith(`${top}${sep}`)),
      )
      return warning(
        check,
        `other users of this machine may have access to ${exposed.slice(0, 3).join(', ')}${exposed.length > 3 ? ` and ${exposed.length - 3} more` : ''}`,
        `chmod -R go= ${tops.map((path) => shellQuote(path, context.platform)).join(' ')}`,
      )
    }
    if (missing.length > 0) return ok(check, `not created yet: ${missing.join(', ')}`)
    return ok(check, `only you can write to ${config} and ${state}`)
  } catch (error) {
    const failure = asCliError(error)
    return context.environment.apiKey === undefined
      ? problem(check, failure)
      : warning(
          check,
          `${failure.message}; MAILCLAIM_API_KEY works without it, but claims won't be saved`,
          failure.hint ?? '',
        )
  }
}

/** Fails if a missing directory can't be created: a login would only notice after the person has approved it. */
async function requireCreatable(directory: string): Promise<void> {
  for (let parent = dirname(directory); ; parent = dirname(parent)) {
    const found = await lstat(parent).catch(() => undefined)
    if (found === undefined && dirname(parent) !== parent) continue
    try {
      // With the slash, access() fails for a dangling link.
      return await access(join(parent, '/'), constants.W_OK | constants.X_OK)
    } catch (error) {
      throw cannotWrite(directory, error)
    }
  }
}

/** The program's directories and files, up to two levels down, that have permissions for group or others. */
async function accessibleToOthers(paths: readonly string[], depth = 2): Promise<string[]> {
  const exposed: string[] = []
  for (const path of paths) {
    const found = await lstat(path).catch(() => undefined)
    if (found === undefined || found.isSymbolicLink()) continue
    if ((found.mode & 0o077) !== 0) exposed.push(path)
    if (!found.isDirectory() || depth < 0) continue
    const names = await readdir(path).catch(() => [])
    const children = names.map((name) => join(path, name))
    exposed.push(...(await accessibleToOthers(children, depth - 1)))
  }
  return exposed
}

/** Whether the store of the session (or else of the next login) works: saves, reads and deletes a test secret. */
export async function examineStore(
  context: Context,
  settings: Pick<Settings, 'profile' | 'chosen'>,
): Promise<Diagnosis> {
  const check = 'credential store'
  // The check of the session reads it.
  if (isShared(settings)) return skipped(check, 'the session is in etcd')
  try {
    const session = readSessionIfAny(profileFiles(context, settings.profile.value))
    const store = session?.store ?? settingValue('store', settings)
    if (store === 'file') return ok(check, 'secrets are in a file that only you can read, as configured')
    await proveKeychain(context, settings.profile.value)
    return ok(check, "the system's keychain can save, read and delete a secret")
  } catch (error) {
    const failure = asCliError(error)
    if (context.environment.apiKey === undefined || failure.exit === Exit.usage)
      return problem(check, failure)
    return warning(check, `${failure.message}; MAILCLAIM_API_KEY works without it`, failure.hint ?? '')
  }
}

/** Whether the lock that a refresh needs works. */
export async function examineLock(
  context: LockContext,
  settings: Pick<Settings, 'profile'>,
): Promise<Diagnosis> {
  const check = 'lock'
  const paths = profileFiles(context, settings.profile.value)
  // Next to the session if there is one: whether locks work depends on the file system.
  const candidates = [paths.directory, context.directories.state]
  for (const directory of candidates) {
    const found = await lstat(directory).catch(() => undefined)
    if (found === undefined) continue
    const path = directory === paths.directory ? paths.lock : join(directory, 'doctor.lock')
    try {
      const isExclusive = await withLock(path, context, { deadlineMs: 1500 }, () => isLocked(path, context))
      if (!isExclusive) {
        return problem(
          check,
          new CliError(
            'store_unavailable',
            Exit.notSignedIn,
            `locks in ${directory} don't work, as on some network file systems`,
            { hint: 'set MAILCLAIM_STATE_DIR to a directory on a local disk' },
          ),
        )
      }
      // A session's lock must never be deleted, but this one protects nothing.
      if (path !== paths.lock) await rm(path, { force: true })
      return ok(check, 'only one command at a time can refresh the session')
    } catch (error) {
      const failure = asCliError(error)
      if (failure.code === 'session_busy')
        return warning(check, failure.message, failure.hint ?? 'wait until it finishes')
      return problem(check, failure)
    }
  }
  return skipped(check, 'there is no directory for a lock file yet')
}

/** Whether a held lock excludes others. */
async function isLocked(path: string, context: LockContext): Promise<boolean> {
  try {
    return await withLock(path, context, { deadlineMs: 0 }, async () => false)
  } catch (error) {
    return asCliError(error).code === 'session_busy'
  }
}

/** @throws whatever else was thrown */
function asCliError(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}
