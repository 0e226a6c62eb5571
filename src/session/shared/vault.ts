import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Context } from '../../context.ts'
import {
  type EtcdAnswer,
  type EtcdBase,
  EtcdClient,
  encode,
  Unanswered,
  unanswered,
} from '../../credentials/etcd/client.ts'
import { inEtcd, type SealingKeys, seal, unseal, unusable } from '../../credentials/etcd/sealed.ts'
import { CliError, Exit } from '../../errors.ts'
import { loginCommand } from '../../settings/login-command.ts'
import type { Settings } from '../../settings/settings.ts'
import { writeDurable } from '../../storage/durable-file.ts'
import { sharedMemoryFormat, sharedSessionFormat, signedOutFormat } from '../../storage/file-formats.ts'
import { readJson } from '../../storage/json-file.ts'
import type { Contents } from '../../storage/schema.ts'
import { withProfile } from '../messages.ts'
import { ensureProfileDirectory, type SessionPaths, sessionPaths } from '../paths.ts'
import type { SignIn } from '../record.ts'
import { type SharedAccess, sealingKeys, sharedAccess } from './access.ts'

/** What a session in etcd takes from the context. */
export type SharedContext = Pick<
  Context,
  'http' | 'clock' | 'random' | 'interrupts' | 'directories' | 'environment' | 'program' | 'stderr'
>
export type SharedSettings = Pick<Settings, 'profile' | 'chosen'>

export type SharedContents = Contents<typeof sharedSessionFormat>
/** What a writer says; the rest says who wrote it where. A journal of `own` is that of this write. */
export type NewContents = Pick<SharedContents, 'record' | 'secret' | 'token'> & {
  readonly journal: SharedContents['journal'] | { readonly sha256: string; readonly sentAt: number }
}

/** What a replacement is compared with. */
export interface Base extends EtcdBase {
  readonly version: string
  /** Of the session there, if there is one that could be read. */
  readonly lineage?: Lineage | undefined
}

/** Which refresh token it is, and each time it may have been sent. */
type Lineage = { readonly session: string } & Pick<SharedContents['secret'], 'generation'> &
  Pick<SharedContents, 'attempts'>

/** How many journal entries a value names. */
const MAX_ATTEMPTS = 100

export interface SharedValue extends Base {
  readonly contents: SharedContents
}

/** That nobody is signed in. */
export interface NoValue extends Base {
  /** Which machine has signed all of them out, and when. `unknown`: what this machine has seen there is gone. */
  readonly signedOut: SignedOut | 'unknown' | undefined
}

type Memory = Contents<typeof sharedMemoryFormat>

/** What a logout puts in place of the session. The key stays, so that no write from before it can apply after it. */
export type SignedOut = Contents<typeof signedOutFormat>

export type Replaced =
  | { readonly kind: 'done'; readonly value: SharedValue }
  /**
   * Somebody else was faster; undefined if nobody is signed in anymore. `isRepeated`: this write may have been there
   * before.
   */
  | { readonly kind: 'lost'; readonly current: SharedValue | undefined; readonly isRepeated: boolean }

/** The value of one profile in etcd: encrypted, and checked against copies that are put back. */
export class SharedVault {
  readonly access: SharedAccess
  readonly client: EtcdClient
  readonly paths: SessionPaths
  readonly #context: SharedContext
  readonly #settings: SharedSettings
  #keys: SealingKeys | undefined
  /** When the latest sign-in, or logout, that was read or remembered happened, in wall-clock milliseconds. */
  #latest = 0

  /** @throws CliError `store_not_configured`, exit 3. */
  constructor(context: SharedContext, settings: SharedSettings) {
    this.access = sharedAccess(context, settings)
    this.client = new EtcdClient(context, this.access.etcd)
    this.paths = sessionPaths(context, settings.profile.value)
    this.#context = context
    this.#settings = settings
  }

  /** Read when it is needed: removing a session takes no key. */
  get keys(): SealingKeys {
    this.#keys ??= sealingKeys(this.#context, this.#settings)
    return this.#keys
  }

  /**
   * Reads the value, and refuses it if etcd was set back to an earlier state since this machine read or wrote it. Its contents
   * tell, not etcd's revision, which other writes move on. The value that this machine has seen last has to be among those
   * that led to this one:
   *
   * - The generation of a session never falls.
   * - As long as it stays the same, `attempts` names the journal entries that have been written, also those that were removed.
   *   Each write takes the list over from the value that it is compared with. So an entry that this machine has seen, its own
   *   before the token leaves, is missing only if it was written after the state that etcd was set back to: the token may have
   *   been sent. No write after that brings its name back. If the entry has left the list because there were too many others,
   *   the value is refused, too, until the next renewal.
   * - Each sign-in is dated after the session that it replaces, or its logout (`signInTime`), so another session that isn't
   *   later is one from before.
   *
   * @param until by the monotonic clock: when to stop trying, at the latest.
   * @returns what to compare a new one with, if nothing is there.
   * @throws CliError `store_key_wrong`, `store_value_unusable`, `store_restored`, `store_refused`, exit 4;
   *   `store_not_configured`, exit 3; `store_unavailable`, exit 7.
   */
  async read(until?: number): Promise<SharedValue | NoValue> {
    const { keys } = this
    let answer = await this.client.read(this.access.key, isSignedOut, until)
    const known = await this.recall(answer.cluster)
    let value = await this.#open(answer, keys)
    const isRestored = () =>
      known !== undefined && (value === undefined ? known.session !== null : isEarlier(value.contents, known))
    // Another process of this machine may have seen a newer one since etcd answered.
    if (isRestored()) {
      answer = await this.client.read(this.access.key, isSignedOut, until)
      value = await this.#open(answer, keys)
    }
    if (value === undefined) {
      const signedOut = await this.rememberLogout(answer.cluster, answer.found?.text, known)
      return { ...baseOf(answer), signedOut: signedOut ?? (known && 'unknown') }
    }
    if (value.contents.cluster !== answer.cluster)
      throw this.restored('it was written to another cluster of etcd')
    if (isRestored()) throw this.restored('it is older than the one that this machine has seen last')
    await this.#rememberValue(value, known)
    return value
  }

