import type { HttpRequest, HttpResponse } from '../../src/context.ts'
import { jsonResponse } from '../fake-context.ts'

export const IMPORT_ID = '479e3145-dd38-4932-8c0c-e58b548c9e76'
const DOMAIN_ID = 'd5f1a5a0-7c39-4a8e-9c1a-2f6b1f6f0c11'
/** A hostile name, with everything that a format has to escape. */
const ODD_NAME = 'A "client", \\ \t\r\n\u001b[31m \u202e=1+1'

const GRANTS = [1, 2, 3].map((n) => ({
  id: `grant-${n}`,
  client_id: `client-${n}`,
  scopes: ['emails:send', 'odd,scope'],
  resource: null,
  created_at: '2026-11-20 10:00:00.123456+00',
  revoked_at: n === 2 ? '2026-11-20 11:00:00.123456+00' : null,
  revoked_reason: n === 2 ? 'user' : null,
  client: { name: ODD_NAME, logo_uri: null },
}))

function contactImport(status: string) {
  return {
    object: 'contact_import',
    id: IMPORT_ID,
    status,
    created_at: '2026-11-20 10:00:00.123456+00',
    completed_at: status === 'completed' ? '2026-11-20 11:00:00.123456+00' : null,
    counts: { total: 5, created: status === 'completed' ? 5 : 1, updated: 0, skipped: 0, failed: 0 },
  }
}

function claim(status: string) {
  return {
    object: 'domain_claim',
    id: 'claim-1',
    name: 'example.com',
    status,
    domain_id: DOMAIN_ID,
    region: 'us-east-1',
    record: { type: 'TXT', name: 'example.com', value: 'prefix=token', ttl: 'Auto' },
    blocked_reason: null,
    failure_reason: null,
    created_at: '2026-11-20 10:00:00.123456+00',
    expires_at: '2026-11-27 10:00:00.123456+00',
  }
}

/**
 * A service in memory with three grants, an import and a claim to example.com. Each is in progress when it is first asked
 * for, and completed after that.
 */
export function createFakeService(): (request: HttpRequest) => HttpResponse {
  let claimsSeen = 0
  let importsSeen = 0
  return ({ method, url, body }) => {
    const list = (data: readonly object[]) => jsonResponse(200, { object: 'list', has_more: false, data })
    switch (`${method} ${url.pathname}`) {
      case 'POST /oauth/token':
        return jsonResponse(200, {
          access_token: 'access-token',
          refresh_token: 'refresh-token-2',
          token_type: 'Bearer',
          expires_in: 900,
          scope: new URLSearchParams(body).get('scope') ?? 'emails:send contacts:read',
        })
      case 'GET /.well-known/oauth-authorization-server':
        return jsonResponse(200, {
          issuer: url.origin,
          authorization_endpoint: `${url.origin}/authorize`,
          token_endpoint: `${url.origin}/oauth/token`,
        })
      case 'GET /oauth/grants':
        return list(GRANTS)
      case 'GET /contacts/imports':
        return list([contactImport('completed'), contactImport('failed')])
      case `GET /contacts/imports/${IMPORT_ID}`:
        return jsonResponse(200, contactImport(importsSeen++ === 0 ? 'in_progress' : 'completed'))
      case 'POST /domains/claim':
        return jsonResponse(201, claim('pending'))
      case `GET /domains/${DOMAIN_ID}/claim`:
        return jsonResponse(200, claim(claimsSeen++ === 0 ? 'pending' : 'completed'))
      case `POST /domains/${DOMAIN_ID}/claim/verify`:
        return jsonResponse(200, claim('pending'))
      default:
        return jsonResponse(404, { statusCode: 404, name: 'not_found', message: 'Not found' })
    }
  }
}
