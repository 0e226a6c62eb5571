import type { Clock } from '../context.ts'
import { CliError } from '../errors.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { Fields } from '../storage/fields.ts'
import { readJson } from '../storage/json-file.ts'
import { type Moment, secondsSince } from '../storage/moment.ts'
import type { SessionPaths } from './paths.ts'

/** An access token with all that the hot path of scripts needs to know about it. */
export interface AccessToken {
  /** The sign-in that it belongs to. */
  readonly session: string
  /** The number of the refresh token that came with it (`Secret.generation`). */
  readonly generation: number
  readonly issuer: string
  readonly clientId: string
  readonly value: string
  readonly scope: string | null
  /** Whether it was asked for with less than the scope of the grant. */
  readonly narrowed: boolean
  readonly expiresInSeconds: number
  readonly received: Moment
}

/** An access token that would end within this many seconds is renewed first: the request has to arrive as well. */
const MARGIN_SECONDS = 60

/** Seconds until the token ends, by `expires_in` from its receipt; not above 0 when it has ended. */
export function secondsLeft(token: AccessToken, clock: Clock): number {
  return token.expiresInSeconds - secondsSince(token.received, clock)
}

/** Whether a command can start out with it: a minute is left (docs/token-safety.md, step 1). */
export function isFresh(token: AccessToken, clock: Clock): boolean {
  return secondsLeft(token, clock) >= MARGIN_SECONDS
}

/**
 * Whether one that another process has just got will do: where tokens live for less than a few minutes, a quarter of
 * their life is enough, or fifty processes would renew one after the other.
 */
export function isAdoptable(token: AccessToken, clock: Clock): boolean {
  return secondsLeft(token, clock) >= Math.min(MARGIN_SECONDS, token.expiresInSeconds / 4)
}

/**
 * Reads the cached access token: no lock, no keychain, no network. One that cannot be read is as good as none, because
 * it can be renewed at any time and the next write replaces it.
 */
export async function readAccessToken(paths: SessionPaths): Promise<AccessToken | undefined> {
  try {
    return await readJson(paths.accessToken, parseAccessToken)
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}

function parseAccessToken(value: unknown): AccessToken {
  const fields = new Fields(value, 1)
  return {
    session: fields.text('session'),
    generation: fields.number('generation'),
    issuer: fields.text('issuer'),
    clientId: fields.text('client_id'),
    value: fields.text('access_token'),
    scope: fields.textOrNull('scope'),
    narrowed: fields.oneOf('scope_is', 'granted', 'narrowed') === 'narrowed',
    expiresInSeconds: fields.number('expires_in'),
    received: {
      wall: fields.time('received_at'),
      sinceBoot: fields.number('received_since_boot'),
      boot: fields.textOrNull('boot'),
    },
  }
}

/** @throws CliError `cannot_write`, exit 1. */
export function writeAccessToken(paths: SessionPaths, token: AccessToken): void {
  const text = JSON.stringify(
    {
      version: 1,
      session: token.session,
      generation: token.generation,
      issuer: token.issuer,
      client_id: token.clientId,
      access_token: token.value,
      scope: token.scope,
      scope_is: token.narrowed ? 'narrowed' : 'granted',
      expires_in: token.expiresInSeconds,
      received_at: new Date(token.received.wall).toISOString(),
      received_since_boot: token.received.sinceBoot,
      boot: token.received.boot,
    },
    null,
    2,
  )
  writeDurable(paths.accessToken, `${text}\n`)
}

/** @throws CliError `cannot_write`, exit 1. */
export function removeAccessToken(paths: SessionPaths): void {
  removeDurable(paths.accessToken)
}
