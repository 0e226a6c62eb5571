import type packet from 'dns-packet'
import { AA, type Asked, EDNS, type FakeReply, RA, RCODE } from '../fake-dns.ts'
import { type FakeZone, fakeInternet, RESOLVER, txt } from '../fake-internet.ts'

/** The value that every report here expects. */
export const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'

/** A world in which something is wrong, and the finding that names it. */
export interface Fault {
  readonly title: string
  readonly code: string
  readonly respond: (asked: Asked) => FakeReply
  readonly name?: string
}

const SERVERS = {
  'ns1.example.com': ['192.0.2.11'],
  'ns2.example.com': ['192.0.2.12'],
  'ns3.example.com': ['2001:db8::13'],
}
const SPF = txt('example.com', 'v=spf1 include:_spf.example.net ~all')
const RIGHT = txt('example.com', EXPECTED)
const REGISTRY: FakeZone = {
  apex: 'com',
  servers: { 'a.nic.com': ['192.0.2.1'], 'b.nic.com': ['192.0.2.3'] },
}

function world(
  records: readonly packet.Answer[],
  odd?: (asked: Asked) => FakeReply | undefined,
  more: readonly FakeZone[] = [],
) {
  return fakeInternet([REGISTRY, { apex: 'example.com', servers: SERVERS, records }, ...more], odd)
}

const isServer = (number: 1 | 2 | 3, { server }: Asked) => server === SERVERS[`ns${number}.example.com`][0]
const isResolverForTxt = ({ server, type }: Asked) => server === RESOLVER && type === 'TXT'
const negativeSoa: packet.SoaAnswer = {
  type: 'SOA',
  name: 'example.com',
  ttl: 243,
  data: {
    mname: 'ns1.example.com',
    rname: 'hostmaster.example.com',
    serial: 8,
    refresh: 7200,
    retry: 900,
    expire: 86_400,
    minimum: 300,
  },
}

/** In a cache, a TTL is smaller each time. */
let left = 240
const counted = () => {
  left -= 1
  return left
}
const OLD = { type: 'TXT', name: 'example.com', data: 'mc-verify=A1b2C3d4E5f6G7h8J9' } as const

export const HEALTHY = world([SPF, RIGHT])

export const FAULTS: readonly Fault[] = [
  { title: 'the record is missing', code: 'missing', respond: world([SPF]) },
  {
    title: 'a character of the value is wrong',
    code: 'characters_changed',
    respond: world([SPF, txt('example.com', 'mc-verify=Q7dX2kV9pLr4TzBBnW')]),
  },
  {
    title: 'the value has quotation marks',
    code: 'quoted',
    respond: world([SPF, txt('example.com', `"${EXPECTED}"`)]),
  },
  {
    title: 'the domain is in the name twice',
    code: 'doubled_name',
    respond: world([SPF, txt('example.com.example.com', EXPECTED)]),
  },
  {
    title: 'the domain is not registered',
    code: 'domain_not_found',
    respond: fakeInternet([REGISTRY]),
  },
  {
    title: 'one server of three is not in sync',
    code: 'partial_propagation',
    respond: world([SPF, RIGHT], (asked) =>
      isServer(3, asked) && asked.type === 'TXT' ? world([SPF])(asked) : undefined,
    ),
  },
  {
    title: 'a server is lame',
    code: 'lame_nameserver',
    respond: world([SPF, RIGHT], (asked) => (isServer(2, asked) ? { flags: RCODE.REFUSED } : undefined)),
  },
  {
    title: 'a server is silent',
    code: 'nameserver_unreachable',
    respond: world([SPF, RIGHT], (asked) => (isServer(2, asked) ? 'silent' : undefined)),
  },
  {
    title: 'DNSSEC is broken',
    code: 'dnssec_bogus',
    respond: world([SPF, RIGHT], (asked) => {
      if (asked.type === 'DS' && asked.name === 'example.com')
        return {
          flags: asked.server === RESOLVER ? RA : AA,
          additionals: [EDNS],
          answers: [
            {
              type: 'DS',
              name: 'example.com',
              ttl: 3600,
              data: { keyTag: 60485, algorithm: 13, digestType: 2, digest: Buffer.alloc(32, 7) },
            },
          ],
        }
      if (isResolverForTxt(asked) && !asked.checkingDisabled) return { flags: RA | RCODE.SERVFAIL }
      return undefined
    }),
  },
  {
    title: 'a resolver has cached that there is none',
    code: 'cached_absence',
    respond: world([SPF, RIGHT], (asked) =>
      isResolverForTxt(asked) ? { flags: RA, authorities: [{ ...negativeSoa, ttl: counted() }] } : undefined,
    ),
  },
  {
    title: 'a resolver has cached an old value',
    code: 'cached_old_value',
    respond: world([SPF, RIGHT], (asked) =>
      isResolverForTxt(asked) ? { flags: RA, answers: [{ ...OLD, ttl: counted() }] } : undefined,
    ),
  },
  {
    title: 'the name is an alias',
    code: 'cname_at_name',
    name: 'app.example.com',
    respond: world(
      [SPF, { type: 'CNAME', name: 'app.example.com', ttl: 300, data: 'shop.hosting.com' }],
      undefined,
      [
        {
          apex: 'hosting.com',
          servers: { 'ns1.hosting.com': ['192.0.2.21'] },
          records: [txt('shop.hosting.com', 'v=spf1 -all')],
        },
      ],
    ),
  },
  {
    title: 'the network answers instead of the name servers',
    code: 'dns_intercepted',
    respond: (asked) => world([SPF, RIGHT])({ ...asked, server: RESOLVER }),
  },
  {
    title: 'no resolver answers',
    code: 'resolver_broken',
    respond: () => 'silent',
  },
]
