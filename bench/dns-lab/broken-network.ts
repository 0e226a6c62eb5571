import { INTERNAL, KNOT, NSD, TLD_A, TLD_B } from './network.ts'
import { question } from './processes.ts'
import { switchedRegistry } from './registries.ts'
import { type Relay, rcode, relay, without } from './relay.ts'
import { RESOLVERS } from './resolvers.ts'
import { EXPECTED, RIGHT, SPF, txt } from './setup.ts'
import type { Broken, Truth } from './truth.ts'
import { type Signing, type Zone, zone } from './zone.ts'

/** A resolver is asked before the record is there; then the record is added. */
function remembered(server: Relay, name: string) {
  return async (resolver: string) => {
    server.behavior = { upstream: INTERNAL }
    await question(resolver, name, 'TXT', 3000)
    server.behavior = { upstream: KNOT }
  }
}

function cached(
  id: string,
  what: string,
  domain: string,
  old: string,
  options: Partial<Zone>,
  truth: Truth,
  more: Partial<Broken> = {},
): Broken {
  const server = relay({ upstream: KNOT })
  const zones = [zone(domain, { knot: RIGHT, internal: old }, { ns: { ns1: [server.address] }, ...options })]
  return { id, what, name: domain, zones, before: remembered(server, domain), truth, ...more }
}

/** What resolvers cache, and what only looks cached. */
export const CACHES: readonly Broken[] = [
  cached(
    'c-absence',
    'the resolver remembers that there was nothing',
    'cached.com',
    '',
    { minimum: 120 },
    { verdicts: ['wait'], codes: ['cached_absence'], seconds: [100, 120] },
  ),
  cached(
    'c-absencebind',
    'BIND remembers that there was nothing',
    'cachedbind.com',
    '',
    { minimum: 130 },
    { verdicts: ['wait'], codes: ['cached_absence'], seconds: [110, 130] },
    { resolvers: ['bind'] },
  ),
  cached(
    'c-absencednsmasq',
    'dnsmasq remembers that there was nothing',
    'cacheddnsmasq.com',
    '',
    { minimum: 140 },
    { verdicts: ['wait'], codes: ['cached_absence'], seconds: [110, 140] },
    { resolvers: ['dnsmasq'] },
  ),
  cached(
    'c-old',
    'the resolver remembers the old set',
    'cachedold.com',
    txt(SPF),
    { ttl: 400 },
    { verdicts: ['wait'], codes: ['cached_old_value'], seconds: [380, 400] },
  ),
  cached(
    'c-oldplain',
    'the same at a resolver that does not validate',
    'cachedplain.com',
    txt(SPF),
    { ttl: 400 },
    { verdicts: ['wait'], codes: ['cached_old_value'], seconds: [380, 400] },
    { resolvers: ['unbound-plain'] },
  ),
  {
    id: 'c-moved',
    what: 'the resolver holds the NS set of the old provider, whose zone lives on',
    name: 'moved.moving',
    zones: [
      zone('moved.moving', txt(SPF), {
        at: ['nsd'],
        ns: { old1: [NSD] },
        nsTtl: 86_400,
        delegationAt: { tldB: 'none' },
      }),
      zone('moved.moving', RIGHT, {
        at: ['knot'],
        ns: { new1: [KNOT] },
        nsTtl: 86_400,
        delegationAt: { tldA: 'none' },
      }),
    ],
    before: async (resolver) => {
      switchedRegistry.behavior = { upstream: TLD_A }
      await question(resolver, 'moved.moving', 'TXT', 3000)
      switchedRegistry.behavior = { upstream: TLD_B }
    },
    truth: {
      verdicts: ['wait', 'fix'],
      firstMentions: /old (name servers|NS|provider)|name servers of before|previous|former|still asks/i,
      seconds: [3600, 172_800],
    },
  },
  {
    id: 'c-split',
    what: 'split DNS: the resolver asks a server inside, which has no record',
    name: 'split.com',
    zones: [
      zone(
        'split.com',
        { knot: RIGHT, internal: '' },
        { mname: { internal: 'dc1' }, serials: { internal: 42 }, minimum: 900 },
      ),
    ],
    stubs: { 'split.com': INTERNAL },
    truth: {
      verdicts: ['ready_with_warning', 'fix', 'ready'],
      firstMentions:
        /split|inside|internal|another (zone|view)|own (zone|view|copy)|different (zone|answer)/i,
      never: /Wait \d+/,
    },
  },
  {
    id: 'c-splitold',
    what: 'split DNS: the server inside has an SPF record of its own',
    name: 'splitold.com',
    zones: [
      zone(
        'splitold.com',
        { knot: RIGHT, internal: txt('v=spf1 ip4:192.0.2.0/24 -all') },
        { mname: { internal: 'dc1' }, serials: { internal: 42 }, ttl: 900 },
      ),
    ],
    stubs: { 'splitold.com': INTERNAL },
    truth: {
      verdicts: ['ready_with_warning', 'fix', 'ready'],
      firstMentions:
        /split|inside|internal|another (zone|view)|own (zone|view|copy)|different (zone|answer)/i,
      never: /Wait \d+/,
    },
  },
  {
    id: 'c-splitsub',
    what: 'split DNS: below the apex, through a resolver that does not validate',
    name: 'app.splitsub.com',
    resolvers: ['unbound-plain'],
    zones: [
      zone(
        'splitsub.com',
        { knot: `app TXT "${EXPECTED}"`, internal: '' },
        { mname: { internal: 'dc1' }, serials: { internal: 42 } },
      ),
    ],
    stubs: { 'splitsub.com': INTERNAL },
    truth: {
      verdicts: ['ready_with_warning', 'fix', 'ready'],
      firstMentions:
        /split|inside|internal|another (zone|view)|own (zone|view|copy)|different (zone|answer)/i,
      never: /Wait \d+/,
    },
  },
]

