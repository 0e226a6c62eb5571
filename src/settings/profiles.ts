import { usageError } from '../errors.ts'

/** The profile that is used if nothing names another. */
export const DEFAULT_PROFILE = 'default'

/** Names that Windows reserves for devices, whatever follows the first dot. */
const WINDOWS_DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/**
 * Whether a profile can have this name. It becomes a directory and part of a keychain account, so it must mean the same on
 * every system. Lower case only, because names that differ in case are one directory on macOS and Windows.
 */
export function isProfileName(text: string): boolean {
  return (
    /^[a-z0-9][a-z0-9._-]{0,63}$/.test(text) &&
    !text.includes('..') &&
    !text.endsWith('.') &&
    !WINDOWS_DEVICE.test(text)
  )
}

/** Checks a profile's name. @throws CliError `usage`, exit 2. */
export function parseProfileName(text: string): string {
  if (isProfileName(text)) return text
  throw usageError(
    `${JSON.stringify(text)} is not a profile name`,
    'use 1 to 64 lowercase letters, digits, dots, dashes or underscores, starting with a letter or a digit',
  )
}

/** A command line for a profile, for hints. */
export function withProfile(command: string, profile: string): string {
  return profile === DEFAULT_PROFILE ? command : `${command} --profile ${profile}`
}
