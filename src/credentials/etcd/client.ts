import { type Context, type HttpResponse, type TlsIdentity, TransportError } from '../../context.ts'
import { CliError, Exit } from '../../errors.ts'
import { operationUrl } from '../../settings/addresses.ts'
import { excerpt } from '../../terminal/sanitize.ts'

/** How to reach the members. */
export interface EtcdAccess {
  readonly members: readonly URL[]
  readonly tls: TlsIdentity
  /** Undefined if the cluster has no users. */
  readonly user: { readonly name: string; readonly password: string } | undefined
}

/** What is at a key, and when. Revisions are 64-bit numbers, kept as text. */
export interface EtcdAnswer {
  readonly cluster: string
  /** Of the whole store. */
  readonly revision: string
  readonly found: EtcdValue | undefined
}

export interface EtcdValue {
  readonly text: string
  /** When it was written. */
  readonly revision: string
  /** How often the key was written since it was created. */
  readonly version: string
}

/** What one member says about itself. */
export interface MemberStatus {
  readonly url: string
  /** Undefined if it doesn't answer. */
  readonly version: string | undefined
  readonly isLeader: boolean
  readonly problem: string | undefined
}

type EtcdContext = Pick<Context, 'http' | 'clock' | 'random' | 'interrupts'>
type Json = Readonly<Record<string, unknown>>

/**
 * How long a member may take before the next one is asked: an election takes a second or two. Longer each time, because a
 * member that is only busy still works on what was given up.
 */
const FIRST_TRY_MS = 2000
/** How long an operation is tried, with all members in turn. */
const LIMIT_MS = 12_000
const PAUSE_MS = 150
/** Far more than any answer about one key. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** Codes of gRPC that etcd's gateway hands through. */
const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16

/**
 * The keys of an etcd cluster, over the JSON gateway of its members (3.4 and later). Every operation is linearizable, so it
 * needs a majority of the members. What has no answer is asked again, of the next member: reading twice is harmless, and a
 * replacement applies once, because it compares the revision.
 */
export class EtcdClient {
  readonly #context: EtcdContext
  readonly #access: EtcdAccess
  /** The member that answered last. Each process starts with another one. */
  #current: number
  #token: string | undefined

  constructor(context: EtcdContext, access: EtcdAccess) {
    this.#context = context
    this.#access = access
    this.#current = Math.floor(context.random.fraction() * access.members.length) % access.members.length
  }

  /** @throws CliError `store_unavailable`, exit 7; `store_refused`, exit 4. */
  async read(key: string): Promise<EtcdAnswer> {
    const answer = await this.#ask('/v3/kv/range', { key: encode(key) }, isRange)
    return { ...headerOf(answer), found: firstOf(answer) }
  }

  /**
   * Replaces what is at a key if it is still what was read; of any number of processes, one succeeds.
   *
   * @param revision of what was read; `0` if nothing was there.
   * @param text undefined removes it.
   * @returns whether this call replaced it. Only the first answer counts: if it got lost, a repetition finds the value
   *   replaced, and the value tells by whom.
   * @throws CliError `store_unavailable`, exit 7: it may or may not be replaced, even later; `store_refused`, exit 4.
   */
  async replace(
    key: string,
    revision: string,
    text: string | undefined,
  ): Promise<EtcdAnswer & { readonly succeeded: boolean }> {
    const at = encode(key)
    const change =
      text === undefined
        ? { request_delete_range: { key: at } }
        : { request_put: { key: at, value: encode(text) } }
    const answer = await this.#ask(
      '/v3/kv/txn',
      {
        compare: [{ target: 'MOD', key: at, mod_revision: revision, result: 'EQUAL' }],
        success: [change],
        failure: [{ request_range: { key: at } }],
      },
      isTransaction,
    )
    const [response] = listOf(answer['responses'])
    const found = firstOf(objectOf(response?.['response_range']))
    return { ...headerOf(answer), found, succeeded: answer['succeeded'] === true }
  }

  /** Asks every member about itself. */
  async status(): Promise<MemberStatus[]> {
    return Promise.all(
      this.#access.members.map(async (member) => {
        const url = member.origin
        try {
          const { status, body } = await this.#post(
            member,
            '/v3/maintenance/status',
            {},
            FIRST_TRY_MS,
            this.#token,
          )
          if (status !== 200)
            return { url, version: undefined, isLeader: false, problem: messageOf(body, status) }
          const { leader, version } = body
          const isLeader = leader !== undefined && leader === objectOf(body['header'])['member_id']
          return { url, version: String(version), isLeader, problem: undefined }
        } catch (error) {
          if (!(error instanceof TransportError)) throw error
          return { url, version: undefined, isLeader: false, problem: error.message }
        }
      }),
    )
  }

  /**
   * Asks one member after the other, until one has an answer or the time is up.
   *
   * @param isAnswer a proxy may say 200 too, and the body must not pass for an empty key.
   */
  async #ask(path: string, request: Json, isAnswer: (body: Json) => boolean): Promise<Json> {
    const { clock, random, interrupts } = this.#context
    const { members, user } = this.#access
    const end = clock.monotonic() + LIMIT_MS
    let problem = 'no time left'
    for (let tries = 0; ; ) {
      const left = end - clock.monotonic()
      if (left <= 0) throw unavailable(members, problem)
      const member = members[this.#current % members.length] as URL
      try {
        const limit = Math.min(FIRST_TRY_MS * (tries + 1), left)
        if (user !== undefined && this.#token === undefined && !isLogin(path)) {
          const { name, password } = user
          this.#token = String((await this.#ask(LOGIN, { name, password }, hasToken))['token'])
          continue
        }
        const { status, body } = await this.#post(member, path, request, limit, this.#token)
        if (status === 200 && isAnswer(body)) return body
        problem = status === 200 ? 'the answer is not from etcd' : messageOf(body, status)
        if (isRefusal(body)) throw refused(problem, member)
        // The token has expired, the member was restarted, or somebody's rights have changed.
        if (isStaleToken(body) && !isLogin(path)) this.#token = undefined
      } catch (error) {
        if (!(error instanceof TransportError)) throw error
        interrupts.signal.throwIfAborted()
        problem = error.message
      }
      this.#current++
      // After each round: a new leader may have to be elected.
      if (++tries % members.length === 0) {
        const rounds = tries / members.length
        await clock.sleep(PAUSE_MS * rounds * (0.5 + random.fraction()), interrupts.signal)
      }
    }
  }

  async #post(
    member: URL,
    path: string,
    request: Json,
    timeoutMs: number,
    token: string | undefined,
  ): Promise<{ status: number; body: Json }> {
    const { http, interrupts } = this.#context
    const response = await http.send({
      method: 'POST',
      url: operationUrl(member, path),
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && !isLogin(path) && { authorization: token }),
      },
      body: JSON.stringify(request),
      timeoutMs,
      signal: interrupts.signal,
      tls: this.#access.tls,
    })
    return { status: response.status, body: await readJsonBody(response) }
  }
}

