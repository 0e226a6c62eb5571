import type packet from 'dns-packet'
import { describe, expect, test } from 'vitest'
import { AA, type Asked, type FakeReply, RA, RCODE, TC } from './fake-dns.ts'
import { type FakeZone, fakeInternet, intercepted, RESOLVER, txt } from './fake-internet.ts'
import { timedCheck } from './timed-check.ts'

type World = (asked: Asked) => FakeReply
type Records = readonly packet.Answer[]

const VALUE = 'prefix=token-of-32-characters-0123456789'
const [ONE, TWO, OLD, V6] = ['192.0.2.2', '192.0.2.3', '192.0.2.4', '2001:db8::2']
const COM: FakeZone = { apex: 'com', servers: { 'a.nic.com': ['192.0.2.1', '2001:db8::1'] } }
const NET: FakeZone = { apex: 'net', servers: { 'a.nic.net': ['192.0.2.9'] } }
const SERVERS = { 'ns1.example.com': [ONE], 'ns2.example.com': [TWO] }
const cname = (name: string, data: string): packet.Answer => ({ type: 'CNAME', name, ttl: 300, data })
const a = (name: string): packet.Answer => ({ type: 'A', name, ttl: 300, data: '192.0.2.80' })
const value = (data: string, name = 'example.com') => [txt(name, data)]
const zone = (records: Records, more: Partial<FakeZone> = {}): FakeZone => ({
  ...{ apex: 'example.com', servers: SERVERS, records },
  ...more,
})
/** Creates a world where example.com has these records at conforming servers. */
const dns = (records: Records, more: Partial<FakeZone> = {}): World =>
  fakeInternet([COM, NET, zone(records, more)])
/** Replaces answers of the server at `at`, or of all name servers of the zone, in a world. */
const odd = (world: World, reply: (asked: Asked) => FakeReply | undefined, at?: string): World => {
  const isZones = ({ server }: Asked) => Object.values(SERVERS).flat().includes(server)
  return (asked) =>
    (at === undefined ? isZones(asked) : asked.server === at) ? (reply(asked) ?? world(asked)) : world(asked)
}
const isTxt = ({ type, name }: Asked, owner = 'example.com') => type === 'TXT' && name === owner
/** Creates a world with a TXT set of 5 kB, which is truncated over UDP unless `fragments` admits a buffer of 4,096 bytes. */
const large = (records: Records, tcp: 'works' | 'silent' | 'unreachable', fragments = false) => {
  const world = dns([
    ...records,
    ...Array.from({ length: 40 }, (_, n) => txt('example.com', `${n}`.padEnd(120))),
  ])
  return (asked: Asked): FakeReply => {
    if (!isTxt(asked)) return world(asked)
    if (asked.transport === 'tcp') return tcp === 'works' ? world(asked) : tcp
    return fragments && asked.edns === 4096 ? world(asked) : { flags: AA | TC }
  }
}
const byAddress =
  (worlds: Readonly<Record<string, World>>, otherwise: World): World =>
  (asked) =>
    (worlds[asked.server] ?? otherwise)(asked)
/** Creates the copy of the zone that another provider has of a moved domain, with these servers in its NS set. */
const copyAt = (servers: FakeZone['servers'], records: Records) => dns(records, { servers })

/** The private zone of a network, with the name of the public zone and without the record. */
const OWN = zone([a('example.com')], { servers: { 'ns.corp.example.com': ['10.0.0.53'] } })
const PUBLIC = dns(value(VALUE))
/** Public address of the name server of `SPLIT`, a company's own zone with the record, which the public zone lacks. */
const DC = '198.51.100.53'
const SPLIT = zone(value(VALUE), { servers: { 'dc1.corp.test': [DC] } })
/** Creates a network that drops queries, except those to its resolver, which serves the zone `own`, and to the addresses `open`. */
const closed = (own: FakeZone, open: readonly string[] = [], flags = AA | RA): World => {
  const inside = intercepted(dns([]), own, { flags, otherwise: 'forwards' })
  return (asked) => ([RESOLVER, ...open].includes(asked.server) ? inside(asked) : 'silent')
}
const DUAL = dns(value(VALUE), { servers: { 'ns1.example.com': [ONE, V6] } })