function through(id: string, what: string, router: Relay, truth: Truth): Broken {
  return {
    id,
    what,
    name: `app.${id}.com`,
    zones: [zone(`${id}.com`, `app TXT "${EXPECTED}"`)],
    router,
    truth,
  }
}

const stripsTxt = relay({
  change: (answer) => without(answer, (record) => record.type === 'TXT' || record.type === 'SOA'),
})
const refusesNs = relay({
  own: (query) => (query.type === 'NS' ? rcode(query, 'REFUSED', { ra: true }) : undefined),
})
const noCheckingDisabled = relay({
  own: (query) => (query.packet.flag_cd ? rcode(query, 'FORMERR', { ra: true }) : undefined),
})

const intercepted = (id: string, more: Partial<Broken>): Broken => ({
  id,
  what: `all DNS of the network is answered by ${more.resolvers?.[0] ?? 'unbound'}`,
  name: `app.${id}.com`,
  zones: [zone(`${id}.com`, `app TXT "${EXPECTED}"`)],
  intercepted: true,
  truth: { verdicts: ['unknown'], codes: ['dns_intercepted'] },
  ...more,
})

/** Problems between the program and the servers. */
export const NETWORKS: readonly Broken[] = [
  ...RESOLVERS.map((kind) => intercepted(`i-${kind}`, { resolvers: [kind] })),
  intercepted('i-missing', {
    what: 'the same, and the record is missing',
    zones: [zone('i-missing.com', '')],
  }),
  intercepted('i-signed', {
    what: 'the same, and the zone is signed',
    zones: [zone('i-signed.com', `app TXT "${EXPECTED}"`, { signed: {} })],
  }),
  {
    id: 'i-firewall',
    what: 'a firewall lets DNS through to the resolver alone',
    name: 'a.b.gov.de',
    zones: [zone('gov.de', txt(SPF))],
    firewalled: true,
    truth: {
      verdicts: ['unknown'],
      codes: ['nameserver_unreachable', 'dns_blocked', 'resolver_broken'],
      unasked: ['a.b.gov.de', 'b.gov.de'],
    },
  },
  through('i-striptxt', 'a router that strips TXT', stripsTxt, {
    verdicts: ['ready_with_warning', 'fix'],
    codes: ['resolver_broken', 'txt_filtered', 'split_dns', 'other_view'],
    firstMentions: /strip|filter|leaves? out|without|empty|router|no SOA|does not pass/i,
    never: /Wait \d+|remembers/,
  }),
  through('i-refusesns', 'a resolver that refuses NS questions', refusesNs, {
    verdicts: ['ready', 'ready_with_warning'],
    codes: ['no finding', 'resolver_broken'],
  }),
  through('i-nocd', 'a resolver that knows no CD bit', noCheckingDisabled, {
    verdicts: ['ready', 'ready_with_warning'],
    codes: ['no finding', 'resolver_broken'],
  }),
]