const LOGIN = '/v3/auth/authenticate'

function isLogin(path: string): boolean {
  return path === LOGIN
}

async function readJsonBody({ body }: HttpResponse): Promise<Json> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size > MAX_ANSWER_BYTES) break
    pieces.push(piece)
  }
  try {
    return objectOf(JSON.parse(Buffer.concat(pieces).toString('utf8')))
  } catch {
    // A proxy's page, say: the status has to be enough.
    return {}
  }
}

const isText = (value: unknown) => typeof value === 'string' && value !== ''
const hasToken = (body: Json) => isText(body['token'])

function hasHeader(body: Json): boolean {
  const { cluster_id: cluster, revision } = objectOf(body['header'])
  return isText(cluster) && isText(revision)
}

function isRange(body: Json): boolean {
  return hasHeader(body) && hasPairs(body)
}

/** A failed transaction leaves `succeeded` out, but says what is at the key. */
function isTransaction(body: Json): boolean {
  if (!hasHeader(body)) return false
  if (body['succeeded'] === true) return true
  const range = listOf(body['responses'])[0]?.['response_range']
  return typeof range === 'object' && range !== null && hasPairs(range as Json)
}

/** Without pairs, etcd doesn't count any either. */
function hasPairs({ kvs, count }: Json): boolean {
  if (kvs === undefined) return count === undefined || count === '0'
  return (
    Array.isArray(kvs) && listOf(kvs).every((pair) => isText(pair['mod_revision']) && isText(pair['version']))
  )
}

const encode = (text: string) => Buffer.from(text, 'utf8').toString('base64')
const decode = (text: unknown) => Buffer.from(String(text ?? ''), 'base64').toString('utf8')

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}

function headerOf(answer: Json): { cluster: string; revision: string } {
  const { cluster_id: cluster, revision } = objectOf(answer['header'])
  return { cluster: String(cluster ?? ''), revision: String(revision ?? '0') }
}

function firstOf(answer: Json): EtcdValue | undefined {
  const [pair] = listOf(answer['kvs'])
  if (pair === undefined) return undefined
  const { value, mod_revision: revision, version } = pair
  return { text: decode(value), revision: String(revision), version: String(version) }
}

function messageOf(body: Json, status: number): string {
  const said = body['message'] ?? body['error']
  return typeof said === 'string' ? excerpt(said, 200) : `HTTP status ${status}`
}

/** Whether no member will ever say anything else. */
function isRefusal(body: Json): boolean {
  const said = messageOf(body, 0)
  return (
    body['code'] === PERMISSION_DENIED ||
    /authentication failed|authentication is not enabled|user name is empty/.test(said)
  )
}

function isStaleToken(body: Json): boolean {
  const said = messageOf(body, 0)
  return body['code'] === UNAUTHENTICATED || /revision (of|in) (auth store|header) is old/.test(said)
}

function unavailable(members: readonly URL[], problem: string): CliError {
  const names = members.map(({ host }) => host).join(', ')
  return new CliError(
    'store_unavailable',
    Exit.unavailable,
    `etcd doesn't answer: no majority of its members can be reached through ${names} (${problem})`,
    { hint: 'run the command again later; mailclaim doctor shows which members answer' },
  )
}

function refused(problem: string, { host }: URL): CliError {
  const isName = /user name is empty/.test(problem)
  return new CliError('store_refused', Exit.notSignedIn, `etcd refused the request (${host}): ${problem}`, {
    hint: isName
      ? 'set MAILCLAIM_STORE_USER and MAILCLAIM_STORE_PASSWORD'
      : 'check MAILCLAIM_STORE_USER, MAILCLAIM_STORE_PASSWORD, and the role of that user (docs/fleet.md)',
  })
}
