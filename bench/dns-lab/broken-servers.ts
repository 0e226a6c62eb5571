import type { Answer } from 'dns-packet'
import { BIND, CLOSED, INTERNAL, KNOT, NSD } from './network.ts'
import { question } from './processes.ts'
import { type Behavior, type Query, rcode, relay } from './relay.ts'
import { EXPECTED, RIGHT, SPF, txt } from './setup.ts'
import type { Broken, Truth } from './truth.ts'
import { type Zone, zone } from './zone.ts'

function broken(id: string, what: string, domain: string, zones: readonly Zone[], truth: Truth): Broken {
  return { id, what, name: domain, zones, truth }
}

const WARNED = ['ready_with_warning']

/** Problems with the name servers in parents and zones. */
export const DELEGATIONS: readonly Broken[] = [
  broken(
    'd-noglue',
    'a name server in its own zone without glue',
    'noglue.com',
    [zone('noglue.com', RIGHT, { at: ['knot'], delegation: { ns1: [] } })],
    {
      verdicts: ['fix'],
      codes: ['no_nameservers'],
      firstMentions: /glue|address/i,
      misleads: /network of this machine/,
    },
  ),
  broken(
    'd-circle',
    'two domains whose name servers are in each other',
    'circlea.com',
    [
      zone('circlea.com', RIGHT, { at: ['knot'], ns: { 'ns.circleb.com.': [] } }),
      zone('circleb.com', `ns A ${KNOT}`, { at: ['knot'], ns: { 'ns.circlea.com.': [] } }),
    ],
    { verdicts: ['fix'], codes: ['no_nameservers'], misleads: /network of this machine/ },
  ),
  broken(
    'd-nohost',
    'name servers that do not exist',
    'nohost.com',
    [
      zone('nohost.com', RIGHT, {
        at: ['knot'],
        ns: { 'ns1.nosuchprovider.net.': [], 'ns2.nosuchprovider.net.': [] },
      }),
    ],
    { verdicts: ['fix'], codes: ['no_nameservers'] },
  ),
  broken(
    'd-ipasname',
    'a name server named by its IP address',
    'ipname.com',
    [zone('ipname.com', RIGHT, { at: ['knot'], ns: { '198.18.2.1.': [] } })],
    { verdicts: ['fix'], codes: ['no_nameservers'] },
  ),
  broken(
    'd-lame',
    'one of two servers does not have the zone',
    'lame1.com',
    [zone('lame1.com', RIGHT, { at: ['knot'], ns: { ns1: [KNOT], ns2: [NSD] } })],
    { verdicts: WARNED, codes: ['lame_nameserver'] },
  ),
  broken(
    'd-alllame',
    'no server has the zone',
    'lameall.com',
    [zone('lameall.com', RIGHT, { at: ['knot'], delegation: { ns1: [NSD], ns2: [BIND] } })],
    { verdicts: ['fix'], codes: ['lame_nameserver'] },
  ),
  broken(
    'd-mismatch',
    'parent and zone name different servers',
    'apart.com',
    [zone('apart.com', RIGHT, { ns: { ns1: [KNOT] }, delegation: { ns1: [KNOT], ns2: [NSD] } })],
    { verdicts: WARNED, codes: ['parent_child_mismatch'] },
  ),
  broken(
    'd-divided',
    'moved by half, the record at the new provider alone',
    'half.com',
    [
      zone(
        'half.com',
        { knot: RIGHT, nsd: txt(SPF) },
        { ns: { ns1: [KNOT] }, delegation: { ns1: [KNOT], ns2: [NSD] } },
      ),
    ],
    { verdicts: ['fix'], codes: ['parent_child_mismatch', 'partial_propagation'] },
  ),
  broken(
    'd-staleglue',
    'glue of a server that was replaced',
    'staleglue.com',
    [
      zone(
        'staleglue.com',
        { knot: RIGHT, bind: txt(SPF) },
        { ns: { ns1: [KNOT] }, delegation: { ns1: [BIND] } },
      ),
    ],
    { verdicts: ['fix', 'wait'], firstMentions: /glue/i },
  ),
  broken(
    'd-stalegluedead',
    'glue of a server that is gone',
    'deadglue.com',
    [
      zone('deadglue.com', RIGHT, {
        ns: { ns1: [KNOT], ns2: [NSD] },
        delegation: { ns1: [CLOSED], ns2: [NSD] },
      }),
    ],
    { verdicts: WARNED, codes: ['nameserver_unreachable'], firstMentions: /glue/i, misleads: /remove/ },
  ),
  broken(
    'd-stalegluelame',
    'glue of a server that no longer has the zone',
    'lameglue.com',
    [
      zone('lameglue.com', RIGHT, {
        at: ['knot', 'nsd'],
        ns: { ns1: [KNOT], ns2: [NSD] },
        delegation: { ns1: [BIND], ns2: [NSD] },
      }),
    ],
    { verdicts: WARNED, codes: ['lame_nameserver'], firstMentions: /glue/i, misleads: /remove/ },
  ),
  broken(
    'd-partial',
    'a copy without NOTIFY: the refresh of the SOA counts',
    'lag.com',
    [zone('lag.com', { knot: RIGHT, nsd: txt(SPF) }, { serials: { knot: 42, nsd: 41 }, refresh: 86_400 })],
    { verdicts: ['wait'], codes: ['partial_propagation'], seconds: [3600, 90_000] },
  ),
  broken(
    'd-partialaddress',
    'one of two addresses of one host has the record',
    'sameaddress.com',
    [
      zone(
        'sameaddress.com',
        { knot: RIGHT, nsd: txt(SPF) },
        { ns: { ns1: [KNOT, NSD] }, serials: { knot: 42, nsd: 41 } },
      ),
    ],
    { verdicts: ['wait'], codes: ['partial_propagation'], firstMentions: /198\.18\.3\.1/ },
  ),
  broken(
    'd-mixed',
    'two copies with one serial, one with quotation marks',
    'mixed.com',
    [zone('mixed.com', { knot: RIGHT, nsd: `@ TXT "\\034${EXPECTED}\\034"` })],
    { verdicts: ['fix'], firstMentions: /quot/i },
  ),
  broken(
    'd-mixedmissing',
    'two copies with one serial, one without',
    'notcopies.com',
    [zone('notcopies.com', { knot: RIGHT, nsd: txt(SPF) })],
    { verdicts: ['fix', 'wait'], codes: ['partial_propagation'] },
  ),
]