const EXPIRED = /expired/i
const WRONG_DS = /DS[^\n]*(match|fit|belong|other key|another key|no key)|no key/i
const LEFT = /not signed|unsigned|no (DNSKEY|keys)|DS[^\n]*left/i

function dnssec(
  id: string,
  what: string,
  how: { signed?: Signing; strayDs?: true },
  firstMentions: RegExp,
  more: Partial<Broken> = {},
): Broken {
  const domain = `${id}.com`
  return {
    id,
    what,
    name: domain,
    zones: [zone(domain, RIGHT, how)],
    truth: {
      verdicts: ['fix'],
      codes: ['dnssec_bogus', 'dnssec_expired', 'dnssec_wrong_ds', 'dnssec_stale_ds', 'dnssec_ds_left'],
      firstMentions,
    },
    ...more,
  }
}

/** Signatures that validating resolvers reject. */
export const DNSSEC: readonly Broken[] = [
  dnssec('x-expired', 'signatures that have expired', { signed: { expired: true } }, EXPIRED),
  dnssec('x-expiredbind', 'the same through BIND', { signed: { expired: true } }, EXPIRED, {
    resolvers: ['bind'],
  }),
  dnssec('x-expiredkresd', 'the same through Knot Resolver', { signed: { expired: true } }, EXPIRED, {
    resolvers: ['knot-resolver'],
  }),
  dnssec('x-wrongds', 'a DS of another key', { signed: { ds: 'wrong' } }, WRONG_DS),
  dnssec('x-wrongdsbind', 'the same through BIND', { signed: { ds: 'wrong' } }, WRONG_DS, {
    resolvers: ['bind'],
  }),
  dnssec('x-dsleft', 'a DS left after a move to a provider that does not sign', { strayDs: true }, LEFT),
  dnssec('x-dsleftpdns', 'the same through PowerDNS', { strayDs: true }, LEFT, { resolvers: ['powerdns'] }),
  {
    id: 'x-dsleftmissing',
    what: 'a DS left, and the record is missing',
    name: 'dsleftmissing.com',
    zones: [zone('dsleftmissing.com', txt(SPF), { strayDs: true })],
    truth: {
      verdicts: ['fix'],
      codes: ['missing', 'dnssec_bogus', 'dnssec_ds_left', 'dnssec_stale_ds'],
      mentions: /DNSSEC|DS record/,
    },
  },
  {
    id: 'x-expiredmissing',
    what: 'expired signatures, and the record is missing',
    name: 'expiredmissing.com',
    zones: [zone('expiredmissing.com', txt(SPF), { signed: { expired: true } })],
    truth: {
      verdicts: ['fix'],
      codes: ['missing', 'dnssec_bogus', 'dnssec_expired'],
      mentions: /DNSSEC|expired/,
    },
  },
  {
    id: 'x-novalidation',
    what: 'a DS left, seen through a resolver that does not validate',
    name: 'novalidation.com',
    resolvers: ['unbound-plain'],
    zones: [zone('novalidation.com', RIGHT, { strayDs: true })],
    truth: { verdicts: ['fix', 'ready_with_warning'], mentions: /validat|DNSSEC/ },
  },
]
