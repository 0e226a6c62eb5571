import { type Context, type DnsAddress, DnsTransportError } from '../context.ts'
import { formatDnsAddress } from '../dns/wire/address.ts'
import { dnsEffects } from '../dns/wire/effects.ts'
import { ask } from '../dns/wire/exchange.ts'
import { decodeAnswer, encodeQuery, type Message } from '../dns/wire/message.ts'
import type { Settings } from '../settings/settings.ts'
import { type Diagnosis, ok, skipped, warning } from './report.ts'

/** Long enough for a resolver that has to query other servers. */
const RESOLVER_TIMEOUT_MS = 5000
const ROOT_TIMEOUT_MS = 3000
/** Two root servers with different operators: https://www.iana.org/domains/root/servers */
const ROOT_SERVERS: readonly DnsAddress[] = [
  { address: '193.0.14.129', port: 53 },
  { address: '199.7.83.42', port: 53 },
]
const ROOT_QUESTION = { name: '.', type: 'SOA' } as const
/** Both exist, so a resolver that denies one blocks DNS or has a root of its own. */
const KNOWN_NAMES = [ROOT_QUESTION, { name: 'com', type: 'NS' }] as const

type DnsContext = Pick<Context, 'clock' | 'random' | 'dns' | 'interrupts'>

/**
 * Whether the active resolvers respond, and with what the public DNS has. A failure affects only the DNS check, so it's a
 * warning.
 */
export async function examineResolvers(
  context: DnsContext,
  settings: Pick<Settings, 'resolvers'>,
): Promise<Diagnosis> {
  const check = 'DNS resolvers'
  const resolvers = settings.resolvers ?? (await context.dns.systemResolvers())
  const owner = settings.resolvers === undefined ? "the system's resolvers" : 'the chosen resolvers'
  const remedy =
    'choose another with --resolver, MAILCLAIM_RESOLVER or: mailclaim config set resolver 9.9.9.9'
  if (resolvers.length === 0) return warning(check, 'the system has no usable resolver', remedy)
  const effects = dnsEffects(context)
  const options = { recursionDesired: true, deadline: context.clock.monotonic() + RESOLVER_TIMEOUT_MS }
  const examined = await Promise.all(
    resolvers.map(async (resolver) => {
      const replies = await Promise.all(
        KNOWN_NAMES.map((question) => ask(resolver, question, options, effects)),
      )
      const rcodes = replies.flatMap((reply, at) => {
        if (reply.kind !== 'answer') return []
        const { rcode, answers } = reply.message
        const isEmpty = answers.every(({ type }) => type !== KNOWN_NAMES[at]?.type)
        return rcode === 'NOERROR' && isEmpty ? 'NOERROR without data' : rcode
      })
      return { address: formatDnsAddress(resolver), rcodes }
    }),
  )
  const addresses = (having: (rcodes: readonly string[]) => boolean) =>
    examined.filter(({ rcodes }) => having(rcodes)).map(({ address }) => address)
  const denying = addresses((rcodes) => rcodes.includes('NXDOMAIN'))
  if (denying.length > 0)
    return warning(
      check,
      `${denying.join(', ')} ${denying.length === 1 ? 'denies' : 'deny'} names that exist (the root or com): DNS is blocked or intercepted, or private`,
      remedy,
    )
  const failing = examined.filter(({ rcodes }) => rcodes.length > 0 && !rcodes.includes('NOERROR'))
  if (failing.length > 0) {
    const said = failing.map(({ address, rcodes }) => `${address} answers ${[...new Set(rcodes)].join(', ')}`)
    return warning(check, `${said.join('; ')}, even for names that exist (the root and com)`, remedy)
  }
  const silent = addresses((rcodes) => rcodes.length === 0)
  if (silent.length === 0) return ok(check, `${owner} respond: ${resolvers.map(formatDnsAddress).join(', ')}`)
  const responding = resolvers.length - silent.length || 'none'
  return warning(check, `${responding} of ${owner} responded; no response from ${silent.join(', ')}`, remedy)
}

/**
 * Whether queries reach authoritative servers, as the DNS check requires. A root server is authoritative for the root and
 * offers no recursion; any other response comes from another server.
 */
export async function examineDirectDns(
  context: DnsContext,
  settings: Pick<Settings, 'resolvers' | 'authoritativePort'>,
): Promise<Diagnosis> {
  const check = 'direct DNS'
  if (settings.authoritativePort !== 53 || settings.resolvers !== undefined) {
    return skipped(check, 'not applicable with a custom resolver or port, since DNS may be private')
  }
  const [udp, tcp] = await Promise.all([queryRoot('udp', context), queryRoot('tcp', context)])
  if (udp === undefined && tcp === undefined) {
    return warning(
      check,
      'no name server is reachable from here: outbound port 53 is blocked',
      'claims check can only query resolvers; run it from another network, or have outbound port 53 (UDP and TCP) opened',
    )
  }
  const isIntercepted = [udp, tcp].some((message) => message !== undefined && (message.ra || !message.aa))
  if (isIntercepted) {
    return warning(
      check,
      'DNS is intercepted: another server answers in place of the name servers',
      'claims check may see outdated or wrong data; run it from another network (VPNs, hotels and some providers intercept DNS)',
    )
  }
  if (udp === undefined || tcp === undefined) {
    return warning(
      check,
      `name servers are reachable over ${udp === undefined ? 'TCP, but not over UDP' : 'UDP, but not over TCP'}`,
      'have outbound port 53 opened for both: long answers need TCP, and everything else is faster over UDP',
    )
  }
  return ok(check, 'name servers are reachable over UDP and TCP')
}

/** The first answer of a root server over this transport; undefined if none responds. */
async function queryRoot(transport: 'udp' | 'tcp', context: DnsContext): Promise<Message | undefined> {
  const queries = ROOT_SERVERS.map(async (server) => {
    const [high = 0, low = 0] = context.random.bytes(2)
    const id = high * 256 + low
    const wire = await context.dns[transport]({
      server,
      message: encodeQuery(id, ROOT_QUESTION, {
        recursionDesired: false,
        checkingDisabled: false,
        udpSize: undefined,
      }),
      timeoutMs: ROOT_TIMEOUT_MS,
      accept: (answer) => decodeAnswer(answer, id, ROOT_QUESTION) !== undefined,
      signal: context.interrupts.signal,
    })
    const message = decodeAnswer(wire, id, ROOT_QUESTION)
    if (message === undefined) throw new DnsTransportError('closed', 'no answer to the query')
    return message
  })
  try {
    return await Promise.any(queries)
  } catch (error) {
    const errors = error instanceof AggregateError ? error.errors : [error]
    const bug = errors.find((one) => !(one instanceof DnsTransportError))
    if (bug !== undefined) throw bug
    return undefined
  }
}