/** A public incident: its source, the state of DNS, and the expected verdict and findings of a check. */
interface Incident {
  readonly id: string
  readonly source: string
  readonly setup: string
  readonly world: World
  readonly name?: string
  readonly verdict: string
  readonly codes: readonly string[]
  /** Text in the message or the fix of the first finding. */
  readonly says?: string
  readonly resolvers?: readonly string[]
}

const MISTAKES: readonly Incident[] = [
  {
    ...{ id: 'eqesc', source: 'octodns/octodns#229' },
    setup: 'a backslash is stored in front of the equals sign',
    world: dns(value(VALUE.replace('=', '\\='))),
    ...{ verdict: 'fix', codes: ['quoted'], says: 'without quotation marks and backslashes' },
  },
  {
    ...{ id: 'zonelevel', source: 'zordhalo/runs-on.dev#26' },
    setup: 'the record of shop.example.com is one level above, under the label of another service',
    ...{ world: dns(value(VALUE, '_vercel.example.com')), name: 'shop.example.com' },
    ...{
      verdict: 'fix',
      codes: ['other_name'],
      says: 'is at _vercel.example.com instead of shop.example.com',
    },
  },
  {
    ...{ id: 'sublabel2', source: 'is-a-good-dev/register#972' },
    setup: 'the record of quack.example.com is below that name, under the prefix of its value',
    ...{ world: dns(value(VALUE, '_prefix.quack.example.com')), name: 'quack.example.com' },
    ...{ verdict: 'fix', codes: ['other_name'] },
  },
  {
    ...{ id: 'chandra2', source: 'is-a-dev/register#6840' },
    setup: 'the first label of the name is doubled',
    ...{ world: dns(value(VALUE, 'chandra.chandra.example.com')), name: 'chandra.example.com' },
    ...{ verdict: 'fix', codes: ['other_name'] },
  },
  {
    ...{ id: 'nodot', source: 'go-acme/lego#3156' },
    setup: 'the record of sub.example.com is at sub.com.example.com, as from a form that wants a final dot',
    ...{ world: dns(value(VALUE, 'sub.com.example.com')), name: 'sub.example.com' },
    ...{ verdict: 'fix', codes: ['other_name'] },
  },
  {
    ...{ id: 'extdns', source: 'kubernetes-sigs/external-dns#692' },
    setup: 'the only TXT record at the name marks it as owned by external-dns',
    world: dns(value('heritage=external-dns,external-dns/owner=prod')),
    ...{ verdict: 'fix', codes: ['missing'], says: 'external-dns manages them' },
  },
  {
    ...{ id: 'dup53', source: 'a hosted zone made twice at Route 53' },
    setup: 'the delegated zone lacks the record, which may be in a second hosted zone that is not delegated',
    world: dns([], { servers: { 'ns-1.awsdns-01.com': [ONE], 'ns-2.awsdns-02.net': [TWO] } }),
    ...{ verdict: 'fix', codes: ['missing'] },
    says: 'at Amazon Route 53, in the panel with the name servers ns-1.awsdns-01.com, ns-2.awsdns-02.net',
  },
  {
    ...{ id: 'ghcname', source: 'js-org/js.org#8550' },
    setup: 'the name is an alias (CNAME) for a host that does not exist',
    ...{ world: dns([cname('app.example.com', 'gone.example.net')]), name: 'app.example.com' },
    ...{ verdict: 'fix', codes: ['cname_at_name'] },
  },
  {
    ...{ id: 'wildself', source: 'go-acme/lego#248' },
    setup: 'a wildcard with a CNAME answers for the name',
    name: 'app.example.com',
    world: odd(dns([a('web.example.com')]), ({ type, name }) =>
      type === 'TXT' && name !== 'example.com'
        ? { flags: AA, answers: [cname(name, 'web.example.com')] }
        : undefined,
    ),
    ...{ verdict: 'fix', codes: ['wildcard_answer'] },
  },
  {
    ...{ id: 'tail3', source: 'facileManager/facileManager#697' },
    setup: 'an HTML end tag follows the value, as if copied from a page',
    world: dns(value(`${VALUE}</td>`)),
    ...{ verdict: 'fix', codes: ['extra_text'] },
  },
  {
    ...{ id: 'vc-comma', source: 'zordhalo/runs-on.dev#36' },
    setup: 'the value has the domain and a comma after its equals sign, as with another service',
    world: dns(value(VALUE.replace('=', '=example.com,'))),
    ...{ verdict: 'fix', codes: ['characters_changed'] },
  },
  {
    ...{ id: 'apexnx', source: 'coredns/coredns#4374' },
    setup: 'the server says NXDOMAIN at an apex that has no TXT record',
    world: odd(dns([]), (asked) => (isTxt(asked) ? { flags: AA | RCODE.NXDOMAIN } : undefined)),
    ...{ verdict: 'fix', codes: ['missing'] },
  },
  {
    ...{ id: 'both-mix', source: 'kubernetes-sigs/external-dns#330' },
    setup: 'one response has a CNAME and the record at the same name',
    world: odd(dns([]), (asked) =>
      isTxt(asked)
        ? { flags: AA, answers: [cname('example.com', 'web.example.net'), ...value(VALUE)] }
        : undefined,
    ),
    ...{ verdict: 'fix', codes: ['cname_at_name'], says: 'the TXT record that is there beside it' },
  },
  {
    ...{ id: 'both-apart', source: 'kubernetes-sigs/external-dns#330' },
    setup: 'TXT queries get the record, CNAME queries an alias, which the resolver also gives for TXT',
    world: (asked) => {
      const alias = { flags: AA, answers: [cname('example.com', 'web.example.net')] }
      if (asked.name === 'example.com' && asked.type === 'CNAME') return alias
      return isTxt(asked) && asked.server === RESOLVER ? { ...alias, flags: RA } : PUBLIC(asked)
    },
    ...{ verdict: 'fix', codes: ['cname_at_name'], says: 'the TXT record that is there beside it' },
  },
  {
    ...{ id: 'firststr', source: 'PowerDNS/pdns#112' },
    setup: 'one of two servers has only the first 30 characters of the value, at the same serial',
    world: byAddress({ [TWO]: dns(value(VALUE.slice(0, 30))) }, PUBLIC),
    ...{ verdict: 'fix', codes: ['truncated'], says: 'on ns2.example.com' },
  },
  {
    ...{ id: 'big-miss', source: 'getprobo/probo#1335' },
    setup: 'the record is missing in a TXT set of 5 kB, and one server drops TCP',
    world: byAddress({ [TWO]: large([], 'silent') }, large([], 'works')),
    ...{ verdict: 'fix', codes: ['missing', 'some_servers_silent'] },
  },
  {
    ...{ id: 'big-none', source: 'keybase/keybase-issues#1722' },
    setup: 'the TXT set has 5 kB, and the servers are closed to TCP',
    world: large(value(VALUE), 'unreachable'),
    ...{ verdict: 'unknown', codes: ['nameserver_unreachable'] },
    says: "the TXT records of example.com are too large for UDP, and TCP port 53 doesn't answer",
  },
  {
    ...{ id: 'tcp-drop-big', source: 'bitwarden/server#2899' },
    setup: 'the TXT set has 5 kB, and this network drops TCP on port 53',
    world: large(value(VALUE), 'silent'),
    ...{ verdict: 'unknown', codes: ['nameserver_unreachable'] },
    says: "check again from another network; if they don't answer there either, tell the DNS provider to open TCP",
  },
  {
    ...{ id: 'txt-notimp', source: 'an appliance that balances load' },
    setup: 'all servers, even those of the zone, answer NOTIMP to TXT queries',
    world: (asked) => (asked.type === 'TXT' ? { flags: AA | 4 } : dns([])(asked)),
    ...{ verdict: 'unknown', codes: ['nameserver_unreachable'], says: 'answer, but not for TXT' },
  },
  {
    ...{ id: 'txt-refused-one', source: 'an appliance that balances load' },
    setup: 'one of two servers of the zone refuses TXT queries only',
    world: odd(PUBLIC, (asked) => (asked.type === 'TXT' ? { flags: RCODE.REFUSED } : undefined), TWO),
    ...{ verdict: 'ready_with_warning', codes: ['some_servers_silent'], says: 'answer, but not for TXT' },
  },
  {
    ...{ id: 'childold', source: 'anonaddy/anonaddy#662' },
    setup:
      'the NS set in the zone has the new servers, and one of the earlier provider, which lacks the record',
    world: (() => {
      const earlier = { 'ns.old.example.com': [OLD] }
      const [above, child] = [dns(value(VALUE)), copyAt({ ...SERVERS, ...earlier }, value(VALUE))]
      return byAddress({ [ONE]: child, [TWO]: child, [OLD]: copyAt(earlier, []) }, (asked) =>
        (asked.name === 'ns.old.example.com' ? child : above)(asked),
      )
    })(),
    ...{ verdict: 'fix', codes: ['parent_child_mismatch'] },
  },
  {
    ...{ id: 'leftover', source: 'anonaddy/anonaddy#662' },
    setup: 'the registry still names the servers of the earlier provider, whose copy names the new server',
    world: (() => {
      const later = { 'ns.new.example.com': [OLD] }
      const left: World = (asked) => copyAt(later, [])({ ...asked, server: OLD })
      return byAddress({ [ONE]: left, [TWO]: left, [OLD]: copyAt(later, value(VALUE)) }, (asked) =>
        (asked.name === 'ns.new.example.com' ? left : dns([]))(asked),
      )
    })(),
    ...{ verdict: 'fix', codes: ['parent_child_mismatch'] },
  },
  {
    ...{ id: 'small-host', source: 'a company that runs name server and resolver in one' },
    setup: 'the name servers also answer for com like a resolver, and lack the record',
    world: odd(dns([]), (asked) => {
      if (asked.name !== 'com') return undefined
      return dns([])({ ...asked, server: RESOLVER })
    }),
    ...{ verdict: 'fix', codes: ['missing'] },
  },
]

