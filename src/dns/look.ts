import type { DnsAddress } from '../context.ts'
import { type Found, locate, type NotFound, type Search } from './locate.ts'
import { isDnsData, type ServerObservation } from './observations.ts'
import { askNameServers } from './servers.ts'
import { createShare, type Share } from './share.ts'
import { formatDnsAddress } from './wire/address.ts'
import { type DnsEffects, limitQueries } from './wire/ask.ts'
import { checkName } from './wire/name.ts'
import type { TxtValue } from './wire/txt-answer.ts'

/** Whom to ask; see `CheckRequest`. */
export interface LookRequest {
  readonly resolvers: readonly DnsAddress[] | 'system'
  readonly authoritativePort: number
  /** Of the whole look, in milliseconds; 10 seconds by default. */
  readonly timeoutMs?: number
  readonly share?: Share
}

/** The zone of a name and its TXT set. */
export interface Look {
  /** Null if it wasn't found. */
  readonly zone: string | null
  /** The hosts of its name servers. */
  readonly nameservers: readonly string[]
  /** All TXT values at the name, each once; null if that isn't certain. The TTL is in seconds, null without values. */
  readonly set: { readonly values: readonly TxtValue[]; readonly ttl: number | null } | null
  /** Why the set isn't known, as the rest of a sentence; null if it is. */
  readonly reason: string | null
  /** `no_domain`: the domain doesn't exist; `alias`: no TXT record can stand beside the CNAME at the name. */
  readonly obstacle: 'no_domain' | 'alias' | null
  /** What single servers have: perhaps not all, and perhaps no longer. */
  readonly partial: readonly TxtValue[]
}

const TIMEOUT_MS = 10_000
/** For finding the zone; the rest is for its servers. */
const LOCATE_MS = 6000
const MAX_QUERIES = 96

/**
 * Asks the name servers of a zone for all TXT values at a name. They count only if at least one server gave a complete
 * authoritative answer, and all that did agree. Resolvers are never asked for them: a cache may be out of date. Rejects only if
 * the signal in the effects aborts.
 *
 * @param name must be valid (`checkName`)
 */
export async function look(name: string, request: LookRequest, effects: DnsEffects): Promise<Look> {
  const checked = checkName(name)
  if (!checked.ok) return { ...NOTHING, reason: checked.problem }
  const over = new AbortController()
  const signal = AbortSignal.any([effects.signal, over.signal])
  try {
    const { dns, clock } = effects
    const resolvers = request.resolvers === 'system' ? await dns.systemResolvers() : request.resolvers
    const deadline = clock.monotonic() + (request.timeoutMs ?? TIMEOUT_MS)
    const search: Search = {
      resolvers,
      port: request.authoritativePort,
      deadline,
      effects: { ...effects, signal, dns: limitQueries(dns, MAX_QUERIES) },
      share: request.share ?? createShare(clock),
    }
    const locateUntil = Math.min(deadline, clock.monotonic() + LOCATE_MS)
    const found = await locate(checked.ascii, { ...search, deadline: locateUntil })
    if (found.kind !== 'found') return notFound(found)
    const { servers } = await askNameServers(found, checked.ascii, null, search)
    return readSet(checked.ascii, found, servers)
  } finally {
    over.abort()
  }
}

const NOTHING: Look = { zone: null, nameservers: [], set: null, reason: null, obstacle: null, partial: [] }

function notFound(location: NotFound): Look {
  if (location.kind === 'no_domain')
    return { ...NOTHING, obstacle: 'no_domain', reason: `${location.domain} doesn't exist in DNS` }
  const said = new Map(
    location.replies.map(({ resolver, question, answer }) => [
      formatDnsAddress(resolver),
      `${answer} (${question})`,
    ]),
  )
  const replies = said.size === 0 ? 'no resolver' : [...said].map((pair) => pair.join(' ')).join(', ')
  return { ...NOTHING, reason: `its name servers weren't found: ${replies}` }
}

function readSet(name: string, { delegation }: Found, servers: readonly ServerObservation[]): Look {
  const { zone, hosts } = delegation
  const answers = servers.filter(({ outcome }) => isDnsData(outcome))
  const [first] = answers
  const unknown = (reason: string): Look => ({
    ...NOTHING,
    zone,
    nameservers: [...hosts.keys()],
    reason,
    partial: answers.flatMap(({ values }) => values),
  })
  if (first === undefined) return unknown(`no name server of ${zone} gave a complete authoritative answer`)
  const alias = answers.find(({ outcome }) => outcome === 'alias')?.alias
  if (alias) return { ...unknown(`${name} is an alias (CNAME) for ${alias}`), obstacle: 'alias' }
  const values = byStrings(first)
  const isSame = (others: ReadonlyMap<string, TxtValue>) =>
    others.size === values.size && [...others.keys()].every((key) => values.has(key))
  if (!answers.every((answer) => isSame(byStrings(answer))))
    return unknown(`the name servers of ${zone} disagree`)
  // A server that counts the TTL down answers from a cache.
  const ttl = values.size === 0 ? null : Math.max(...answers.map((answer) => answer.ttl ?? 0))
  return { ...unknown(''), reason: null, set: { values: [...values.values()], ttl }, partial: [] }
}

/** The values of an answer by the exact bytes of their strings. */
function byStrings({ values }: ServerObservation): Map<string, TxtValue> {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
  return new Map(values.map((value) => [value.strings.map(hex).join(' '), value]))
}
