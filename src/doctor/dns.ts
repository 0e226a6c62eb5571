import { type Context, type DnsAddress, DnsTransportError } from '../context.ts'
import { formatDnsAddress } from '../dns/wire/address.ts'
import { dnsEffects } from '../dns/wire/effects.ts'
import { ask } from '../dns/wire/exchange.ts'
import { decodeAnswer, encodeQuery, type Message } from '../dns/wire/message.ts'
import type { Settings } from '../settings/settings.ts'
import { type Diagnosis, ok, skipped, warning } from './report.ts'

/** Long enough for a resolver that has to ask others first. */
const ANSWER_MS = 5000
const DIRECT_MS = 3000
/** Two root servers, of different operators: https://www.iana.org/domains/root/servers */
const ROOT_SERVERS: readonly DnsAddress[] = [
  { address: '193.0.14.129', port: 53 },
  { address: '199.7.83.42', port: 53 },
]
const ROOT = { name: '.', type: 'SOA' } as const

/** Whether the resolvers in force answer. None of it stops anything but the pre-check, so all of it only warns. */
export async function examineResolvers(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'DNS resolvers'
  const resolvers = settings.resolvers ?? (await context.dns.systemResolvers())
  const whose = settings.resolvers === undefined ? "the system's resolvers" : 'the chosen resolvers'
  const choose =
    'name one that answers with --resolver, MAILCLAIM_RESOLVER or: mailclaim config set resolver 9.9.9.9'
  if (resolvers.length === 0) return warning(check, 'the system names no usable resolver', choose)
  const effects = dnsEffects(context)
  const replies = await Promise.all(
    resolvers.map((resolver) =>
      ask(
        resolver,
        ROOT,
        { recursionDesired: true, deadline: context.clock.monotonic() + ANSWER_MS },
        effects,
      ),
    ),
  )
  const silent = resolvers.filter((_resolver, at) => replies[at]?.kind !== 'answer').map(formatDnsAddress)
  if (silent.length === 0) return ok(check, `${whose} answer: ${resolvers.map(formatDnsAddress).join(', ')}`)
  const message = `${silent.length === resolvers.length ? 'none' : `${silent.length} of ${resolvers.length}`} of ${whose} ${silent.length === resolvers.length ? 'answers' : 'do not answer'}: ${silent.join(', ')}`
  return warning(check, message, choose)
}

/**
 * Whether questions to authoritative servers leave this network and come back from them: the pre-check lives on that. A
 * root server says "authoritative" of the root and offers no recursion; whoever answers otherwise is someone else.
 */
export async function examineDirectDns(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'direct DNS'
  if (settings.authoritativePort !== 53 || settings.resolvers !== undefined) {
    return skipped(check, 'with a resolver or port of your own, DNS may well be private')
  }
  const [udp, tcp] = await Promise.all([throughAny('udp', context), throughAny('tcp', context)])
  if (udp === undefined && tcp === undefined) {
    return warning(
      check,
      'no name server can be asked directly from here: port 53 is closed towards the Internet',
      'claims check then knows only what resolvers say; run it from another network, or ask for port 53 (UDP and TCP) to be opened',
    )
  }
  const intercepted = [udp, tcp].some((message) => message !== undefined && (message.ra || !message.aa))
  if (intercepted) {
    return warning(
      check,
      'DNS is intercepted: another server answers in the place of the one that was asked',
      'what claims check sees from here may be old or wrong; run it from another network (VPNs, hotels and some providers do this)',
    )
  }
  if (udp === undefined || tcp === undefined) {
    return warning(
      check,
      `name servers can be asked over ${udp === undefined ? 'TCP, but not over UDP' : 'UDP, but not over TCP'}`,
      'ask for port 53 to be opened for both: long answers need TCP, and everything else is faster over UDP',
    )
  }
  return ok(check, 'name servers can be asked directly, over UDP and TCP')
}

/** The first answer of a root server over this transport. */
async function throughAny(transport: 'udp' | 'tcp', context: Context): Promise<Message | undefined> {
  const tries = ROOT_SERVERS.map(async (server) => {
    const [high = 0, low = 0] = context.random.bytes(2)
    const id = high * 256 + low
    const wire = await context.dns[transport]({
      server,
      message: encodeQuery(id, ROOT, {
        recursionDesired: false,
        checkingDisabled: false,
        udpSize: undefined,
      }),
      timeoutMs: DIRECT_MS,
      accept: (answer) => decodeAnswer(answer, id, ROOT) !== undefined,
      signal: context.interrupts.signal,
    })
    const message = decodeAnswer(wire, id, ROOT)
    if (message === undefined) throw new DnsTransportError('closed', 'no answer to the question')
    return message
  })
  try {
    return await Promise.any(tries)
  } catch (error) {
    const errors = error instanceof AggregateError ? error.errors : [error]
    const bug = errors.find((one) => !(one instanceof DnsTransportError))
    if (bug !== undefined) throw bug
    return undefined
  }
}