const HEALTHY: readonly Incident[] = [
  {
    ...{ id: 'twoboth', source: 'acme-dns/acme-dns#353' },
    setup: 'the name has a second TXT record with another value',
    world: dns([...value(VALUE), ...value('prefix=another-token-0123456789')]),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'acme-ok', source: 'acme-dns/acme-dns#257' },
    setup: 'the name is an alias for a name that its server denies for every type but TXT',
    name: 'app.example.com',
    world: (() => {
      const alias = cname('app.example.com', 'x.auth.example.com')
      const both = { answers: [alias, ...value(VALUE, 'x.auth.example.com')] }
      const world = dns([alias, ...value(VALUE, 'x.auth.example.com')])
      return (asked: Asked): FakeReply => {
        if (isTxt(asked, 'app.example.com')) return { ...both, flags: asked.server === RESOLVER ? RA : AA }
        const isDenied = asked.name === 'x.auth.example.com' && asked.type !== 'TXT'
        return isDenied ? { flags: AA | RCODE.NXDOMAIN } : world(asked)
      }
    })(),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'acme-direct', source: 'acme-dns/acme-dns#257' },
    setup: 'the servers leave out the AA bit and reject EDNS',
    world: odd(PUBLIC, (asked) => {
      if (asked.edns !== undefined) return { flags: RCODE.FORMERR }
      const reply = PUBLIC(asked)
      return typeof reply === 'string' ? reply : { ...reply, flags: (reply.flags ?? 0) & ~AA }
    }),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'noedns-loss', source: 'acme-dns/acme-dns#257' },
    setup: 'the servers reject EDNS, and the datagrams without EDNS are lost',
    world: odd(PUBLIC, ({ edns, transport }) => {
      if (edns !== undefined) return { flags: RCODE.FORMERR }
      return transport === 'udp' ? 'silent' : undefined
    }),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'ent-ok', source: 'domainr/dnsr#30' },
    setup: 'the servers deny the empty non-terminal above the name',
    name: 'a.b.example.com',
    world: odd(dns(value(VALUE, 'a.b.example.com')), ({ name }) =>
      name === 'b.example.com' ? { flags: AA | RCODE.NXDOMAIN } : undefined,
    ),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'nons', source: 'kchristensen/udm-le#88' },
    setup: 'the zone has no NS records of its own',
    world: odd(PUBLIC, ({ type }) => (type === 'NS' ? { flags: AA } : undefined)),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'tcp-drop-small', source: 'lieser/dkim_verifier#366' },
    setup: 'this network drops TCP on port 53, and the TXT set is small',
    world: (asked) => (asked.transport === 'tcp' ? 'silent' : PUBLIC(asked)),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'tcp-drop-fragments', source: 'bitwarden/server#2899' },
    setup: 'this network drops TCP on port 53, and lets fragments of the TXT set pass',
    world: large(value(VALUE), 'silent', true),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'res21-ok', source: 'microsoft/WSL#7698' },
    setup: 'the resolver truncates its response to the TXT query, and does not answer over TCP',
    world: odd(
      PUBLIC,
      (asked) => {
        if (!isTxt(asked)) return undefined
        return asked.transport === 'tcp' ? 'silent' : { flags: RA | TC }
      },
      RESOLVER,
    ),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'res25-ok', source: 'AdguardTeam/dnsproxy#450' },
    setup: 'the resolver answers the TXT query with SERVFAIL, without the RA bit',
    world: odd(PUBLIC, (asked) => (isTxt(asked) ? { flags: RCODE.SERVFAIL } : undefined), RESOLVER),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'res31-ok', source: 'rancher/rancher#2931' },
    setup: 'the resolver answers the TXT query with an empty response',
    world: odd(PUBLIC, (asked) => (isTxt(asked) ? { flags: RA } : undefined), RESOLVER),
    ...{ verdict: 'ready_with_warning', codes: ['resolver_differs'] },
  },
]

