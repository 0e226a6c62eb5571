import type { DnsAddress } from '../../context.ts'
import { referralFrom } from '../resolution/delegation.ts'
import type { Located } from '../resolution/delegation-walk.ts'
import type { ResolutionContext } from '../resolution/resolution-context.ts'
import { ask } from '../wire/exchange.ts'
import { type Message, soaOf } from '../wire/message.ts'
import { isWithin } from '../wire/name.ts'
import { hasText, readTxt } from '../wire/txt-answer.ts'
import { groupByOutcome, type Observation, type ServerAtHost, type ZoneObservations } from './observations.ts'

/** Each gets two queries. */
const MAX_SERVERS = 8
const ASK_MS = 1500

/**
 * A zone at only some of the servers of the zone above, which doesn't delegate it: the others answer from the zone above, so
 * every lookup depends on the server that is asked. The zone is either the one found, if a server gave it without a
 * referral, or one below it at some of its servers.
 */
export async function findUndelegatedZone(
  { delegation, above }: Located,
  observed: readonly Observation[],
  { name, expected }: Pick<ZoneObservations, 'name' | 'expected'>,
  context: ResolutionContext,
): Promise<ZoneObservations['undelegated']> {
  const upper = above?.zone ?? delegation.zone
  const { withRecord, withoutRecord } = groupByOutcome(observed)
  const serving = [...withRecord, ...withoutRecord]
  if (above === undefined && (name === upper || new Set(serving.map(({ outcome }) => outcome)).size < 2))
    return undefined
  const candidates = above === undefined ? serversAt(serving) : await serversOf(above.hosts, context)
  const zoneServers = above === undefined ? [] : serversAt(serving.filter(({ soa }) => soa !== undefined))
  const isKnown = ({ server }: ServerAtHost) =>
    zoneServers.some((other) => other.server.address === server.address)
  const deadline = Math.min(context.deadline, context.effects.clock.monotonic() + ASK_MS)
  const askOne = async (server: DnsAddress, question: string, type: 'SOA' | 'TXT' | 'DS') => {
    const reply = await ask(server, { name: question, type }, { deadline }, context.effects)
    return reply.kind === 'answer' ? reply.message : undefined
  }
  const lower = above === undefined ? name : delegation.zone
  const unknown = candidates.filter((one) => !isKnown(one)).slice(0, MAX_SERVERS)
  const asked = await Promise.all(
    unknown.map(async ({ host, server }) => {
      const [message, txt] = await Promise.all([askOne(server, lower, 'SOA'), askOne(server, name, 'TXT')])
      const hasRecord = txt !== undefined && hasText(readTxt(txt, name).values, expected)
      return message === undefined ? [] : [{ host, server, message, hasRecord }]
    }),
  )
  const answers = asked.flat()
  // One server does delegate it, and the others may only be behind.
  if (
    answers.some(
      ({ message }) => !message.aa && referralFrom(message, upper, lower, context.authoritativePort),
    )
  )
    return undefined
  const zoneOf = ({ message }: { message: Message }) => (message.aa ? soaOf(message)?.zone : undefined)
  const without = answers.filter((one) => zoneOf(one) === upper && one.message.answers.length === 0)
  // If every server has the record, the zone does no harm.
  if (withoutRecord.length === 0 && without.every(({ hasRecord }) => hasRecord)) return undefined
  const found = answers
    .map(zoneOf)
    .find((one) => one !== undefined && one !== upper && isWithin(one, upper) && isWithin(name, one))
  const zone = above === undefined ? found : delegation.zone
  const holders = [...candidates.filter(isKnown), ...answers.filter((one) => zoneOf(one) === zone)]
  const [holder] = holders
  if (zone === undefined || holder === undefined || without.length === 0) return undefined
  // The zone above answers DS queries (RFC 4035 section 3.1.4.1). If its version is the same, it isn't about to change.
  const signers = await askOne(holder.server, zone, 'DS')
  const soa = signers?.aa === true && signers.answers.length === 0 ? soaOf(signers) : undefined
  if (soa?.zone !== upper) return undefined
  const isCurrent = without.some(({ message }) => soaOf(message)?.serial === soa.serial)
  if (signers?.rcode !== 'NXDOMAIN' && !isCurrent) return undefined
  const identify = ({ host, server }: ServerAtHost) => ({ host, server })
  return { zone, above: upper, holders: holders.map(identify), without: without.map(identify) }
}

const serversAt = (observed: readonly Observation[]): ServerAtHost[] =>
  observed.flatMap(({ host, server }) => (server === undefined ? [] : [{ host, server }]))

async function serversOf(
  hosts: ReadonlyMap<string, readonly DnsAddress[]>,
  context: ResolutionContext,
): Promise<ServerAtHost[]> {
  const found = await Promise.all(
    [...hosts].slice(0, MAX_SERVERS).map(async ([host, known]) => {
      const addresses = known.length > 0 ? known : (await context.resolveHost(host)).addresses
      return addresses.map((server) => ({ host, server }))
    }),
  )
  return found.flat()
}
