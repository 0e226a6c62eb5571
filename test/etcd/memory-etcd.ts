import type { HttpRequest, HttpResponse } from '../../src/context.ts'
import { jsonResponse } from '../fake-context.ts'

interface Kept {
  readonly value: string
  readonly revision: number
  readonly version: number
}

/** What a cluster holds. */
export interface EtcdState {
  kept: Map<string, Kept>
  revision: number
}

/** A cluster of etcd in memory, as its JSON gateway answers: undefined for what isn't for it. */
export function createMemoryEtcd(
  cluster = '1',
  state: EtcdState = { kept: new Map(), revision: 1 },
): (request: HttpRequest) => HttpResponse | undefined {
  const answer = (body: object) =>
    jsonResponse(200, { header: { cluster_id: cluster, revision: String(state.revision) }, ...body })
  const range = (key: string) => {
    const found = state.kept.get(key)
    if (found === undefined) return {}
    const { value, revision, version } = found
    return { kvs: [{ value, mod_revision: String(revision), version: String(version) }] }
  }
  return ({ url, body = '' }) => {
    const request = () => JSON.parse(body)
    switch (url.pathname) {
      case '/v3/auth/authenticate':
        return answer({ token: 'token' })
      case '/v3/maintenance/status':
        return answer({ version: '3.5.0' })
      case '/v3/kv/range':
        return answer(range(request().key))
      case '/v3/kv/txn': {
        const [{ key, mod_revision: expected }, other] = request().compare
        const found = state.kept.get(key)
        const isSame = other === undefined || other.value === found?.value
        if (expected !== String(found?.revision ?? 0) || !isSame)
          return answer({ responses: [{ response_range: range(key) }] })
        const { value } = request().success[0].request_put
        state.kept.set(key, { value, revision: ++state.revision, version: (found?.version ?? 0) + 1 })
        return answer({ succeeded: true })
      }
      default:
        return undefined
    }
  }
}
