import { locate } from './delegation.ts'
import { ask } from './exchange.ts'
import type { AliasPath } from './facts.ts'
import { checkName, isWithin } from './name.ts'
import { hasValue, type Observation, readTxt } from './observe.ts'
import { firstUseful, type Route } from './route.ts'
import { type Located, soaOf } from './walk.ts'

/** As many as the most patient resolvers follow. */
const MAX_ALIASES = 16
/** Finding the zone of a target may take so long. */
const LOCATE_MS = 4000

/** Follows aliases that leave what a server could tell by itself, and judges those servers by where they lead. */
export async function throughAliases(
  servers: readonly Observation[],
  located: Located,
  name: string,
  expected: Uint8Array,
  route: Route,
): Promise<{ servers: Observation[]; alias: AliasPath | undefined }> {
  const paths = new Map<string, Promise<AliasPath>>()
  let alias: AliasPath | undefined
  const resolved = await Promise.all(
    servers.map(async (server) => {
      const last = server.aliases.at(-1)
      if (last === undefined || server.outcome === 'lame') return server
      const known: AliasPath = {
        targets: server.aliases,
        end: server.aliasEnd ?? 'unknown',
        values: server.values,
        ttl: server.ttl,
        negativeTtl: server.negativeTtl,
      }
      // A server speaks for its own zone only: what it says of targets elsewhere is not authoritative.
      const isOwn = server.aliases.every((target) => isWithin(target, located.cut.zone))
      const final = known.end === 'loop' || (isOwn && known.end !== 'unknown')
      const key = server.aliases.join(' ')
      const path = final
        ? known
        : await (paths.get(key) ?? remember(paths, key, followAlias([name, ...server.aliases], route)))
      alias ??= path
      return judgedByAlias(server, path, expected)
    }),
  )
  return { servers: resolved, alias }
}

function remember<T>(map: Map<string, Promise<T>>, key: string, value: Promise<T>): Promise<T> {
  map.set(key, value)
  return value
}

function judgedByAlias(server: Observation, path: AliasPath, expected: Uint8Array): Observation {
  const outcome =
    path.end === 'txt'
      ? hasValue(path.values, expected)
        ? ('match' as const)
        : ('mismatch' as const)
      : path.end === 'unknown'
        ? ('timeout' as const)
        : ('absent' as const)
  return { ...server, outcome, values: path.values, aliases: path.targets, aliasEnd: path.end }
}

/**
 * Looks up the end of a chain at the authoritative servers of its zones. The target may not exist yet either, so no
 * resolver is asked about it.
 */
async function followAlias(visited: readonly string[], route: Route): Promise<AliasPath> {
  const targets = visited.slice(1)
  const target = targets.at(-1) ?? ''
  const nothing = { targets, values: [], ttl: null, negativeTtl: undefined }
  if (targets.length > MAX_ALIASES) return { ...nothing, end: 'loop' }
  if (!checkName(target).ok) return { ...nothing, end: 'nxdomain' }
  const until = Math.min(route.deadline, route.effects.clock.monotonic() + LOCATE_MS)
  const location = await locate(target, { ...route, deadline: until })
  if (location.kind === 'lost') return { ...nothing, end: 'unknown' }
  if (location.kind === 'no-domain')
    return { ...nothing, end: 'nxdomain', negativeTtl: location.soa?.negativeTtl }
  const known = [...location.cut.hosts.values()].flat()
  const looked =
    known.length > 0 ? [] : await Promise.all([...location.cut.hosts.keys()].slice(0, 3).map(route.lookUp))
  const servers = [...known, ...looked.flatMap((host) => host.addresses)]
  const message = await firstUseful(
    servers.slice(0, 4).map((server) => async () => {
      const reply = await ask(server, { name: target, type: 'TXT' }, { deadline: until }, route.effects)
      if (reply.kind !== 'answer' || !reply.message.aa) return undefined
      const { rcode } = reply.message
      return rcode === 'NOERROR' || rcode === 'NXDOMAIN' ? reply.message : undefined
    }),
  )
  if (message === undefined) return { ...nothing, end: 'unknown' }
  const { aliases, loop, values, ttl } = readTxt(message, target)
  const path = { targets: [...targets, ...aliases], values, ttl, negativeTtl: soaOf(message)?.negativeTtl }
  if (values.length > 0) return { ...path, end: 'txt' }
  const last = aliases.at(-1)
  if (loop || (last !== undefined && visited.includes(last))) return { ...path, end: 'loop' }
  if (last !== undefined) return await followAlias([...visited, ...aliases], route)
  return { ...path, end: message.rcode === 'NXDOMAIN' ? 'nxdomain' : 'absent' }
}