const isTxt = (query: Query) => query.type === 'TXT'

function faulty(id: string, what: string, behavior: Behavior, truth: Truth, records = RIGHT): Broken {
  const domain = `${id}.com`
  const address = relay({ upstream: NSD, ...behavior }).address
  return {
    id,
    what,
    name: domain,
    zones: [zone(domain, records, { at: ['nsd'], ns: { ns1: [address] } })],
    truth,
  }
}

function withoutAuthority(answer: Buffer): Buffer {
  const copy = Buffer.from(answer)
  copy.writeUInt16BE(copy.readUInt16BE(2) & ~0x0400, 2)
  return copy
}

const asksForSignatures = (record: Answer) => record.type === 'OPT' && record.flag_do

/**
 * The zone is gone from a BIND that offers recursion to everyone.
 *
 * @param records what it still has in its cache, from a server that nobody delegates to.
 */
function openBind(id: string, records: string): Broken {
  const domain = `${id}.com`
  const server = relay({})
  return {
    id,
    what: `a BIND with open recursion that lost the zone${records === '' ? '' : ', with the record in its cache'}`,
    name: domain,
    zones: [zone(domain, { internal: records }, { ns: { ns1: [server.address] } })],
    resolvers: ['bind'],
    before: async (resolver) => {
      server.behavior = { upstream: INTERNAL }
      if (records !== '') await question(resolver, domain, 'TXT', 3000)
      server.behavior = { upstream: resolver }
    },
    truth: { verdicts: ['fix'], codes: ['lame_nameserver'], misleads: /redirects DNS/ },
  }
}

const LARGE = Array.from({ length: 24 }, (_, index) => txt(`service-${index}=${'k3'.repeat(90)}`)).join('\n')
const SERVER_SIDE = { misleads: /load the zone/ }

