import { access, constants, lstat, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Context } from '../context.ts'
import { proveKeychain } from '../credentials/keychain.ts'
import { CliError, Exit } from '../errors.ts'
import { sessionPaths } from '../session/paths.ts'
import { readRecord } from '../session/record.ts'
import { configPath } from '../settings/config.ts'
import { requireBaseUrl, requireClientId, type Settings, settingValue } from '../settings/settings.ts'
import { shellQuote } from '../shell-quote.ts'
import { preallocate, uniqueSuffix } from '../storage/durable-file.ts'
import { cannotWrite } from '../storage/file-errors.ts'
import { withLock } from '../storage/lock.ts'
import { type Diagnosis, ok, problem, skipped, warning } from './report.ts'

/** Whether the settings can be read and suffice to make a request. */
export async function examineConfiguration(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'configuration'
  if (settings.configProblem !== undefined) return problem(check, settings.configProblem)
  try {
    const base = requireBaseUrl(settings)
    const profile = `profile ${settings.profile.value}`
    if (context.environment.apiKey === undefined) requireClientId(settings)
    return ok(check, `${profile} at ${base.href.replace(/\/+$/, '')} (${configPath(context)})`)
  } catch (error) {
    return problem(check, expected(error))
  }
}

/** Whether the folders can be written, and by nobody else. */
export async function examineFolders(context: Context): Promise<Diagnosis> {
  const check = 'folders'
  const { config, state } = context.directories
  try {
    const missing: string[] = []
    for (const folder of [config, state]) {
      const found = await lstat(folder).catch(() => undefined)
      if (found === undefined) {
        await requireMakeable(folder)
        missing.push(folder)
        continue
      }
      // The same road as that of a token: a temporary file beside its target, taken back.
      preallocate(join(folder, `.doctor.${uniqueSuffix()}.tmp`), 1024).discard()
    }
    const open = context.platform === 'win32' ? [] : await openToOthers([config, state])
    if (open.length > 0) {
      return warning(
        check,
        `other users of this machine may get at ${open.slice(0, 3).join(', ')}${open.length > 3 ? ` and ${open.length - 3} more` : ''}`,
        `chmod -R go= ${[config, state].map((path) => shellQuote(path, context.platform)).join(' ')}`,
      )
    }
    if (missing.length > 0) return ok(check, `not made yet: ${missing.join(', ')}`)
    return ok(check, `${config} and ${state} can be written, by you alone`)
  } catch (error) {
    const failure = expected(error)
    return context.environment.apiKey === undefined
      ? problem(check, failure)
      : warning(
          check,
          `${failure.message}; MAILCLAIM_API_KEY does without it, but no claim is remembered`,
          failure.hint ?? '',
        )
  }
}

/** Whether a folder that is not there could be made: a login would find out only after a person has approved it. */
async function requireMakeable(folder: string): Promise<void> {
  for (let above = dirname(folder); ; above = dirname(above)) {
    const found = await lstat(above).catch(() => undefined)
    if (found === undefined && dirname(above) !== above) continue
    try {
      // With its slash the path is that of a folder, not of a link to nothing.
      return await access(join(above, '/'), constants.W_OK | constants.X_OK)
    } catch (error) {
      throw cannotWrite(folder, error)
    }
  }
}

/** Folders and files of ours, two levels down, that have rights for group or others. */
async function openToOthers(folders: readonly string[], depth = 2): Promise<string[]> {
  const open: string[] = []
  for (const folder of folders) {
    const found = await lstat(folder).catch(() => undefined)
    if (found === undefined || found.isSymbolicLink()) continue
    if ((found.mode & 0o077) !== 0) open.push(folder)
    if (!found.isDirectory() || depth < 0) continue
    const names = await readdir(folder).catch(() => [])
    open.push(
      ...(await openToOthers(
        names.map((name) => join(folder, name)),
        depth - 1,
      )),
    )
  }
  return open
}

/** A real round trip through the store of the session, or where there is none, of the next login. */
export async function examineStore(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'credential store'
  try {
    const record = await readRecord(sessionPaths(context, settings.profile.value)).catch(() => undefined)
    const store = record?.store ?? settingValue('store', settings)
    if (store === 'file') return ok(check, 'secrets are kept in a file that only you can read, as was chosen')
    await proveKeychain(context, settings.profile.value)
    return ok(check, "the system's keychain takes a secret, gives it back and forgets it")
  } catch (error) {
    const failure = expected(error)
    if (context.environment.apiKey === undefined || failure.exit === Exit.usage)
      return problem(check, failure)
    return warning(check, `${failure.message}; MAILCLAIM_API_KEY does without it`, failure.hint ?? '')
  }
}

/** Whether the lock that guards a refresh can be had. */
export async function examineLock(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'lock'
  const paths = sessionPaths(context, settings.profile.value)
  // Beside the session where there is one, since it is the file system that has locks or has none.
  const candidates = [paths.directory, context.directories.state]
  for (const folder of candidates) {
    const found = await lstat(folder).catch(() => undefined)
    if (found === undefined) continue
    const path = folder === paths.directory ? paths.lock : join(folder, 'doctor.lock')
    try {
      const excludes = await withLock(path, context, { deadlineMs: 1500 }, () => isTaken(path, context))
      if (!excludes) {
        return problem(
          check,
          new CliError(
            'lock_unavailable',
            Exit.notSignedIn,
            `locks in ${folder} keep nobody out, as on some network file systems`,
            { hint: 'set MAILCLAIM_STATE_DIR to a local disk' },
          ),
        )
      }
      // The lock of a session must never be deleted; this one guards nothing.
      if (path !== paths.lock) await rm(path, { force: true })
      return ok(check, 'a refresh keeps other commands waiting, and the system releases the lock')
    } catch (error) {
      const failure = expected(error)
      if (failure.code === 'session_busy')
        return warning(check, failure.message, failure.hint ?? 'let it finish')
      return problem(check, failure)
    }
  }
  return skipped(check, 'there is no folder to lock a file in yet')
}

/** Whether a lock that is held keeps the next to come out. */
async function isTaken(path: string, context: Context): Promise<boolean> {
  try {
    return await withLock(path, context, { deadlineMs: 0 }, async () => false)
  } catch (error) {
    return expected(error).code === 'session_busy'
  }
}

function expected(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}
