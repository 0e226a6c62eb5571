import { type ClientCertificate, HttpTransportError } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { parseJsonObject, TRANSPORT_HINTS } from '../../service/problems.ts'
import { appendPath } from '../../settings/addresses.ts'
import type { Io } from '../../terminal/io.ts'
import { excerpt } from '../../terminal/sanitize.ts'

/** Address of one etcd key, and the credentials for it; `user` is undefined without etcd's password authentication. */
export interface EtcdKeyAccess {
  readonly key: string
  /** Client URLs of the cluster's members; at least one. */
  readonly members: readonly URL[]
  readonly tls: ClientCertificate | undefined
  readonly user: { readonly name: string; readonly password: string } | undefined
}

/** Value of an etcd key as text, with the revision that a compare-and-swap expects. */
export interface EtcdValue {
  readonly text: string
  /** The key's `mod_revision`, which changes with every write. */
  readonly revision: string
}

type Json = Record<string, unknown>

/** Maximum milliseconds of a read from etcd, attempts at all members included. */
const READ_LIMIT_MS = 12_000
/** Maximum milliseconds for a request to one member in the first round over the members; later rounds allow more. */
const FIRST_TRY_MS = 2000
/**
 * Milliseconds, before jitter, to wait after the first round over the members, which may be electing a leader. Later waits are
 * longer.
 */
const PAUSE_MS = 100
const LOGIN = '/v3/auth/authenticate'
/** gRPC status code with which etcd rejects an invalid or expired authentication token. The client then authenticates again. */
const UNAUTHENTICATED = 16
/** Matches error messages of etcd after which a retry is pointless: an administrator must change users, roles or space first. */
const FINAL =
  /permission denied|authentication failed|authentication is not enabled|user name is empty|space exceeded/

/**
 * Creates a client for one key, over the JSON gateway of etcd 3 (https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/). Reads
 * are linearizable. If a member fails, the request goes to the next one, until the time is up.
 *
 * @param limitMs milliseconds from now for all requests together; no limit by default
 */
export function createEtcdKeyClient(
  { http, clock, random, interrupts: { signal } }: Io,
  { key, members, tls, user }: EtcdKeyAccess,
  limitMs = Number.POSITIVE_INFINITY,
) {
  const latest = clock.monotonic() + limitMs
  const at = encode(key)
  let token: string | undefined
  let turn = 0

  /**
   * Sends a request to one member after another until one succeeds or gives an error that matches `FINAL`. Allows at least
   * `FIRST_TRY_MS`, even if `limitMs` was used up while the process was suspended, but never more than what is left of the
   * client's own `limitMs`.
   *
   * @throws CliError as `read`
   */
  async function ask(path: string, request: Json, limitMs: number): Promise<Json> {
    const end = Math.min(clock.monotonic() + Math.max(limitMs, FIRST_TRY_MS), latest)
    const firstTry = Math.min(FIRST_TRY_MS, (end - clock.monotonic()) / members.length)
    const later = 'run the command again later'
    let [problem, hint] = ['no time left', later]
    for (let tries = 0; ; tries++) {
      const left = end - clock.monotonic()
      if (left <= 0) {
        const hosts = members.map(({ host }) => host).join(', ')
        throw new CliError('unreachable', `etcd doesn't answer at ${hosts}: ${problem}`, { hint })
      }
      const member = members[turn % members.length] as URL
      const round = Math.floor(tries / members.length) + 1
      const limit = Math.min(left, firstTry * round)
      const step = user !== undefined && token === undefined ? LOGIN : path
      try {
        const { status, body } = await post(member, step, step === LOGIN ? { ...user } : request, limit)
        // Accept only a body with a revision in its header, as every successful response of etcd has: a proxy may answer 200 as
        // well.
        if (status === 200 && (body['header'] as Json | undefined)?.['revision'] !== undefined) {
          if (step === path) return body
          token = String(body['token'])
          continue
        }
        const said = status === 200 ? 'the answer is not from etcd' : messageOf(body, status)
        if (FINAL.test(said)) {
          const hint = 'check its user, password, role and space (docs/fleet.md)'
          const message = `etcd refused the request (${member.host}): ${said}`
          throw new CliError('store_unavailable', message, { hint })
        }
        if (body['code'] === UNAUTHENTICATED) token = undefined
        problem = said
      } catch (error) {
        if (!(error instanceof HttpTransportError)) throw error
        signal.throwIfAborted()
        problem = error.message
        hint = TRANSPORT_HINTS[error.kind] ?? later
      }
      turn++
      if ((tries + 1) % members.length === 0) {
        const left = Math.max(0, end - clock.monotonic())
        await clock.sleep(Math.min(PAUSE_MS * round * (0.5 + random.fraction()), left), signal)
      }
    }
  }

  async function post(member: URL, path: string, request: Json, timeoutMs: number) {
    const { status, text, brokenBy } = await http.send({
      method: 'POST',
      url: appendPath(member, path),
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: token }),
      },
      body: JSON.stringify(request),
      timeoutMs,
      signal,
      ...(tls && { tls }),
    })
    if (brokenBy instanceof HttpTransportError) throw brokenBy
    // Treat a body that isn't a JSON object, such as a proxy's error page, as an object without fields.
    return { status, body: (parseJsonObject(text) ?? {}) as Json }
  }

  return {
    /**
     * Reads the value of the client's key, with its revision; undefined if the key doesn't exist.
     *
     * @throws CliError `unreachable`, exit 7; `store_unavailable`, exit 4, if etcd refused the request; the reason of an interrupt
     */
    read: async () => firstOf(await ask('/v3/kv/range', { key: at }, READ_LIMIT_MS)),
    /**
     * Writes the key if its revision is still the given one (compare-and-swap; "0" creates the key). Repeats the transaction
     * until a member answers: only the answer rules out that an earlier copy of the transaction is applied later.
     *
     * @returns `found`: the value after the transaction (undefined if the key doesn't exist); `isDone`: whether the answered copy
     *   of the transaction wrote it; if false, an earlier copy may have
     * @throws CliError as `read`; the transaction may have been applied, or be applied later
     */
    async swap(revision: string, text: string, limitMs: number) {
      const transaction = {
        compare: [{ key: at, target: 'MOD', result: 'EQUAL', mod_revision: revision }],
        success: [{ request_put: { key: at, value: encode(text) } }],
        failure: [{ request_range: { key: at } }],
      }
      const body = await ask('/v3/kv/txn', transaction, limitMs)
      if (body['succeeded'] === true)
        return { isDone: true, found: { text, revision: String((body['header'] as Json)['revision']) } }
      const [response] = listOf(body['responses'])
      return { isDone: false, found: firstOf((response?.['response_range'] ?? {}) as Json) }
    },
  }
}

const encode = (text: string) => Buffer.from(text, 'utf8').toString('base64')

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? (value as Json[]) : []
}

function firstOf(range: Json): EtcdValue | undefined {
  const [pair] = listOf(range['kvs'])
  if (pair === undefined) return undefined
  const text = Buffer.from(String(pair['value'] ?? ''), 'base64').toString('utf8')
  return { text, revision: String(pair['mod_revision']) }
}

function messageOf(body: Json, status: number): string {
  const said = body['message'] ?? body['error']
  return typeof said === 'string' ? excerpt(said, 200) : `HTTP status ${status}`
}
