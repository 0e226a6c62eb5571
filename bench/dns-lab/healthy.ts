import { KNOT, KNOT_6, NSD, NSD_6, TLD_A, UNROUTED_6 } from './network.ts'
import { cut, rcode, relay, withoutEdns } from './relay.ts'
import { EXPECTED, OLDER, RIGHT, type Setup, SPF, txt } from './setup.ts'
import { type Hosts, zone } from './zone.ts'

/** The record at `app` below the zone. */
const APP = `app TXT "${EXPECTED}"`
const servers = (base: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => base.replace(/\d+$/, String(index + 1)))
const many = (addresses: readonly string[]): Hosts =>
  Object.fromEntries(addresses.map((address, index) => [`ns${index + 1}`, [address]]))
const fillers = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    txt(`service-${index}-verification=${'k3'.repeat(40)}${index}`),
  ).join('\n')
const LONG = `${'l'.repeat(60)}.${'m'.repeat(60)}.${'n'.repeat(60)}.${'o'.repeat(50)}.longname.com`

/** A zone whose server is behind a relay. */
function behind(apex: string, behavior: Parameters<typeof relay>[0], records = RIGHT) {
  return zone(apex, records, { at: ['nsd'], ns: { ns1: [relay({ upstream: NSD, ...behavior }).address] } })
}