const NETWORKS: readonly Incident[] = [
  {
    ...{ id: 'istio', source: 'cert-manager/cert-manager#5917' },
    setup: 'a cluster redirects port 53 to a server that forwards, and has a zone of its own',
    world: intercepted(PUBLIC, OWN, { flags: AA, otherwise: 'forwards' }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'istio-ra', source: 'cert-manager/cert-manager#5917' },
    setup: 'a cluster redirects port 53 to a server that offers recursion in answers from its own zone',
    world: intercepted(PUBLIC, OWN, { flags: AA | RA, otherwise: 'forwards' }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'istio-same-ns', source: 'cert-manager/cert-manager#5917' },
    setup: 'a cluster redirects port 53 to a server that has an older copy of the public zone',
    world: intercepted(PUBLIC, zone([]), { flags: AA, otherwise: 'forwards' }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'istio-refuses', source: 'cert-manager/cert-manager#820' },
    setup: 'all but the resolver is redirected to a server that refuses what is not in its own zone',
    world: intercepted(PUBLIC, OWN, {
      ...{ flags: AA, otherwise: 'refuses' },
      isRedirected: ({ server }) => server !== RESOLVER,
    }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'istio-v4', source: 'cert-manager/cert-manager#5917' },
    setup: 'only IPv4 is redirected, and IPv6 shows the record',
    world: intercepted(DUAL, OWN, {
      ...{ flags: AA, otherwise: 'forwards' },
      isRedirected: ({ server }) => !server.includes(':'),
    }),
    // The network's resolver is redirected too, and answers from the private zone.
    ...{ verdict: 'ready_with_warning', codes: ['resolver_differs'] },
  },
  {
    ...{ id: 'istio-v4-refuses', source: 'cert-manager/cert-manager#820' },
    setup:
      'only IPv4 is redirected, to a server that refuses what is not in its own zone; the resolver is not',
    world: intercepted(DUAL, OWN, {
      ...{ flags: AA, otherwise: 'refuses' },
      isRedirected: ({ server }) => !server.includes(':') && server !== RESOLVER,
    }),
    ...{ verdict: 'ready', codes: [] },
  },
  {
    ...{ id: 'istio-not-registry', source: 'cert-manager/cert-manager#820' },
    setup: 'the network redirects only queries to the zone’s name servers',
    world: intercepted(PUBLIC, OWN, {
      ...{ flags: AA, otherwise: 'forwards' },
      isRedirected: ({ server }) => Object.values(SERVERS).flat().includes(server),
    }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'istio-old-value', source: 'cert-manager/cert-manager#5917' },
    setup: 'the network’s own zone has a value of an earlier claim',
    world: intercepted(PUBLIC, zone(value('prefix=earlier-token-0123456789'), { servers: OWN.servers }), {
      ...{ flags: AA, otherwise: 'forwards' },
    }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'] },
  },
  {
    ...{ id: 'istio-https', source: 'cert-manager/cert-manager#5917' },
    setup: 'a resolver over HTTPS, as the fix says, sees past the network’s own zone',
    world: intercepted(PUBLIC, OWN, { flags: AA, otherwise: 'forwards' }),
    resolvers: ['https://dns.example/dns-query'],
    ...{ verdict: 'ready_with_warning', codes: ['resolver_only'] },
  },
  {
    ...{ id: 'egress-drop-miss', source: 'cert-manager/cert-manager#2337' },
    setup: 'the network drops queries except to its resolver, which shows that the record is missing',
    world: (asked) => (asked.server === RESOLVER ? dns([])(asked) : 'silent'),
    ...{ verdict: 'unknown', codes: ['nameserver_unreachable'] },
  },
  {
    ...{ id: 'egress-refused', source: 'a firewall that answers on port 53 for others' },
    setup: 'the network drops queries to registries, and refuses those to the zone’s name servers',
    world: odd(
      (asked) => (asked.server === RESOLVER ? dns([])(asked) : 'silent'),
      () => ({ flags: RCODE.REFUSED }),
    ),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'] },
  },
  {
    ...{ id: 'egress-reject-quoted', source: 'cert-manager/cert-manager#903' },
    setup: 'the network rejects queries except to its resolver, which shows quotation marks in the value',
    world: (asked) => (asked.server === RESOLVER ? dns(value(`"${VALUE}"`))(asked) : 'unreachable'),
    ...{ verdict: 'fix', codes: ['quoted', 'nameserver_unreachable'] },
  },
  {
    ...{ id: 'split-redirect', source: 'cert-manager/cert-manager#894' },
    setup:
      'a company redirects port 53 to its resolver, whose own zone has the record, and the public one lacks it',
    world: intercepted(dns([]), SPLIT, { flags: AA | RA, otherwise: 'forwards' }),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'split-redirect-below', source: 'cert-manager/cert-manager#894' },
    setup: 'a company redirects port 53 to its resolver, which has its own zone below the registered domain',
    world: intercepted(
      dns([]),
      { ...SPLIT, apex: 'a.example.com', records: value(VALUE, 'a.example.com') },
      {
        ...{ flags: AA | RA, otherwise: 'forwards' },
      },
    ),
    ...{ name: 'a.example.com', verdict: 'unknown', codes: ['dns_intercepted'] },
  },
  {
    ...{ id: 'split-closed', source: 'cert-manager/cert-manager#894' },
    setup: 'a company drops queries except to its resolver, whose own zone has the record',
    world: closed(zone(value(VALUE), { servers: SERVERS })),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'split-closed-no-ns', source: 'cert-manager/cert-manager#894' },
    setup: 'a company drops queries except to its resolver, whose own zone has no NS records',
    world: (asked) =>
      asked.type === 'NS' && asked.name !== 'com' ? { flags: AA | RA } : closed(SPLIT)(asked),
    ...{ verdict: 'unknown', codes: ['resolver_unreachable'] },
  },
  {
    ...{ id: 'split-closed-miss', source: 'cert-manager/cert-manager#903' },
    setup: 'a company drops queries except to its resolver and name server, whose own zone lacks the record',
    world: closed({ ...SPLIT, records: [] }, [DC]),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'], says: 'this network has its own example.com' },
  },
  {
    ...{ id: 'split-forwarded-miss', source: 'srvrco/getssl#286' },
    setup: 'port 53 is open only to a company’s name server, and to its resolver, which forwards there',
    world: (asked) => closed({ ...SPLIT, records: [] }, [DC], asked.server === DC ? AA : RA)(asked),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'] },
  },
  {
    ...{ id: 'split-closed-local', source: 'cert-manager/cert-manager#894' },
    setup: 'a company drops queries except to its resolver, whose own zone names a server without address',
    world: closed(SPLIT),
    ...{ verdict: 'unknown', codes: ['dns_intercepted'] },
  },
  {
    ...{ id: 'split-open', source: 'acmesh-official/acme.sh#4249' },
    setup: 'the record is only in the own zone of this network’s resolver, and port 53 is open',
    world: byAddress(
      { [RESOLVER]: intercepted(dns([]), SPLIT, { flags: AA | RA, otherwise: 'forwards' }) },
      dns([]),
    ),
    ...{ verdict: 'fix', codes: ['missing'] },
  },
  {
    ...{ id: 'txt-refused', source: 'SuperFola/DoNotSend#10' },
    setup: 'a filter on this network refuses every TXT query to the name servers',
    world: odd(PUBLIC, (asked) => (asked.type === 'TXT' ? { flags: RCODE.REFUSED } : undefined)),
    ...{ verdict: 'ready_with_warning', codes: ['resolver_only'] },
  },
  {
    ...{ id: 'txt-refused-all', source: 'celzero/rethink-app#578' },
    setup: 'a filter on this network refuses every TXT query',
    world: (asked) => (asked.type === 'TXT' ? { flags: RCODE.REFUSED } : PUBLIC(asked)),
    ...{ verdict: 'unknown', codes: ['nameserver_unreachable'], says: 'answer, but not for TXT' },
  },
  {
    ...{ id: 'v6only-v4ns', source: 'TechnitiumSoftware/DnsServer#1098' },
    setup: 'this network has only IPv6, the name servers only IPv4, and the resolver shows the record',
    world: (asked) =>
      asked.server.includes('.') && asked.server !== RESOLVER ? 'not_checked' : PUBLIC(asked),
    ...{ verdict: 'ready_with_warning', codes: ['resolver_only'] },
  },
]

describe.each([
  ['mistakes of people and providers', MISTAKES],
  ['healthy set-ups that look odd', HEALTHY],
  ['networks between the check and the name servers', NETWORKS],
])('%s', (_title, incidents) => {
  const rows = incidents.map((it) => [`${it.verdict} if ${it.setup} (${it.id}, ${it.source})`, it] as const)
  test.each(rows)('the verdict of a check is %s', async (_, { world, name, resolvers, ...expected }) => {
    const options = { name: name ?? 'example.com', expected: VALUE, ...(resolvers && { resolvers }) }
    const { report, ms } = await timedCheck(world, options)
    const { verdict, findings } = report
    expect([verdict, ...findings.map(({ code }) => code)]).toEqual([expected.verdict, ...expected.codes])
    expect(`${findings[0]?.message}; ${findings[0]?.fix}`).toContain(expected.says ?? '')
    expect(ms).toBeLessThan(10_000)
  })
})
