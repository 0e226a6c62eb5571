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
  /** The same, in base64: what somebody else has put there need not be text. */
  readonly base64: string
  /** When it was written. */
  readonly revision: string
  /** How often the key was written since it was created. */
  readonly version: string
}

/** What a replacement is compared with: the revision, and the value itself, because another cluster may count as far. */
export interface EtcdBase {
  readonly cluster: string
  /** `0` if nothing was there. */
  readonly revision: string
  /** In base64; undefined if nothing was there. */
  readonly base64: string | undefined
}

export interface EtcdReplaced extends EtcdAnswer {
  readonly succeeded: boolean
  /** Whether an earlier try had no answer: it may have succeeded, whatever the last one says. */
  readonly isRepeated: boolean
}

/** What one member says about itself. */
export interface MemberStatus {
  readonly url: string
  /** Undefined if it doesn't answer. */
  readonly version: string | undefined
  readonly isLeader: boolean
  /** Whether it belongs to another cluster than most of the members that answer. */
  readonly isElsewhere: boolean
  /** Whether it doesn't answer because one end doesn't accept the certificate of the other. */
  readonly lacksTrust: boolean
  /** Why it doesn't answer, or what it says is wrong with the cluster: alarms, for example. */
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
/** More than an answer with the largest value that etcd takes by default (1.5 MiB), in base64. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
/** Less than half of that, because a transaction has the old value and the new one. */
const MAX_VALUE_BYTES = 512 * 1024

/** Codes of gRPC that etcd's gateway hands through. */
const PERMISSION_DENIED = 7
const UNAUTHENTICATED = 16

/**
 * The keys of an etcd cluster, over the JSON gateway of its members (3.4 and later). Every operation is linearizable, so it
 * needs a majority of the members. What has no answer is asked again, of the next member: reading twice is harmless, and a
 * replacement applies once, because it compares what was read. Keys are never deleted: their first revision would come back.
 */
export class EtcdClient {
  readonly #context: EtcdContext
  readonly #access: EtcdAccess
  /** The member that answered last. Each process starts with another one. */
  #current: number
  #token: string | undefined
  /** The cluster of each member that has answered. */
  readonly #clusters = new Map<URL, string>()
  /** The cluster that was read. From then on, no other one is believed or written to. */
  #cluster: string | undefined

  constructor(context: EtcdContext, access: EtcdAccess) {
    this.#context = context
    this.#access = access
    this.#current = Math.floor(context.random.fraction() * access.members.length) % access.members.length
  }

