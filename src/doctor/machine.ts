import { existsSync, lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { testKeychain } from '../credentials/keychain.ts'
import { CliError } from '../errors.ts'
import { readCredentialStatus } from '../session/describe.ts'
import { findSession, profileFiles } from '../session/session-file.ts'
import { getConfigPath } from '../settings/config.ts'
import { getBaseUrl, getClientId, getSetting, usesSharedStore } from '../settings/settings.ts'
import { shellQuote } from '../shell-quote.ts'
import { removeFileDurably, writeFileDurably } from '../storage/atomic-file.ts'
import { withLock } from '../storage/lock.ts'
import { ensurePrivateDirectory } from '../storage/private-directory.ts'
import type { Io } from '../terminal/io.ts'
import { type CheckResult, okResult, skippedResult, warningResult } from './check-result.ts'

/** Checks that the configuration file is valid, and that the base URL is set, and the client id unless there is an API key. */
export async function examineConfiguration(io: Io): Promise<CheckResult> {
  const { settings } = io
  if (settings.configProblem !== undefined) throw settings.configProblem
  const base = getBaseUrl(settings)
  const files = profileFiles(io, settings.profile.value)
  const hasKey = io.environment.apiKey !== undefined || findSession(files)?.kind === 'api_key'
  if (!hasKey) getClientId(settings)
  const at = `profile ${settings.profile.value} at ${base.href.replace(/\/+$/, '')}`
  const file = getConfigPath(io)
  return okResult(existsSync(file) ? `${at} (${file})` : `${at}; no settings are saved yet`)
}

/**
 * Checks that the config and state directories can be written, and that only this user can access them (not on Windows). Creates
 * missing ones, as a sign-in does.
 */
export async function examineDirectories(io: Io): Promise<CheckResult> {
  const { config, state } = io.directories
  const tops = [config, state]
  for (const directory of tops) {
    await ensurePrivateDirectory(directory, 'leave')
    const path = join(directory, '.doctor.tmp')
    // Write with the operations that also write settings and claims: a temporary file, a flush and a rename.
    writeFileDurably(path, ' '.repeat(1024))
    removeFileDurably(path)
  }
  const isExposed = (path: string) => io.platform !== 'win32' && (lstatSync(path).mode & 0o077) !== 0
  // Check the permissions of the two directories only: whoever can't enter a directory can't reach the files in it.
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
 * Checks the credential store of the session, or of the next sign-in if there is none. In the keychain, saves, reads and deletes
 * a test secret; the file store is covered by `examineDirectories`.
 */
export async function examineCredentialStore(io: Io): Promise<CheckResult> {
  const profile = io.settings.profile.value
  // Skip etcd: `examineSession` reads the session from etcd.
  if (usesSharedStore(io.settings)) return skippedResult('the session is in etcd')
  const store = findSession(profileFiles(io, profile))?.store ?? getSetting('store', io.settings)
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
  // Delete the test lock's file. Real lock files are never deleted: otherwise two processes could lock different files of the
  // same name.
  rmSync(path, { force: true })
  if (excludes) return okResult('only one command at a time can refresh the session')
  const message = `locks in ${state} don't work, as on some network file systems`
  const hint = 'set MAILCLAIM_STATE_DIR to a directory on a local disk'
  throw new CliError('store_unavailable', message, { hint })
}

/** Checks that there is a credential for requests, without sending it to the service, which may still refuse it. */
export async function examineSession(io: Io): Promise<CheckResult> {
  const { state, inForce, problem } = await readCredentialStatus(io)
  if (problem !== undefined) throw problem
  if (inForce === 'MAILCLAIM_API_KEY')
    return okResult('using MAILCLAIM_API_KEY; to try it: mailclaim auth status --online')
  if (inForce === 'stored API key') return okResult('signed in with a stored API key')
  if (state === 'refreshing') return okResult('signed in; another command is refreshing the access token')
  return okResult(state === 'active' ? 'signed in' : 'signed in; the next command renews the access token')
}
