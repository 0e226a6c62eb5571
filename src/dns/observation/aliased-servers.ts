import { type AliasPath, followAlias } from '../resolution/alias.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { isWithin } from '../wire/name.ts'
import { hasText } from '../wire/txt-answer.ts'
import type { Observation } from './observations.ts'

/** Copies of one zone have the same alias at a name; hostile servers may each have another one. */
const MAX_PATHS = 4

/** Follows the aliases that lead out of a server's own zone, and classifies each such server by where its alias ends. */
export async function resolveAliases(
  servers: readonly Observation[],
  located: Located,
  name: string,
  expected: string | null,
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
      // What a server says about targets outside its zone is not authoritative.
      const isOwn = server.aliases.every((target) => isWithin(target, located.delegation.zone))
      const final = known.end === 'loop' || (isOwn && known.end !== 'unknown')
      const key = server.aliases.join(' ')
      if (!final && !paths.has(key)) {
        if (paths.size >= MAX_PATHS) return { ...server, outcome: 'not_checked' as const }
        paths.set(key, followAlias([name, ...server.aliases], context))
      }
      const path = (final ? undefined : await paths.get(key)) ?? known
      alias ??= path
      return classifyByAlias(server, path, expected)
    }),
  )
  return { servers: resolved, alias }
}

function classifyByAlias(server: Observation, path: AliasPath, expected: string | null): Observation {
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
