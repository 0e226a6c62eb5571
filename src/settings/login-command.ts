import { DEFAULT_PROFILE } from './profiles.ts'

export interface LoginCommandOptions {
  readonly profile: string
  readonly [other: string]: unknown
}

/** The `mailclaim login` that signs in to a profile, for hints: it asks for the rest, or remembers it. */
export function loginCommand({ profile }: LoginCommandOptions): string {
  return profile === DEFAULT_PROFILE ? 'mailclaim login' : `mailclaim login --profile ${profile}`
}