  /**
   * Reads a key. The first time, that nothing is there is believed only if every member that answers belongs to the same
   * cluster: if one of the addresses is wrong, the value may be in the other cluster.
   *
   * @param isNothing whether a value says that nothing is there
   * @param until by the monotonic clock: when to stop trying, at the latest
   * @throws CliError `store_unavailable`, exit 7; `store_not_configured`, exit 3: no member can be reached with these
   *   certificates; `store_refused`, `store_value_unusable`, exit 4.
   */
  async read(key: string, isNothing: (text: string) => boolean, until?: number): Promise<EtcdAnswer> {
    const { body: answer } = await this.#ask(RANGE, { key: encode(key) }, isRange, { until })
    const header = headerOf(answer)
    const found = firstOf(answer)
    const isAbsent = found === undefined || isNothing(found.text)
    if (isAbsent && this.#cluster === undefined) await this.requireOneCluster()
    this.#cluster = header.cluster
    return { ...header, found }
  }

  /**
   * Replaces what is at a key if it is still what was read; of any number of processes, one succeeds.
   *
   * @param until by the monotonic clock: when to stop trying, at the latest
   * @returns whether this call replaced it. Only the first answer counts: if it got lost, a repetition finds the value
   *   replaced, and the value tells by whom.
   * @throws CliError as `read`. If it is `Unanswered`, the value may be replaced all the same, even later.
   */
  async replace(key: string, base: EtcdBase, text: string, until?: number): Promise<EtcdReplaced> {
    this.#cluster ??= base.cluster
    if (base.cluster !== this.#cluster) throw otherCluster()
    if (text.length > MAX_VALUE_BYTES) throw tooLarge('the session', MAX_VALUE_BYTES)
    // With a larger one, which somebody else has put there, the transaction would be larger than etcd takes.
    const value = base.base64 && decode(base.base64).length > MAX_VALUE_BYTES ? undefined : base.base64
    const at = encode(key)
    const isAt = { key: at, result: 'EQUAL' }
    const { body: answer, isRepeated } = await this.#ask(
      '/v3/kv/txn',
      {
        compare: [
          { ...isAt, target: 'MOD', mod_revision: base.revision },
          ...(value === undefined ? [] : [{ ...isAt, target: 'VALUE', value }]),
        ],
        success: [{ request_put: { key: at, value: encode(text) } }],
        failure: [{ request_range: { key: at } }],
      },
      isTransaction,
      { until, probe: { key: at, serializable: true } },
    )
    const header = headerOf(answer)
    const [response] = listOf(answer['responses'])
    const found = firstOf(objectOf(response?.['response_range']))
    return { ...header, found, succeeded: answer['succeeded'] === true, isRepeated }
  }

  /**
   * Proves, after a read and without writing, that this user may write to the key, and that etcd has room: no value has that
   * revision, but etcd checks what both branches of a transaction need.
   *
   * @throws CliError as `replace`.
   */
  async proveWritable(key: string): Promise<void> {
    await this.replace(key, { cluster: this.#cluster ?? '', revision: '-1', base64: undefined }, '')
  }

  /** Asks every member about itself. */
  async status(): Promise<MemberStatus[]> {
    const { members } = this.#access
    const answers = await Promise.all(members.map((member) => this.#statusOf(member)))
    const elsewhere = this.#elsewhere()
    return answers.map((answer, at) =>
      elsewhere.includes(members[at] as URL)
        ? { ...answer, isElsewhere: true, problem: 'it belongs to another cluster' }
        : answer,
    )
  }

  async #statusOf(member: URL): Promise<MemberStatus> {
    const silent = {
      url: member.origin,
      version: undefined,
      isLeader: false,
      isElsewhere: false,
      lacksTrust: false,
    }
    try {
      const { status, body } = await this.#post(
        member,
        '/v3/maintenance/status',
        {},
        FIRST_TRY_MS,
        this.#token,
      )
      if (status !== 200) {
        // Another cluster doesn't take the token of this one.
        await this.#probe(member).catch(ignoreRefusal)
        return { ...silent, problem: messageOf(body, status) }
      }
      const { leader, version, errors } = body
      const isLeader = leader !== undefined && leader === objectOf(body['header'])['member_id']
      const said = Array.isArray(errors) ? excerpt(errors.join('; '), 200).trim() : ''
      return { ...silent, version: String(version), isLeader, problem: said || undefined }
    } catch (error) {
      if (!(error instanceof TransportError)) throw error
      return { ...silent, lacksTrust: error.kind === 'certificate', problem: ofMember(error) }
    }
  }

  /**
   * Asks the members that have not answered yet which cluster they belong to. One that stays silent is ignored.
   *
   * @throws CliError `store_unavailable`, exit 7: they belong to several; `store_refused`, exit 4.
   */
  async requireOneCluster(): Promise<void> {
    await Promise.all(this.silent.map((member) => this.#probe(member)))
    this.#context.interrupts.signal.throwIfAborted()
    const elsewhere = this.#elsewhere()
    if (elsewhere.length > 0) throw otherCluster(elsewhere.map(({ origin }) => origin))
  }

  /** The members that have not answered yet: they may belong to another cluster. */
  get silent(): URL[] {
    return this.#access.members.filter((member) => !this.#clusters.has(member))
  }

  /**
   * Learns the cluster of a member. A login needs no token, which only the cluster that gave it takes.
   *
   * @throws CliError `store_refused`, exit 4: a member of the same cluster would take the same user.
   */
  async #probe(member: URL): Promise<void> {
    const { user } = this.#access
    const path = user === undefined ? RANGE : LOGIN
    const request = user ?? { key: encode('/'), serializable: true }
    try {
      const { status, body } = await this.#post(member, path, { ...request }, FIRST_TRY_MS, undefined)
      if (status !== 200) this.#problemOf(member, path, status, body)
    } catch (error) {
      if (!(error instanceof TransportError)) throw error
    }
  }

  /** The members that have answered and belong to another cluster than most of them, or than the first one. */
  #elsewhere(): URL[] {
    const clusterOf = (member: URL) => this.#clusters.get(member)
    const known = this.#access.members.filter((member) => this.#clusters.has(member))
    const sizeOf = (cluster: string | undefined) =>
      known.filter((member) => clusterOf(member) === cluster).length
    const largest = Math.max(...known.map((member) => sizeOf(clusterOf(member))))
    const own = known.map(clusterOf).find((cluster) => sizeOf(cluster) === largest)
    return known.filter((member) => clusterOf(member) !== own)
  }

  /**
   * Asks one member after the other, until one has an answer, the time is up, or certificates keep all of them from answering.
   *
   * @param isAnswer a proxy may say 200 too, and the body must not pass for an empty key.
   * @param until by the monotonic clock: when to stop trying, at the latest.
   * @param probe only for a write: a member that has not answered yet gets this before it.
   * @throws Unanswered a write was sent, and its outcome is not known.
   */
  async #ask(
    path: string,
    request: Json,
    isAnswer: (body: Json) => boolean,
    {
      until = Number.POSITIVE_INFINITY,
      probe,
    }: { readonly until?: number | undefined; readonly probe?: Json } = {},
  ): Promise<{ body: Json; isRepeated: boolean }> {
    const { clock, random, interrupts } = this.#context
    const { members, user } = this.#access
    const end = Math.min(clock.monotonic() + LIMIT_MS, until)
    let problem: string | undefined
    let isRepeated = false
    const untrusting = new Set<URL>()
    for (let tries = 0; ; ) {
      const left = end - clock.monotonic()
      const member = members[this.#current % members.length] as URL
      const wasRepeated: boolean = isRepeated
      const limit = Math.min(FIRST_TRY_MS * (tries + 1), left)
      try {
        if (untrusting.size === members.length) throw withoutTrust(problem)
        if (left <= 0) throw unavailable(members, problem ?? 'no time left')
        untrusting.delete(member)
        if (this.#isElsewhere(member)) problem = otherCluster().message
        else if (user !== undefined && this.#token === undefined && !isLogin(path)) {
          const { name, password } = user
          this.#token = String(
            (await this.#ask(LOGIN, { name, password }, hasToken, { until: end })).body['token'],
          )
          continue
        } else if (probe !== undefined && !this.#clusters.has(member)) {
          const { status, body } = await this.#post(member, RANGE, probe, limit, this.#token)
          if (status === 200 && hasHeader(body)) continue
          problem = this.#problemOf(member, path, status, body)
        } else {
          isRepeated = true
          const { status, body } = await this.#post(member, path, request, limit, this.#token)
          const isElsewhere = this.#isElsewhere(member)
          if (status === 200 && isAnswer(body) && !isElsewhere) return { body, isRepeated: wasRepeated }
          if (isRejection(body)) isRepeated = wasRepeated
          problem = isElsewhere ? otherCluster().message : this.#problemOf(member, path, status, body)
        }
      } catch (error) {
        if (!(error instanceof TransportError))
          throw probe !== undefined && isRepeated ? unanswered(error) : error
        interrupts.signal.throwIfAborted()
        if (error.sent === 'no') isRepeated = wasRepeated
        if (error.kind === 'certificate') untrusting.add(member)
        // The last try, cut short, says less than one before it.
        if (problem === undefined || limit < left) problem = `${member.host}: ${ofMember(error)}`
      }
      this.#current++
      // After each round: a new leader may have to be elected.
      if (++tries % members.length === 0) {
        const rounds = tries / members.length
        const pause = PAUSE_MS * rounds * (0.5 + random.fraction())
        await clock.sleep(Math.min(pause, Math.max(end - clock.monotonic(), 0)), interrupts.signal)
      }
    }
  }

  #isElsewhere(member: URL): boolean {
    const cluster = this.#clusters.get(member)
    return cluster !== undefined && this.#cluster !== undefined && cluster !== this.#cluster
  }

  /** Why an answer is none. @throws CliError `store_refused`, `store_unavailable`: no member will say anything else. */
  #problemOf(member: URL, path: string, status: number, body: Json): string {
    const problem = status === 200 ? 'the answer is not from etcd' : messageOf(body, status)
    if (isRefusal(body)) throw refused(problem, member)
    if (isOutOfSpace(problem)) throw outOfSpace(`database space exceeded (${member.host})`)
    // The token has expired, the member was restarted, or somebody's rights have changed.
    if (isStaleToken(body) && !isLogin(path)) this.#token = undefined
    return problem
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
    const { status } = response
    const body = await readJsonBody(response)
    if (status === 200 && hasHeader(body)) this.#clusters.set(member, headerOf(body).cluster)
    return { status, body }
  }
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof CliError)) throw error
}

const LOGIN = '/v3/auth/authenticate'
const RANGE = '/v3/kv/range'

function isLogin(path: string): boolean {
  return path === LOGIN
}

/** @throws CliError `store_value_unusable`, exit 4. */
async function readJsonBody({ status, body }: HttpResponse): Promise<Json> {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of body) {
    size += piece.length
    if (size > MAX_ANSWER_BYTES && status === 200) throw tooLarge('what is in etcd', MAX_ANSWER_BYTES)
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

/** A text as etcd's gateway takes it. */
export const encode = (text: string) => Buffer.from(text, 'utf8').toString('base64')
const decode = (base64: string) => Buffer.from(base64, 'base64').toString('utf8')

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
  const base64 = String(value ?? '')
  return { text: decode(base64), base64, revision: String(revision), version: String(version) }
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

const isOutOfSpace = (said: string) => /database space exceeded/.test(said)

/** Whether etcd has refused a request, which therefore changes nothing. */
function isRejection(body: Json): boolean {
  return isRefusal(body) || isStaleToken(body) || isOutOfSpace(messageOf(body, 0))
}

/** A write was sent to a member and had no answer: it may be applied, even later. */
export class Unanswered extends CliError {}

/** The error of a write that may have been applied all the same. */
export function unanswered(error: unknown): unknown {
  if (!(error instanceof CliError)) return error
  const { code, exit, message, hint } = error
  return new Unanswered(code, exit, message, { hint, cause: error })
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

/** Trying again is no use before somebody has replaced a certificate. */
function withoutTrust(problem: string | undefined): CliError {
  return new CliError(
    'store_not_configured',
    Exit.notConfigured,
    `etcd can't be reached with these certificates (${problem})`,
    { hint: 'check --store-ca and --store-cert; mailclaim doctor shows what each member says' },
  )
}

/** One of the addresses leads to the members of another cluster. @param at which ones, if that is known. */
export function otherCluster(at: readonly string[] = []): CliError {
  const message = `another cluster of etcd answered${at.length === 0 ? '' : ` at ${at.join(', ')}`}`
  return new CliError('store_unavailable', Exit.unavailable, message, {
    hint: 'check --store-url: its members have to belong to one cluster',
  })
}

/** Until somebody makes room, etcd can be read, and refuses every write. */
export function outOfSpace(said: string): CliError {
  return new CliError('store_unavailable', Exit.unavailable, `etcd refused to write: ${said}`, {
    hint: 'make room: etcdctl compact REVISION, then etcdctl defrag for each member, then etcdctl alarm disarm (docs/fleet.md)',
  })
}

function tooLarge(what: string, bytes: number): CliError {
  const message = `${what} is too large: more than ${bytes / 1024} KiB`
  return new CliError('store_value_unusable', Exit.notSignedIn, message, {
    hint: 'find out who can write to that key; mailclaim itself writes a few KiB there',
  })
}

/** The transport calls every peer a service. */
function ofMember({ message }: TransportError): string {
  return message.replace(/\bthe service\b/, 'the member')
}

function refused(problem: string, { host }: URL): CliError {
  const hint = /user name is empty/.test(problem)
    ? 'set MAILCLAIM_STORE_USER and MAILCLAIM_STORE_PASSWORD'
    : /authentication is not enabled/.test(problem)
      ? 'this etcd has no users: turn authentication on (docs/fleet.md), or unset MAILCLAIM_STORE_USER and MAILCLAIM_STORE_PASSWORD'
      : 'check MAILCLAIM_STORE_USER, MAILCLAIM_STORE_PASSWORD, and the role of that user (docs/fleet.md)'
  const message = `etcd refused the request (${host}): ${problem}`
  return new CliError('store_refused', Exit.notSignedIn, message, { hint })
}
