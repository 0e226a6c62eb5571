/**
 * The files that this program keeps, each with its schema. Written by hand: reading and writing come from one description,
 * which a validation library does not give, and the hot path loads nothing else. The configuration is not among them:
 * its values are parsed as they are on the command line (settings/config.ts).
 */
import type { Moment } from './moment.ts'
import {
  type Contents,
  type Field,
  field,
  file,
  list,
  named,
  nested,
  nullable,
  number,
  type ObjectSchema,
  object,
  oneOf,
  text,
  time,
} from './schema.ts'

const store = oneOf('keychain', 'file')

/** Twelve hex digits that name a sign-in and its secret. */
const sessionId = field('a session id', (value) =>
  typeof value === 'string' && /^[0-9a-f]{12}$/.test(value) ? value : undefined,
)

const oauthFields = <S extends string>(store: Field<S>) => ({
  kind: oneOf('oauth'),
  /** Names this sign-in and its secret: two sign-ins never share a location for their secrets. */
  id: sessionId,
  profile: text,
  /** The base URL that the session is bound to. */
  issuer: text,
  store,
  /** Wall-clock milliseconds of the sign-in. */
  signedInAt: time,
  clientId: text,
  /** The scope of the grant; null if nobody named any. */
  scope: nullable(text),
  resource: nullable(text),
  /** Why the service no longer accepts the session. */
  ended: nullable(
    nested(
      object({
        at: time,
        /** What the service said, if anything. */
        description: nullable(text),
        /** The last thing that is known about the token, to explain the end. */
        cause: oneOf('expired', 'interrupted', 'refused'),
        /** Wall-clock milliseconds of the receipt of the last refresh token. */
        renewedAt: time,
      }),
    ),
  ),
})

const oauthSession = object(oauthFields(store))

const storedApiKey = object({
  kind: oneOf('api_key'),
  id: sessionId,
  profile: text,
  /** The base URL that the key is meant for; null if none was configured. */
  issuer: nullable(text),
  store,
  signedInAt: time,
})

const kind = oneOf('oauth', 'api_key')

const session: ObjectSchema<Contents<typeof oauthSession> | Contents<typeof storedApiKey>> = {
  read: (fields) => (kind.read(fields, 'kind') === 'oauth' ? oauthSession : storedApiKey).read(fields),
  write: (record) => (record.kind === 'oauth' ? oauthSession.write(record) : storedApiKey.write(record)),
}

/** `session.json`: what is known about a sign-in or a stored API key. No secret in it. */
export const sessionFormat = file(1, session, 2)

/** A moment on both clocks: `received_at` and `received_since_boot`, for a property called `received`, and `boot`. */
const moment: Field<Moment> = {
  read: (fields, name) => ({
    wall: time.read(fields, `${name}_at`),
    sinceBoot: number.read(fields, `${name}_since_boot`),
    boot: nullable(text).read(fields, 'boot'),
  }),
  write: ({ wall, sinceBoot, boot }, name) => ({
    ...time.write(wall, `${name}_at`),
    [`${name}_since_boot`]: sinceBoot,
    boot,
  }),
}

const accessToken = object({
  /** The sign-in that it belongs to. */
  session: text,
  /** The number of the refresh token that came with it (`Secret.generation`). */
  generation: number,
  issuer: text,
  clientId: text,
  value: named('access_token', text),
  scope: nullable(text),
  /** Whether it was requested with less than the scope of the grant. */
  narrowed: named(
    'scope_is',
    field(
      'granted or narrowed',
      (value) => (value === 'narrowed' ? true : value === 'granted' ? false : undefined),
      (narrowed) => (narrowed ? 'narrowed' : 'granted'),
    ),
  ),
  expiresInSeconds: named('expires_in', number),
  received: moment,
})

/** `access-token.json`: an access token with everything that the hot path of scripts needs to know about it. */
export const accessTokenFormat = file(1, accessToken, 2)

const secret = object({
  /** Counts the refresh tokens of a session from 1: of two copies, the higher number is the newer one. */
  generation: number,
  /** Wall-clock milliseconds of its receipt: a refresh token lives 60 days from then. */
  issuedAt: time,
  value: named('secret', text),
})

/** `secret.….json`: a refresh token or an API key. */
export const secretFormat = file(1, secret)

/**
 * A session in etcd, before it is encrypted. Its number of writes, and the cluster that it was written to, show that it was
 * not put back from a copy.
 */
export const sharedSessionFormat = file(
  1,
  object({
    record: nested(object(oauthFields(oneOf('etcd')))),
    secret: nested(secret),
    token: nullable(nested(accessToken)),
    /**
     * That the refresh token may have been sent. `writer` names the write that said so, and `host` the machine: whoever wrote
     * the value later, with the entry in it, is not renewing the session. Null in an entry of an earlier version.
     */
    journal: nullable(nested(object({ sha256: text, writer: text, host: nullable(text), sentAt: time }))),
    /** The names of the journal entries of this refresh token, the newest last, also of those that were removed. */
    attempts: field('a list of names', (value) =>
      Array.isArray(value) && value.every((name) => typeof name === 'string')
        ? (value as readonly string[])
        : undefined,
    ),
    /** A random name of this write, so that its author recognizes it. */
    writer: text,
    /** The machine that wrote it. */
    host: text,
    writtenAt: time,
    cluster: text,
    /** How often the key has been written, this write included. */
    writes: text,
  }),
)

/** `shared.….json`: the value that this machine has seen last at one key of one cluster of etcd. */
export const sharedMemoryFormat = file(
  1,
  object({
    /** Null: signed out everywhere. */
    session: nullable(sessionId),
    /** When, or when it was signed out. */
    signedInAt: time,
    generation: number,
    /** The newest of its `attempts`. */
    attempt: nullable(text),
  }),
  2,
)

/** What a logout puts in place of a session in etcd. It takes no key, so it is not encrypted. */
export const signedOutFormat = file(
  1,
  object({
    /** A random name, so that no two of them are the same. */
    signedOut: text,
    /** The machine that did it. */
    host: text,
    /** Wall-clock milliseconds, by its clock. */
    at: time,
  }),
)

/**
 * `pending.….json`: a session, encrypted, that could not be put into etcd. The rest says, without the key, whether it is still
 * of use, and is authenticated with it.
 */
export const pendingFormat = file(
  1,
  object({
    key: text,
    /** The id of the cluster that it is for. */
    cluster: text,
    session: sessionId,
    /** Of the refresh token in it. */
    generation: number,
    /** The journal entry that it settles. */
    writer: text,
    /** The revision that the entry was written over. */
    revision: text,
    sealed: text,
  }),
)

/** `journal.….json`: a refresh token may have been sent. Which one, the file's name says. */
export const journalFormat = file(1, object({ sentAt: time }))

/** `superseded.json`: the keychain items of a profile, so that none is forgotten. */
export const supersededFormat = file(1, object({ keychain: list(object({ account: text })) }), 2)

/** A claim as the service sent it; only what finds it again is checked. */
const claim = field('a claim', (value) => {
  const { name, domain_id } = (value ?? {}) as { name?: unknown; domain_id?: unknown }
  return typeof name === 'string' && typeof domain_id === 'string' ? (value as object) : undefined
})

/** `claims/<profile>/….json`: a claim as it was seen last, and whether it is gone since. Both times are ISO 8601. */
export const claimFormat = file(1, object({ issuer: text, seen_at: text, gone_at: nullable(text), claim }))
