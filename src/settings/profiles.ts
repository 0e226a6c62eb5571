import { usageError } from '../errors.ts'

/** Name of the profile that is used unless `--profile`, `MAILCLAIM_PROFILE` or `auth switch` chooses another. */
export const DEFAULT_PROFILE = 'default'

/** Matches a name that Windows reserves for a device, also with an extension, so that no directory can have it. */
const WINDOWS_DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i

/**
 * Whether the text is a valid profile name. Upper-case letters aren't allowed, because directory names on macOS and Windows are
 * case-insensitive, and two profiles would share a directory.
 */
export function isProfileName(text: string): boolean {
  return (
    /^[a-z0-9][a-z0-9._-]{0,63}$/.test(text) &&
    !text.includes('..') &&
    !text.endsWith('.') &&
    !WINDOWS_DEVICE.test(text)
  )
}

/** Returns a profile name unchanged if it is valid. @throws CliError `usage`, exit 2 */
export function validateProfileName(text: string): string {
  if (isProfileName(text)) return text
  throw usageError(
    `${JSON.stringify(text)} is not a profile name`,
    'use 1 to 64 lowercase letters, digits, dots, dashes or underscores, starting with a letter or a digit',
  )
}

/** Appends `--profile` to a command line that a hint suggests, unless the profile is named `default`. */
export function addProfileFlag(command: string, profile: string): string {
  return profile === DEFAULT_PROFILE ? command : `${command} --profile ${profile}`
}
