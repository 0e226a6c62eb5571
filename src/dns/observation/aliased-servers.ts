import { type AliasPath, followAlias } from '../resolution/alias.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import { hasText } from '../wire/txt-answer.ts'
import type { Observation } from './observations.ts'

/** Copies of one zone have one alias at a name; a server may lie differently each time. */
const MOST_PATHS = 4

/** Follows aliases that leave what a server could tell by itself, and classifies those servers by where they lead. */
export async function throughAliases(
  servers: readonly Observation[],
  located: Located,
  name: string,
  expected: string,
  context: ResolutionContext,
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
      const isOwn = server.aliases.every((target) => isWithin(target, located.delegation.zone))
      const final = known.end === 'loop' || (isOwn && known.end !== 'unknown')
      const key = server.aliases.join(' ')
      if (!final && !paths.has(key) && paths.size >= MOST_PATHS)
        return { ...server, outcome: 'not_checked' as const }
      const path = final
        ? known
        : await (paths.get(key) ?? remember(paths, key, followAlias([name, ...server.aliases], context)))
      alias ??= path
      return classifyByAlias(server, path, expected)
    }),
  )
  return { servers: resolved, alias }
}

export function remember<T>(map: Map<string, Promise<T>>, key: string, value: Promise<T>): Promise<T> {
  map.set(key, value)
  return value
}

function classifyByAlias(server: Observation, path: AliasPath, expected: string): Observation {
  const outcome =
    path.end === 'txt'
      ? hasText(path.values, expected)
        ? ('match' as const)
        : ('mismatch' as const)
      : path.end === 'unknown'
        ? ('timeout' as const)
        : ('absent' as const)
  return { ...server, outcome, values: path.values, aliases: path.targets, aliasEnd: path.end }
}
