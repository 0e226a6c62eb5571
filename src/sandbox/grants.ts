import type { OAuthClient } from './clients.ts'
import { mix, pick, seededId, seededIndex } from './fixtures.ts'
import type { Sequence } from './paging.ts'
import { timestamp } from './virtual-clock.ts'

/** An OAuth grant as the service shows it (interface, section 2.2). */
interface OAuthGrant {
  readonly id: string
  readonly client_id: string
  readonly scopes: readonly string[]
  readonly resource: string | null
  readonly created_at: string
  readonly revoked_at: string | null
  readonly revoked_reason: string | null
  readonly client: { readonly name: string; readonly logo_uri: string }
}

/** A grant that came from a sign-in at this sandbox. */
export interface IssuedGrant {
  readonly id: string
  readonly client: OAuthClient
  readonly scopes: readonly string[]
  readonly resource: string | null
  readonly createdAt: number
  revokedAt: number | undefined
  revokedReason: string | undefined
}

const KIND = 29
const SEEDED_CLIENT_NAMES = [
  'Newsletter Studio',
  'Shop Mailer',
  'CRM Sync',
  'Invoice Robot',
  'Zoë’s Notes',
] as const
const SEEDED_SCOPES: readonly [string[], ...string[][]] = [
  ['emails:send'],
  ['emails:send', 'contacts:read'],
  ['contacts:read', 'contacts:write'],
  ['domains:read'],
]

/** The grants of the one team there is: real ones first (the newest at the top), then the seeded ones. */
export interface Grants {
  readonly list: Sequence<OAuthGrant>
  add(grant: IssuedGrant): void
  issued(): readonly IssuedGrant[]
  find(id: string): IssuedGrant | undefined
  readonly seeded: number
}

export function createGrants(seeded: number, startedAt: number): Grants {
  const issued: IssuedGrant[] = []
  const places = new Map<string, number>()

  function seededAt(index: number): OAuthGrant {
    const createdAt = startedAt - (index + 1) * 3_600_000 - (mix(index, 31) % 1_800_000)
    const revoked = mix(index, 32) % 3 === 0
    const name = pick(SEEDED_CLIENT_NAMES, index, 33)
    return {
      id: seededId(KIND, index),
      client_id: seededId(KIND + 1, SEEDED_CLIENT_NAMES.indexOf(name)),
      scopes: pick(SEEDED_SCOPES, index, 34),
      resource: mix(index, 35) % 2 === 0 ? null : 'https://api.example/mail',
      created_at: timestamp(createdAt),
      revoked_at: revoked ? timestamp(createdAt + 1_200_000) : null,
      revoked_reason: revoked ? 'revoked_from_api' : null,
      client: { name, logo_uri: `https://logos.example/${SEEDED_CLIENT_NAMES.indexOf(name)}.png` },
    }
  }

  return {
    seeded,
    list: {
      get length() {
        return issued.length + seeded
      },
      at(position) {
        const grant = issued[issued.length - 1 - position]
        return grant === undefined ? seededAt(position - issued.length) : shown(grant)
      },
      positionOf(id) {
        const place = places.get(id)
        if (place !== undefined) return issued.length - 1 - place
        const index = seededIndex(KIND, id)
        return index >= 0 && index < seeded ? issued.length + index : -1
      },
    },
    add(grant) {
      places.set(grant.id, issued.push(grant) - 1)
    },
    issued: () => issued,
    find(id) {
      const place = places.get(id)
      return place === undefined ? undefined : issued[place]
    },
  }
}

function shown(grant: IssuedGrant): OAuthGrant {
  return {
    id: grant.id,
    client_id: grant.client.id,
    scopes: grant.scopes,
    resource: grant.resource,
    created_at: timestamp(grant.createdAt),
    revoked_at: grant.revokedAt === undefined ? null : timestamp(grant.revokedAt),
    revoked_reason: grant.revokedReason ?? null,
    client: { name: grant.client.name, logo_uri: grant.client.logoUri },
  }
}
