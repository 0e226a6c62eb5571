import { encode, HostileZone, randomFrom } from './hostile-zone.ts'
import { forAll } from './laboratory.ts'
import { openNetwork } from './network.ts'
import { check, type Run } from './program.ts'
import { type Query, RCODES, type Relay, relay, startRelays } from './relay.ts'
import { EXPECTED } from './setup.ts'

/** What one check may need. */
const LIMITS = { seconds: 10, queries: 120, peakMiB: 150 } as const
/** For starting and ending the program next to others. */
const START_SECONDS = 1

export interface HostileOptions {
  readonly only: RegExp
  readonly zones: number
  readonly seed: number
  readonly atOnce: number
}

type Result = Omit<Run, 'exchanges'> & { readonly number: number; readonly queries: number }

/** Checks random hostile zones, one process each; true if every check ended with a report and within its limits. */
export async function runHostile({ only, zones, seed, atOnce }: HostileOptions): Promise<boolean> {
  const states = new Map<number, HostileZone>()
  const servers = Array.from({ length: 40 }, () => relay({ reply: (query) => zoneOf(query)?.reply(query) }))
  const addresses = servers.map(({ address }) => address)
  const zoneOf = ({ name }: Query): HostileZone | undefined => {
    const number = Number(/(?:^|\.)z(\d+)\.com$/.exec(name)?.[1] ?? Number.NaN)
    if (Number.isNaN(number)) return undefined
    const random = randomFrom(seed * 1_000_003 + number)
    const zone = states.get(number) ?? new HostileZone(`z${number}.com`, random, addresses)
    states.set(number, zone)
    return zone
  }
  const registry = relay({
    own: (query) => encode(query, zoneOf(query)?.delegation() ?? { flags: RCODES.REFUSED }),
  })
  const resolver = startResolver(zoneOf, registry)
  openNetwork()
  await startRelays()

  const nameIn = (number: number) => (number % 3 === 0 ? `z${number}.com` : `verify.app.z${number}.com`)
  const results = new Map<number, Result>()
  const checkAll = async (numbers: readonly number[], most: number): Promise<void> => {
    await forAll(numbers, most, async (number) => {
      const run = await check({ name: nameIn(number), value: EXPECTED, resolvers: [resolver.address] })
      states.delete(number)
      const before = results.get(number)
      results.set(number, {
        ...run,
        number,
        queries: Math.max(run.exchanges.length, before?.queries ?? 0),
        peakMiB: Math.max(run.peakMiB, before?.peakMiB ?? 0),
      })
      if (results.size % 100 === 0) console.log(`${results.size} zones`)
    })
  }
  const numbers = Array.from({ length: zones }, (_, number) => number).filter((n) => only.test(nameIn(n)))
  await checkAll(numbers, atOnce)
  // Many checks at once may wait for a processor.
  const slow = [...results.values()].filter((result) => isSlow(result)).map(({ number }) => number)
  console.log(`${slow.length} zones were too slow next to others and are checked again`)
  await checkAll(slow, 2)
  const all = [...results.values()]
  const failed = all.flatMap((result) => {
    const complaint = complaintAbout(result)
    return complaint === undefined ? [] : [`✗ ${nameIn(result.number)}: ${complaint}`]
  })
  for (const line of failed) console.log(line)
  console.log(`${all.length} hostile zones, seed ${seed}: ${failed.length} outside the limits`)
  for (const key of ['seconds', 'queries', 'peakMiB'] as const) console.log(summary(all, key))
  return failed.length === 0
}

/** Knows the registry of `com`, and passes on what hostile servers answer. */
function startResolver(zoneOf: (query: Query) => HostileZone | undefined, registry: Relay): Relay {
  const host = 'a.nic.com'
  return relay({
    reply: (query) => {
      const { name, type } = query
      if (name === 'com' && type === 'NS')
        return honest(
          encode(query, {
            flags: 0x80,
            answers: [{ type: 'NS', name, ttl: 60, data: host }],
            additionals: [{ type: 'A', name: host, ttl: 60, data: registry.address }],
          }),
        )
      if (name === host && type === 'A')
        return honest(
          encode(query, { flags: 0x80, answers: [{ type, name, ttl: 60, data: registry.address }] }),
        )
      return zoneOf(query)?.reply(query) ?? honest(encode(query, { flags: 0x80 | RCODES.NXDOMAIN }))
    },
  })
}

const honest = (message: Buffer) => ({ delayMs: 0, message, drips: false })

const isSlow = ({ seconds }: Result) => seconds > LIMITS.seconds + START_SECONDS

function complaintAbout(result: Result): string | undefined {
  const { report, exit, stderr, queries, peakMiB } = result
  if (report === undefined) return `no report, exit ${exit}, ${cost(result)}: ${stderr.slice(-500)}`
  const isOver = isSlow(result) || queries > LIMITS.queries || peakMiB > LIMITS.peakMiB
  return isOver ? cost(result) : undefined
}

const cost = ({ seconds, queries, peakMiB }: Result) =>
  `${seconds.toFixed(1)} s, ${queries} queries, ${Math.round(peakMiB)} MiB`

function summary(results: readonly Result[], key: keyof typeof LIMITS): string {
  const sorted = results.toSorted((a, b) => b[key] - a[key])
  const middle = sorted[Math.floor(sorted.length / 2)]
  const most = sorted.slice(0, 5).map((result) => `z${result.number} ${result[key].toFixed(1)}`)
  return `${key}: median ${middle?.[key].toFixed(1)}, most ${most.join(', ')}`
}
