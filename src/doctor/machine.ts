import { existsSync, lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { testKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import { readCredentialStatus } from '../session/describe.ts'
import { profileFiles, tryReadSession } from '../session/session-file.ts'
import { resolveConfigFileLink } from '../settings/config.ts'
import { getBaseUrl, getClientId, getSetting, usesEtcdStore } from '../settings/settings.ts'
import { shellQuote } from '../shell-quote.ts'
import { removeFileDurably, writeFileDurably } from '../storage/atomic-file.ts'
import { withLock } from '../storage/lock.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { type CheckResult, okResult, skippedResult, warningResult } from './check-result.ts'

/** Checks that the configuration file and the base URL are valid, and that the client id is set unless there is an API key. */
export async function examineConfiguration(io: Io): Promise<CheckResult> {
  const { settings } = io
  if (settings.configProblem !== undefined) throw settings.configProblem
  const base = getBaseUrl(settings)
  const files = profileFiles(io, settings.profile.value)
  const hasKey = io.environment.apiKey !== undefined || tryReadSession(files)?.kind === 'api_key'
  if (!hasKey) getClientId(settings)
  const at = `profile ${settings.profile.value} at ${base.href.replace(/\/+$/, '')}`
  const file = resolveConfigFileLink(io)
  return okResult(existsSync(file) ? `${at} (${file})` : `${at}; no settings are saved yet`)
}

/**
 * Checks that files can be written to the config and state directories, and that only this user can access these (not on Windows).
 * Creates a missing directory.
 */
export async function examineConfigAndStateDirectories(io: Io): Promise<CheckResult> {
  const { config, state } = io.directories
  const tops = [config, state]
  for (const directory of tops) {
    await ensurePrivateDirectory(directory, 'leave')
    const path = join(directory, '.doctor.tmp')
    // Write with the function that also writes settings and claims: its flush and rename can fail where a plain write succeeds.
    writeFileDurably(path, ' '.repeat(1024))
    removeFileDurably(path)
  }
  const isExposed = (path: string) => io.platform !== 'win32' && (lstatSync(path).mode & 0o077) !== 0
  // Check the permissions of the config and state directories only: whoever can't enter a directory can't reach the files in it.
  const exposed = tops.filter(isExposed)
  if (exposed.length > 0)
    return warningResult(
      `other users of this machine may have access to ${exposed.join(', ')}`,
      `chmod -R go= ${exposed.map((path) => shellQuote(path, io.platform)).join(' ')}`,
    )
  const others = io.platform === 'win32' ? "others aren't looked at on Windows; " : 'only '
  return okResult(`${others}you can write to ${config} and ${state}`)
}

/**
 * Checks the keychain with a test secret if the keychain stores the session or, without a session, would store the next one. The
 * check of other stores is left to `examineConfigAndStateDirectories` (file) and `examineCredentialOffline` (etcd).
 */
export async function examineKeychainIfUsed(io: Io): Promise<CheckResult> {
  const profile = io.settings.profile.value
  if (usesEtcdStore(io.settings)) return skippedResult('the session is in etcd')
  const store = tryReadSession(profileFiles(io, profile))?.store ?? getSetting('store', io.settings)
  if (store === 'file') return okResult('secrets are kept in a file, as configured')
  await testKeychain(io, profile)
  return okResult("the system's keychain can save, read and delete a secret")
}

/**
 * Checks that a file lock in the state directory excludes a second one: some network file systems ignore locks.
 *
 * @throws CliError `store_unavailable`, exit 4, if the second lock isn't refused; as `withLock`
 */
export async function examineFileLocking(io: Io): Promise<CheckResult> {
  const { state } = io.directories
  if (!existsSync(state)) return skippedResult('there is no folder for it')
  const path = join(state, 'doctor.lock')
  const excludes = await withLock(path, io, { timeoutMs: 1500 }, () =>
    withLock(path, io, { timeoutMs: 0 }, async () => false).catch(
      (error) => error instanceof CliError && error.code === 'session_busy',
    ),
  )
  // Delete the test lock's file. Don't do this with a real lock: two processes could then lock different files of the same name.
  rmSync(path, { force: true })
  if (excludes) return okResult('only one command at a time can refresh the session')
  const message = `locks in ${state} don't work, as on some network file systems`
  const hint = 'set MAILCLAIM_STATE_DIR to a directory on a local disk'
  throw new CliError('store_unavailable', message, { hint })
}

/** Checks that there is a credential for requests. Doesn't send it to the service, which may still refuse it. */
export async function examineCredentialOffline(io: Io): Promise<CheckResult> {
  const { state, inForce, problem } = await readCredentialStatus(io)
  if (problem !== undefined) throw problem
  if (inForce === 'MAILCLAIM_API_KEY')
    return okResult('using MAILCLAIM_API_KEY; to try it: mailclaim auth status --online')
  if (inForce === 'stored API key') return okResult('signed in with a stored API key')
  if (state === 'refreshing') return okResult('signed in; another command is refreshing the access token')
  return okResult(state === 'active' ? 'signed in' : 'signed in; the next command renews the access token')
}
