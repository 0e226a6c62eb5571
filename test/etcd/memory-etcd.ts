import { type HttpRequest, type HttpResponse, HttpTransportError } from '../../src/context.ts'
import { jsonResponse } from '../fake-context.ts'

/** Fate of a request to etcd. */
export type Fate =
  | 'pass'
  /** The request doesn't arrive. */
  | 'lost'
  /** The request is applied, and the answer is lost. */
  | 'unanswered'
  /** The request has no answer, and is applied when `arrive` is called. */
  | 'late'
  /** The request is applied, and its process is killed before the answer. */
  | 'killed'

/** Creates a cluster of etcd in memory that answers like the JSON gateway. */
export function createMemoryEtcd() {
  const kept = new Map<string, { value: string; revision: number }>()
  let revision = 1
  let late: (() => void)[] = []
  let isTokenGood = false

  const answer = (body: object) =>
    jsonResponse(200, { header: { cluster_id: '1', revision: String(revision) }, ...body })
  const range = (key: string) => {
    const found = kept.get(key)
    return found === undefined ? {} : { kvs: [{ value: found.value, mod_revision: String(found.revision) }] }
  }
  const swap = ({ compare, success }: Transaction) => {
    const { key, mod_revision: expected } = compare[0]
    if (expected !== String(kept.get(key)?.revision ?? 0))
      return answer({ responses: [{ response_range: range(key) }] })
    kept.set(key, { value: success[0].request_put.value, revision: ++revision })
    return answer({ succeeded: true })
  }
  const done = ({ url, body = '', headers }: HttpRequest): HttpResponse => {
    if (url.pathname === '/v3/auth/authenticate') {
      isTokenGood = true
      return answer({ token: 'token-1' })
    }
    if (!isTokenGood || headers['authorization'] !== 'token-1')
      return jsonResponse(401, { code: 16, message: 'etcdserver: invalid auth token' })
    return url.pathname === '/v3/kv/range' ? answer(range(JSON.parse(body).key)) : swap(JSON.parse(body))
  }

  const etcd = {
    /** Number of requests so far. */
    asked: 0,
    /** Returns the fate of each request, by its path. */
    fate: (_path: string): Fate => 'pass',
    async handle(request: HttpRequest): Promise<HttpResponse> {
      etcd.asked += 1
      const fate = etcd.fate(request.url.pathname)
      if (fate === 'pass') return done(request)
      if (fate === 'unanswered' || fate === 'killed') done(request)
      if (fate === 'late') late.push(() => void done(request))
      if (fate === 'killed') return new Promise<never>(() => {})
      throw new HttpTransportError('timeout', fate === 'lost' ? 'no' : 'maybe', 'no complete response')
    },
    /** Applies the late requests. */
    arrive() {
      const now = late
      late = []
      for (const one of now) one()
    },
    /** Invalidates all authentication tokens, like the restart of a member. */
    forgetTokens() {
      isTokenGood = false
    },
    value: () => [...kept.values()][0]?.value,
    /** Overwrites the value or removes the key, as an administrator could. */
    put(value: string | undefined) {
      const [key = '/mailclaim/sessions/default'] = kept.keys()
      const at = Buffer.from(key).toString('base64') === key ? key : [...kept.keys()][0]
      if (value === undefined) kept.clear()
      else kept.set(at ?? key, { value, revision: ++revision })
    },
  }
  return etcd
}

interface Transaction {
  readonly compare: readonly [{ key: string; mod_revision: string }]
  readonly success: readonly [{ request_put: { value: string } }]
}