/** Faulty servers. */
export const SERVERS: readonly Broken[] = [
  faulty(
    's-dropsedns',
    'drops questions with EDNS',
    { own: (query) => (query.edns && query.transport === 'udp' ? 'drop' : undefined) },
    { verdicts: ['ready_with_warning', 'fix'], firstMentions: /EDNS/ },
  ),
  faulty(
    's-dropsdo',
    'drops queries for signatures',
    { own: ({ packet: { additionals } }) => (additionals?.some(asksForSignatures) ? 'drop' : undefined) },
    { verdicts: ['fix', 'ready_with_warning'], codes: ['edns_dropped'], firstMentions: /signature|DO bit/ },
  ),
  faulty(
    's-failsedns',
    'answers questions with EDNS with SERVFAIL',
    { own: (query) => (query.edns ? rcode(query, 'SERVFAIL') : undefined) },
    { verdicts: ['fix'], codes: ['edns_rejected'], firstMentions: /EDNS/ },
  ),
  faulty(
    's-noaa',
    'answers without the AA bit',
    { change: withoutAuthority },
    { verdicts: ['fix', ...WARNED], codes: ['not_authoritative'], firstMentions: /AA/ },
  ),
  openBind('s-gone', ''),
  openBind('s-gonecached', RIGHT),
  faulty(
    's-tcponly',
    'answers over TCP alone',
    { own: (query) => (query.transport === 'udp' ? 'drop' : undefined) },
    { verdicts: ['ready_with_warning', 'fix'], firstMentions: /UDP/ },
  ),
  faulty(
    's-refusestxt',
    'refuses TXT and nothing else',
    { own: (query) => (isTxt(query) ? rcode(query, 'REFUSED') : undefined) },
    { verdicts: ['fix'], firstMentions: /TXT/, ...SERVER_SIDE },
  ),
  faulty(
    's-failstxt',
    'fails for TXT and nothing else',
    { own: (query) => (isTxt(query) ? rcode(query, 'SERVFAIL') : undefined) },
    { verdicts: ['fix'], firstMentions: /TXT/, ...SERVER_SIDE },
  ),
  faulty(
    's-notimptxt',
    'knows no TXT',
    { own: (query) => (isTxt(query) ? rcode(query, 'NOTIMP') : undefined) },
    { verdicts: ['fix'], firstMentions: /TXT/, ...SERVER_SIDE },
  ),
  faulty(
    's-dropstxt',
    'is silent for TXT and nothing else',
    { own: (query) => (isTxt(query) ? 'drop' : undefined) },
    { verdicts: ['fix', 'unknown'], firstMentions: /TXT/, misleads: /network of this machine/ },
  ),
  faulty(
    's-tcpclosed',
    'an answer that needs TCP, closed',
    { tcp: 'closed' },
    { verdicts: ['fix'], codes: ['tcp_blocked'] },
    `${RIGHT}\n${LARGE}`,
  ),
  faulty(
    's-tcphangs',
    'an answer that needs TCP, which hangs',
    { tcp: 'hangs' },
    { verdicts: ['fix', 'unknown'], codes: ['tcp_blocked'] },
    `${RIGHT}\n${LARGE}`,
  ),
  faulty(
    's-servfail',
    'fails for everything',
    { own: (query) => rcode(query, 'SERVFAIL') },
    { verdicts: ['fix'], codes: ['lame_nameserver'] },
  ),
  faulty(
    's-silent',
    'is silent',
    { own: () => 'drop' },
    { verdicts: ['unknown'], codes: ['nameserver_unreachable'] },
  ),
  broken(
    's-onesilent',
    'one of two servers is silent',
    'onesilent.com',
    [zone('onesilent.com', RIGHT, { at: ['knot'], ns: { ns1: [KNOT], ns2: [relay({}).address] } })],
    { verdicts: WARNED, codes: ['nameserver_unreachable'] },
  ),
  broken(
    's-onedead',
    'one of two servers is down',
    'onedead.com',
    [zone('onedead.com', RIGHT, { at: ['knot'], ns: { ns1: [KNOT], ns2: [CLOSED] } })],
    { verdicts: WARNED, codes: ['nameserver_unreachable'] },
  ),
  faulty(
    's-large',
    '70 TXT records',
    {},
    { verdicts: WARNED, codes: ['too_many_txt'] },
    `${RIGHT}\n${Array.from({ length: 70 }, (_, index) => txt(`proof-${index}=${'k3'.repeat(80)}`)).join('\n')}`,
  ),
]