  /**
   * Replaces the value if it is still what was read. This machine remembers it before anything else happens: a journal entry
   * before its token leaves.
   *
   * @param writer a new random name of this write.
   * @param until by the monotonic clock: when to stop trying, at the latest.
   * @throws CliError as `read`; `store_unavailable`: if it is `Unanswered`, it may be replaced all the same, even later.
   */
  async replace(base: Base, next: NewContents, writer: string, until?: number): Promise<Replaced> {
    const { cluster } = base
    const { journal } = next
    const contents: SharedContents = {
      ...next,
      journal: journal === null || 'writer' in journal ? journal : { ...journal, writer, host: this.host },
      attempts: attemptsOf(base, next, writer),
      writer,
      host: this.host,
      writtenAt: this.#context.clock.now(),
      cluster,
      writes: String(BigInt(base.version) + 1n),
    }
    const sealed = await seal(sharedSessionFormat.text(contents), this.access.key, this.keys)
    const answer = await this.client.replace(this.access.key, base, sealed, until)
    // The first answer may have been lost.
    const isOurs = answer.succeeded || answer.found?.text === sealed
    const { revision } = answer.succeeded ? answer : (answer.found ?? answer)
    const value = isOurs
      ? {
          revision,
          version: contents.writes,
          cluster,
          base64: encode(sealed),
          contents,
          lineage: lineageOf(contents),
        }
      : await this.#open(answer, this.keys).catch((error: unknown) => {
          // What can't be read may have come after this write.
          throw answer.isRepeated ? unanswered(error) : error
        })
    // `auth rekey` may have encrypted the entry once more before the answer came.
    if (value === undefined || (!isOurs && value.contents.journal?.writer !== writer))
      return { kind: 'lost', current: value, isRepeated: answer.isRepeated }
    await this.#rememberValue(value)
    return { kind: 'done', value }
  }

  /**
   * When a new sign-in, or a logout, is said to have happened: by the clock, but always after the session or the logout that it
   * replaces, and what this machine has seen last. Clocks have to agree only if what it replaces can't be read, or is gone, and
   * this machine has never seen it.
   */
  signInTime({ signedInAt }: Pick<SignIn, 'signedInAt'>): number {
    return Math.max(signedInAt, this.#latest + 1)
  }

  /** The id of the session in an answer; undefined if there is none, or it can't be decrypted. */
  async sessionIn(answer: EtcdAnswer): Promise<string | undefined> {
    try {
      return (await this.#open(answer, this.keys))?.contents.record.id
    } catch (error) {
      if (error instanceof CliError) return undefined
      throw error
    }
  }

  /** Names this machine to the others. */
  get host(): string {
    return this.#context.program.host || 'unknown'
  }

  newWriter(): string {
    return Buffer.from(this.#context.random.bytes(16)).toString('hex')
  }

  /** @returns undefined if nobody is signed in. */
  async #open(answer: EtcdAnswer, keys: SealingKeys): Promise<SharedValue | undefined> {
    const { found } = answer
    if (found === undefined || !isSession(answer)) return undefined
    const { key } = this.access
    const text = await unseal(found.text, key, keys)
    let contents: SharedContents
    try {
      contents = sharedSessionFormat.parse(JSON.parse(text))
    } catch (error) {
      throw unusable(inEtcd(key), error instanceof Error ? error.message : String(error))
    }
    if (contents.writes !== found.version) throw unusable(inEtcd(key), 'an earlier copy of it was put back')
    this.#latest = Math.max(this.#latest, contents.record.signedInAt)
    return { ...baseOf(answer), contents, lineage: lineageOf(contents) }
  }

  /** The profile's session at another prefix or in another cluster is another session. */
  #memory(cluster: string): string {
    const place = createHash('sha256').update(`${this.access.key} ${cluster}`).digest('hex')
    return join(this.paths.directory, `shared.${place.slice(0, 16)}.json`)
  }

  /** What this machine has seen last there, which `signInTime` then heeds. */
  async recall(cluster: string): Promise<Memory | undefined> {
    try {
      const known = await readJson(this.#memory(cluster), sharedMemoryFormat.parse)
      this.#latest = Math.max(this.#latest, known?.signedInAt ?? 0)
      return known
    } catch (error) {
      if (error instanceof CliError) return undefined
      throw error
    }
  }

  /** A machine that can't remember is protected by what is in the value. */
  async #remember(cluster: string, seen: Memory): Promise<void> {
    try {
      await ensureProfileDirectory(this.#context, this.paths)
      writeDurable(this.#memory(cluster), sharedMemoryFormat.text(seen))
    } catch (error) {
      if (!(error instanceof CliError)) throw error
    }
  }

  async #rememberValue({ contents, cluster }: SharedValue, known?: Memory): Promise<void> {
    const { record, secret, attempts } = contents
    const isSame = known?.session === record.id && known.generation === secret.generation
    const attempt = attempts.at(-1) ?? null
    if (isSame && known.attempt === attempt) return
    const { id: session, signedInAt } = record
    await this.#remember(cluster, { session, signedInAt, generation: secret.generation, attempt })
  }

  /**
   * From now on this machine uses no session from before the logout, if that is what is in etcd.
   *
   * @param known from before the logout was seen there: another process may have signed in since.
   * @returns the logout; undefined if that is something else, or nothing.
   */
  async rememberLogout(
    cluster: string,
    note: string | undefined,
    known: Memory | undefined,
  ): Promise<SignedOut | undefined> {
    const signedOut = note === undefined ? undefined : signedOutOf(note)
    if (signedOut === undefined) return undefined
    const signedInAt = Math.max(signedOut.at, known?.signedInAt ?? 0)
    this.#latest = Math.max(this.#latest, signedInAt)
    if (known?.session !== null || known.signedInAt !== signedInAt)
      await this.#remember(cluster, { session: null, signedInAt, generation: 0, attempt: null })
    return signedOut
  }

  /** A refresh token from before a restore may have been used since. */
  restored(why: string): CliError {
    return new CliError(
      'store_restored',
      Exit.notSignedIn,
      `the session in etcd (${this.access.key}) is not used: ${why}. It was probably restored from a backup, or somebody signed in where the clock is behind: its refresh token may have been used since. Nothing was sent`,
      {
        hint: `sign in again on this machine, for the whole fleet: ${loginCommand({ profile: this.paths.profile })}`,
      },
    )
  }
}

/** Whether the value is from before what this machine has seen last. See `SharedVault.read`. */
function isEarlier({ record, secret, attempts }: SharedContents, known: Memory): boolean {
  if (record.id !== known.session) return record.signedInAt <= known.signedInAt
  if (secret.generation !== known.generation) return secret.generation < known.generation
  return known.attempt !== null && !attempts.includes(known.attempt)
}

function lineageOf({ record, secret, attempts }: SharedContents): Lineage {
  return { session: record.id, generation: secret.generation, attempts }
}

/** The journal entries of the refresh token, with that of this write. */
function attemptsOf({ lineage }: Base, { record, secret, journal }: NewContents, writer: string): string[] {
  const isSame = lineage?.session === record.id && lineage.generation === secret.generation
  const before = isSame ? lineage.attempts : []
  const isAttempt = journal !== null && !('writer' in journal)
  return [...before, ...(isAttempt ? [attemptName(writer)] : [])].slice(-MAX_ATTEMPTS)
}

const attemptName = (writer: string) => writer.slice(0, 8)

/** Whether a value comes after a journal entry of its refresh token. @param writer of the entry. */
export function isAttempt({ attempts }: SharedContents, writer: string): boolean {
  return attempts.includes(attemptName(writer))
}

/** What to compare a replacement of this with. */
export function baseOf({ found, cluster }: EtcdAnswer): Base {
  const { revision = '0', version = '0', base64 } = found ?? {}
  return { revision, version, base64, cluster }
}

/** What a logout has put there; undefined if it is anything else. */
function signedOutOf(text: string): SignedOut | undefined {
  try {
    return signedOutFormat.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Whether a logout has put there what is there. */
export function isSignedOut(text: string): boolean {
  return signedOutOf(text) !== undefined
}

/** Whether there is a session, even one that can't be decrypted. */
export function isSession({ found }: EtcdAnswer): boolean {
  return found !== undefined && !isSignedOut(found.text)
}

/** Whether there is a value. */
export function isValue(found: SharedValue | Base): found is SharedValue {
  return 'contents' in found
}

const NOT_DONE = {
  stored: 'The new session was not stored, and the previous one is unchanged',
  removed: 'The session was not removed',
} as const

/** Says of a session that couldn't be stored or removed what is known about it. */
export function failedTo(outcome: 'stored' | 'removed', profile: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof CliError)) throw error
    const isOpen = error instanceof Unanswered
    const then = isOpen ? `The session may be ${outcome} all the same, even later` : NOT_DONE[outcome]
    const hint = isOpen
      ? `check with ${withProfile('mailclaim auth status', profile)} before you sign in again; mailclaim doctor shows which members answer`
      : error.hint
    throw new CliError(error.code, error.exit, `${error.message}. ${then}`, { hint, cause: error })
  }
}