export const HEALTHY: readonly Setup[] = [
  { id: 'one', what: 'one name server', name: 'one.com', zones: [zone('one.com', RIGHT, { at: ['knot'] })] },
  { id: 'two', what: 'two name servers of two makes', name: 'two.com', zones: [zone('two.com', RIGHT)] },
  {
    id: 'three',
    what: 'Knot, NSD and BIND',
    name: 'three.com',
    zones: [zone('three.com', RIGHT, { at: ['knot', 'nsd', 'bind'] })],
  },
  {
    id: 'bind',
    what: 'BIND alone, minimal responses',
    name: 'app.bindonly.org',
    zones: [zone('bindonly.org', APP, { at: ['bind'] })],
  },
  { id: 'sub', what: 'a name below the apex', name: 'app.sub.com', zones: [zone('sub.com', APP)] },
  {
    id: 'deep',
    what: 'six labels below the apex',
    name: 'a.b.c.d.e.f.deep.org',
    zones: [zone('deep.org', `a.b.c.d.e.f TXT "${EXPECTED}"`)],
  },
  {
    id: 'ent',
    what: 'names below it have records too',
    name: 'app.below.com',
    zones: [zone('below.com', `${APP}\nx.app A 192.0.2.1\n*.app A 192.0.2.2`)],
  },
  {
    id: 'longname',
    what: 'a name of 250 characters',
    name: LONG,
    zones: [zone('longname.com', `${LONG}. TXT "${EXPECTED}"`)],
  },
  {
    id: 'underscore',
    what: 'a name with an underscore',
    name: '_mc.under.dev',
    zones: [zone('under.dev', `_mc TXT "${EXPECTED}"`)],
  },
  {
    id: 'subzone',
    what: 'a delegated subzone at other servers',
    name: 'app.team.outer.com',
    zones: [zone('outer.com', '', { at: ['knot'] }), zone('team.outer.com', APP, { at: ['nsd'] })],
  },
  {
    id: 'subapex',
    what: 'the apex of a delegated subzone',
    name: 'team.outside.com',
    zones: [zone('outside.com', RIGHT, { at: ['nsd'] }), zone('team.outside.com', RIGHT, { at: ['bind'] })],
  },
  {
    id: 'subsame',
    what: 'a subzone at the servers of its parent: no referral is ever seen',
    name: 'app.team.same.com',
    zones: [zone('same.com', ''), zone('team.same.com', APP)],
  },
  {
    id: 'subsub',
    what: 'a subzone of a subzone',
    name: 'x.b.a.nested.net',
    zones: [
      zone('nested.net', '', { at: ['knot'] }),
      zone('a.nested.net', '', { at: ['nsd'] }),
      zone('b.a.nested.net', `x TXT "${EXPECTED}"`, { at: ['bind'] }),
    ],
  },
  {
    id: 'cname',
    what: 'an alias to the record in the same zone',
    name: 'app.alias.com',
    zones: [zone('alias.com', `app CNAME proof\nproof TXT "${EXPECTED}"`)],
  },
  {
    id: 'cnameout',
    what: 'an alias into another top-level domain',
    name: 'app.aliasout.com',
    zones: [
      zone('aliasout.com', 'app CNAME proof.aliastarget.org.'),
      zone('aliastarget.org', `proof TXT "${EXPECTED}"`, { at: ['bind'] }),
    ],
  },
  {
    id: 'cname3',
    what: 'three aliases through three zones',
    name: 'app.alias1.com',
    zones: [
      zone('alias1.com', 'app CNAME app.alias2.net.', { at: ['knot'] }),
      zone('alias2.net', 'app CNAME app.alias3.org.', { at: ['nsd'] }),
      zone('alias3.org', APP, { at: ['bind'] }),
    ],
  },
  {
    id: 'dname',
    what: 'a name below a DNAME',
    name: 'app.old.dnamed.com',
    zones: [zone('dnamed.com', `old DNAME new\napp.new TXT "${EXPECTED}"`)],
  },
  {
    id: 'dnameout',
    what: 'a DNAME into another top-level domain',
    name: 'app.eu.dnameout.com',
    zones: [zone('dnameout.com', 'eu DNAME dnametarget.de.', { at: ['bind'] }), zone('dnametarget.de', APP)],
  },
  {
    id: 'dnameapex',
    what: 'the record at an apex that has a DNAME',
    name: 'dnameapex.org',
    zones: [
      zone('dnameapex.org', `${RIGHT}\n@ DNAME dnameapex2.org.`, {
        at: ['knot'],
        ns: { 'ns1.dnameapex2.org.': [] },
      }),
      zone('dnameapex2.org', '', { at: ['knot'] }),
    ],
  },
  {
    id: 'wildbeside',
    what: 'a wildcard beside the name',
    name: 'app.wildbeside.com',
    zones: [zone('wildbeside.com', `${APP}\n* TXT "v=spf1 -all"\n* A 192.0.2.9`)],
  },
  {
    id: 'wildvalue',
    what: 'a wildcard with the value',
    name: 'any.wildvalue.com',
    zones: [zone('wildvalue.com', `* TXT "${EXPECTED}"`)],
  },
  {
    id: 'wildalias',
    what: 'a wildcard alias to the record',
    name: 'any.wildalias.com',
    zones: [zone('wildalias.com', `* CNAME proof\nproof TXT "${EXPECTED}"`)],
  },
  {
    id: 'values',
    what: 'six TXT records of other services',
    name: 'values.com',
    zones: [
      zone(
        'values.com',
        `${txt(SPF, 'google-site-verification=abc', 'MS=ms123')}\n${RIGHT}\n${txt('stripe-verification=1', 'docusign=2', 'apple-domain=3')}`,
      ),
    ],
  },
  {
    id: 'older',
    what: 'an older value beside it',
    name: 'older.com',
    zones: [zone('older.com', txt(OLDER, EXPECTED))],
  },
  {
    id: 'strings',
    what: 'the value in two strings',
    name: 'strings.com',
    zones: [zone('strings.com', `@ TXT "${EXPECTED.slice(0, 9)}" "${EXPECTED.slice(9)}"`)],
  },
  {
    id: 'signed',
    what: 'signed with ECDSA and NSEC',
    name: 'app.signed.com',
    zones: [zone('signed.com', APP, { signed: {} })],
  },
  {
    id: 'signed3',
    what: 'signed with RSA and NSEC3',
    name: 'signed3.org',
    zones: [zone('signed3.org', RIGHT, { signed: { algorithm: 'RSASHA256', nsec3: 'plain' } })],
  },
  {
    id: 'ed25519',
    what: 'signed with Ed25519',
    name: 'ed.dev',
    zones: [zone('ed.dev', RIGHT, { signed: { algorithm: 'ED25519' } })],
  },
  {
    id: 'nods',
    what: 'signed, but without a DS at the registry',
    name: 'island.com',
    zones: [zone('island.com', RIGHT, { signed: { ds: 'none' } })],
  },
  {
    id: 'insecure',
    what: 'an unsigned zone below a signed one',
    name: 'app.plain.secured.dev',
    zones: [zone('secured.dev', '', { signed: {} }), zone('plain.secured.dev', APP, { at: ['bind'] })],
  },
  {
    id: 'secure2',
    what: 'a signed zone below a signed one at the same servers',
    name: 'app.in.chain.dev',
    zones: [zone('chain.dev', '', { signed: {} }), zone('in.chain.dev', APP, { signed: { nsec3: 'plain' } })],
  },
  {
    id: 'signedalias',
    what: 'an alias from a signed zone into an unsigned one',
    name: 'app.signedalias.com',
    zones: [
      zone('signedalias.com', 'app CNAME proof.unsignedtarget.net.', { signed: {} }),
      zone('unsignedtarget.net', `proof TXT "${EXPECTED}"`),
    ],
  },
  {
    id: 'signedwild',
    what: 'a wildcard in a signed zone',
    name: 'any.signedwild.com',
    zones: [zone('signedwild.com', `* TXT "${EXPECTED}"`, { signed: { nsec3: 'plain' } })],
  },
  {
    id: 'provider',
    what: 'name servers of a provider in another domain',
    name: 'customer.com',
    zones: [
      zone('customer.com', RIGHT, { ns: { 'ns1.dnshost.net.': [], 'ns2.dnshost.net.': [] } }),
      zone('dnshost.net', '', {}),
    ],
  },
  {
    id: 'glueless',
    what: 'a provider whose own name servers are in a third domain',
    name: 'glueless.org',
    zones: [
      zone('glueless.org', RIGHT, { ns: { 'ns.first.de.': [] }, at: ['knot'] }),
      zone('first.de', `ns A ${KNOT}`, { ns: { 'ns.second.io.': [] }, at: ['nsd'] }),
      zone('second.io', `ns A ${NSD}`, { at: ['knot'] }),
    ],
  },
  {
    id: 'fourtlds',
    what: 'four name servers in four top-level domains',
    name: 'fourtlds.com',
    zones: [
      zone('fourtlds.com', RIGHT, {
        ns: { 'ns.host4.com.': [], 'ns.host4.net.': [], 'ns.host4.org.': [], 'ns.host4.co.uk.': [] },
      }),
      ...['com', 'net', 'org', 'co.uk'].map((tld, index) =>
        zone(`host4.${tld}`, `ns A ${index % 2 ? NSD : KNOT}`),
      ),
    ],
  },
  {
    id: 'eight',
    what: 'eight name servers',
    name: 'eight.com',
    zones: [zone('eight.com', RIGHT, { ns: many([...servers(KNOT, 4), ...servers(NSD, 4)]) })],
  },
  {
    id: 'thirteen',
    what: 'thirteen name servers',
    name: 'thirteen.org',
    zones: [zone('thirteen.org', RIGHT, { ns: many([...servers(KNOT, 7), ...servers(NSD, 6)]) })],
  },
  {
    id: 'twins',
    what: 'two names of one server',
    name: 'twins.com',
    zones: [zone('twins.com', RIGHT, { at: ['knot'], ns: { ns1: [KNOT], ns2: [KNOT] } })],
  },
  {
    id: 'multi',
    what: 'one name server host with three addresses',
    name: 'multi.com',
    zones: [zone('multi.com', RIGHT, { at: ['knot', 'nsd'], ns: { ns1: servers(KNOT, 2).concat(NSD) } })],
  },
  {
    id: 'v6only',
    what: 'servers with IPv6 alone',
    name: 'v6only.dev',
    zones: [zone('v6only.dev', RIGHT, { ns: { ns1: [KNOT_6], ns2: [NSD_6] } })],
  },
  {
    id: 'dual',
    what: 'servers with IPv4 and IPv6',
    name: 'dual.dev',
    zones: [zone('dual.dev', RIGHT, { ns: { ns1: [KNOT, KNOT_6], ns2: [NSD, NSD_6] } })],
  },
  {
    id: 'nov6',
    what: 'IPv6 addresses that this machine has no route to',
    name: 'nov6.com',
    zones: [zone('nov6.com', RIGHT, { ns: { ns1: [KNOT, UNROUTED_6], ns2: [NSD, UNROUTED_6] } })],
  },
  {
    id: 'large',
    what: 'an answer that needs TCP',
    name: 'large.com',
    zones: [zone('large.com', `${RIGHT}\n${fillers(20)}`)],
  },
  {
    id: 'alwaystc',
    what: 'a server that answers over UDP with "ask over TCP"',
    name: 'alwaystc.com',
    zones: [behind('alwaystc.com', { own: (query) => (query.transport === 'udp' ? cut(query) : undefined) })],
  },
  {
    id: 'idn',
    what: 'an internationalized name as it is written',
    name: 'Bücher.com',
    zones: [zone('xn--bcher-kva.com', RIGHT)],
  },
  {
    id: 'idntld',
    what: 'an internationalized top-level domain',
    name: 'почта.рф',
    zones: [zone('xn--80a1acny.xn--p1ai', RIGHT)],
  },
  {
    id: 'couk',
    what: 'a domain below co.uk, a zone of its own',
    name: 'app.shop.co.uk',
    zones: [zone('shop.co.uk', APP)],
  },
  {
    id: 'cojp',
    what: 'a domain below co.jp, a part of the zone jp',
    name: 'kaisha.co.jp',
    zones: [zone('kaisha.co.jp', RIGHT)],
  },
  {
    id: 'comau',
    what: 'a domain below com.au',
    name: 'cobber.com.au',
    zones: [zone('cobber.com.au', RIGHT, { at: ['bind'] })],
  },
  {
    id: 'combr',
    what: 'a domain below com.br, signed',
    name: 'loja.com.br',
    zones: [zone('loja.com.br', RIGHT, { signed: {} })],
  },
  {
    id: 'k12',
    what: 'a school below pvt.k12.ma.us, all in the zone us',
    name: 'school.pvt.k12.ma.us',
    zones: [zone('school.pvt.k12.ma.us', RIGHT)],
  },
  {
    id: 'private',
    what: 'a name in the zone of a host for everybody',
    name: 'somebody.github.io',
    zones: [zone('github.io', `somebody TXT "${EXPECTED}"\n* A 192.0.2.1`)],
  },
  {
    id: 'private2',
    what: 'a domain delegated by a host for everybody',
    name: 'shop.uk.com',
    zones: [zone('uk.com', ''), zone('shop.uk.com', RIGHT, { at: ['bind'] })],
  },
  {
    id: 'idme',
    what: 'a company domain that looks like a registry',
    name: 'id.me',
    zones: [zone('id.me', RIGHT)],
  },
  {
    id: 'webde',
    what: 'a name below a company domain that looks like a registry',
    name: 'verify.web.de',
    zones: [zone('web.de', `verify TXT "${EXPECTED}"`, { at: ['bind'] })],
  },
  {
    id: 'formerr',
    what: 'a server that answers EDNS with FORMERR',
    name: 'formerr.com',
    zones: [behind('formerr.com', { own: (query) => (query.edns ? rcode(query, 'FORMERR') : undefined) })],
  },
  {
    id: 'notimp',
    what: 'a server that answers EDNS with NOTIMP',
    name: 'notimp.com',
    zones: [behind('notimp.com', { own: (query) => (query.edns ? rcode(query, 'NOTIMP') : undefined) })],
  },
  {
    id: 'ignoresedns',
    what: 'a server that ignores EDNS',
    name: 'plaindns.com',
    zones: [behind('plaindns.com', { rewrite: withoutEdns })],
  },
  {
    id: 'slow150',
    what: 'servers 150 ms away',
    name: 'app.slow150.com',
    zones: [
      zone('slow150.com', APP, {
        ns: {
          ns1: [relay({ upstream: KNOT, delayMs: 150 }).address],
          ns2: [relay({ upstream: NSD, delayMs: 150 }).address],
        },
      }),
    ],
  },
  {
    id: 'slow300',
    what: 'servers 300 ms away',
    name: 'app.slow300.com',
    zones: [
      zone('slow300.com', APP, {
        ns: {
          ns1: [relay({ upstream: KNOT, delayMs: 300 }).address],
          ns2: [relay({ upstream: NSD, delayMs: 300 }).address],
        },
      }),
    ],
  },
  {
    id: 'slow900',
    what: 'a server that takes 900 ms',
    name: 'slow900.com',
    zones: [behind('slow900.com', { delayMs: 900 })],
  },
  {
    id: 'slow1300',
    what: 'a server that takes 1.3 s',
    name: 'slow1300.com',
    zones: [behind('slow1300.com', { delayMs: 1300 })],
  },
  {
    id: 'slowglue',
    what: 'a provider whose own zone is slow',
    name: 'slowglue.com',
    zones: [
      zone('slowglue.com', RIGHT, { at: ['knot'], ns: { 'ns.slowprovider.net.': [] } }),
      zone('slowprovider.net', `ns A ${KNOT}`, {
        at: ['nsd'],
        ns: { ns1: [relay({ upstream: NSD, delayMs: 1000 }).address] },
      }),
    ],
  },
  { id: 'slowtld', what: 'a registry 250 ms away', name: 'app.shop.slow', zones: [zone('shop.slow', APP)] },
  {
    id: 'lossy',
    what: 'a server that loses the first question',
    name: 'lossy.com',
    zones: [behind('lossy.com', { own: (query) => (query.count % 5 === 0 ? 'drop' : undefined) })],
  },
  {
    id: 'upper',
    what: 'a server that answers in capitals',
    name: 'upper.com',
    zones: [zone('UPPER.COM', RIGHT, { at: ['nsd'] })],
  },
  { id: 'ttl0', what: 'TTL 0', name: 'ttl0.com', zones: [zone('ttl0.com', RIGHT, { ttl: 0, minimum: 0 })] },
  {
    id: 'serials',
    what: 'copies with other serials and the same record',
    name: 'serials.com',
    zones: [zone('serials.com', RIGHT, { serials: { knot: 2026010101, nsd: 12 } })],
  },
  {
    id: 'hidden',
    what: 'a hidden primary',
    name: 'hidden.org',
    zones: [zone('hidden.org', RIGHT, { mname: { knot: 'primary', nsd: 'primary' } })],
  },
  {
    id: 'direct',
    what: 'an authoritative server given as the resolver',
    name: 'app.direct.com',
    resolvers: [{ at: KNOT }],
    zones: [zone('direct.com', APP)],
  },
  {
    id: 'directtld',
    what: 'a registry server given as the resolver',
    name: 'app.directtld.com',
    resolvers: [{ at: TLD_A }],
    zones: [zone('directtld.com', APP)],
  },
  {
    id: 'noval',
    what: 'a resolver that does not validate',
    name: 'app.noval.com',
    resolvers: ['unbound-plain'],
    zones: [zone('noval.com', APP)],
  },
  {
    id: 'viabind',
    what: 'BIND as the resolver',
    name: 'app.viabind.com',
    resolvers: ['bind'],
    zones: [zone('viabind.com', APP)],
  },
  {
    id: 'viabindsigned',
    what: 'BIND as the resolver, a signed zone',
    name: 'app.viabindsigned.org',
    resolvers: ['bind'],
    zones: [zone('viabindsigned.org', APP, { signed: { nsec3: 'plain' } })],
  },
  {
    id: 'viaknot',
    what: 'Knot Resolver',
    name: 'app.viaknot.dev',
    resolvers: ['knot-resolver'],
    zones: [zone('viaknot.dev', APP, { signed: {} })],
  },
  {
    id: 'viadnsmasq',
    what: 'dnsmasq in a router',
    name: 'app.viadnsmasq.com',
    resolvers: ['dnsmasq'],
    zones: [zone('viadnsmasq.com', APP)],
  },
  {
    id: 'viapowerdns',
    what: 'PowerDNS Recursor',
    name: 'app.viapowerdns.com',
    resolvers: ['powerdns'],
    zones: [zone('viapowerdns.com', APP, { signed: {} })],
  },
  {
    id: 'tworesolvers',
    what: 'two resolvers',
    name: 'app.tworesolvers.com',
    resolvers: ['unbound', 'bind'],
    zones: [zone('tworesolvers.com', APP)],
  },
]
