import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DnsExchange, type DnsNetwork, DnsTransportError } from '../../src/context.ts'
import type { FindingCode } from '../../src/dns/diagnosis/finding.ts'
import type { CheckReportJson, Verdict } from '../../src/dns/diagnosis/report.ts'
import { checkDns } from '../../src/dns/old-check.ts'
import { ask } from '../../src/dns/wire/exchange.ts'
import { needs } from '../requirements.ts'
import { realEffects } from './real-effects.ts'
import { type ServerNetwork, startServerNetwork } from './servers/server-network.ts'
import { HOSTS } from './servers/zone-file.ts'
import { EXPECTED, OTHER_TOKEN, ZONES } from './servers/zones.ts'

/** One setup of real servers, and the expected result of the check. */
interface Scenario {
  readonly title: string
  readonly name: string
  readonly verdict: Verdict
  readonly code: FindingCode
  readonly evidence: Record<string, unknown>
  readonly report?: Record<string, unknown>
}

const HEALTHY: readonly (readonly [title: string, name: string])[] = [
  ['one name server', 'one.test'],
  ['four name servers', 'four.test'],
  ['a name server with only IPv6', 'six.test'],
  ['two name server names at one address', 'twins.test'],
  ['a subdomain', 'app.sub.test'],
  ['a name below an alias', '_mc.www.aliasparent.test'],
  ['an SPF record at the same name', 'spf.test'],
  ['a zone signed with DNSSEC, validated', 'signed.test'],
  ['a value in two strings', 'strings.test'],
  ['a name below names that have no records', 'a.b.c.deep.test'],
  ['an alias to the value in another zone', 'app.alias.test'],
  ['a wildcard with the value', 'anything.wildmatch.test'],
  ['an internationalized name in Unicode', 'Bücher.test.'],
  ['a name below a DNAME', 'app.old.dname.test'],
  ['an older token at the same name', 'stalebeside.test'],
  ['a zone below another one', 'team.outer.test'],
  ['an answer that needs TCP', 'large.test'],
  ['a server that refuses EDNS', 'noedns.test'],
  ['a server behind forged and broken answers', 'noisy.test'],
]

const CAUSES: readonly Scenario[] = [
  {
    title: 'only an SPF record, which caches keep for its TTL',
    name: 'missing.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { host_field: '@', values: ['v=spf1 include:_spf.example.net ~all'], negative_ttl: 1800 },
    report: { zone: 'missing.test', retry_after_seconds: 1800 },
  },
  {
    title: 'a missing name deep in the zone',
    name: 'a.b.missing.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { outcomes: ['nxdomain'], host_field: 'a.b', zone: 'missing.test' },
  },
  {
    title: 'a negative answer cached for the SOA record’s own TTL',
    name: 'soattl.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { outcomes: ['absent'], negative_ttl: 45 },
    report: { retry_after_seconds: 45 },
  },
  {
    title: 'a negative answer cached for the SOA record’s last field',
    name: 'app.soamin.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { outcomes: ['nxdomain'], negative_ttl: 120 },
    report: { retry_after_seconds: 120 },
  },
  {
    title: 'an empty non-terminal',
    name: 'team.ent.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { outcomes: ['absent'] },
  },
  {
    title: 'a doubled domain at the apex',
    name: 'doubled.test',
    verdict: 'fix',
    code: 'doubled_name',
    evidence: { found_at: 'doubled.test.doubled.test', host_field: '@' },
  },
  {
    title: 'a doubled domain below the apex',
    name: 'app.doubledsub.test',
    verdict: 'fix',
    code: 'doubled_name',
    evidence: { found_at: 'app.doubledsub.test.doubledsub.test', host_field: 'app' },
  },
  {
    title: 'a domain doubled twice',
    name: 'doubledtwice.test',
    verdict: 'fix',
    code: 'doubled_name',
    evidence: { found_at: 'doubledtwice.test.doubledtwice.test.doubledtwice.test', host_field: '@' },
  },
  {
    title: 'the first label of the domain as the host',
    name: 'firstlabel.test',
    verdict: 'fix',
    code: 'doubled_name',
    evidence: { found_at: 'firstlabel.firstlabel.test', host_field: '@' },
  },
  {
    title: 'a host entered twice',
    name: 'shop.again.test',
    verdict: 'fix',
    code: 'doubled_name',
    evidence: { found_at: 'shop.shop.again.test', host_field: 'shop' },
  },
  {
    title: '"@" stored as a name',
    name: 'literalat.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '@.literalat.test', host_field: '@' },
  },
  {
    title: '"@" stored as a name, with its quotation marks',
    name: 'quotedat.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '"@".quotedat.test', host_field: '@' },
  },
  {
    title: '"@" stored as a name, for a name below the zone',
    name: 'app.atbelow.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '@.atbelow.test', host_field: 'app' },
  },
  {
    title: 'the record where DKIM keys are',
    name: 'domainkey.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '_domainkey.domainkey.test' },
  },
  {
    title: 'the value in a CNAME record instead of a TXT record',
    name: 'app.instead.test',
    verdict: 'fix',
    code: 'cname_instead_of_txt',
    evidence: {
      found_at: 'app.instead.test',
      target: `${EXPECTED.toLowerCase()}.instead.test`,
      host_field: 'app',
    },
  },
  {
    title: 'the value in a CNAME record at a doubled name',
    name: 'insteadat.test',
    verdict: 'fix',
    code: 'cname_instead_of_txt',
    evidence: { found_at: 'insteadat.test.insteadat.test', target: EXPECTED.toLowerCase(), host_field: '@' },
  },
  {
    title: 'an en dash instead of the hyphen',
    name: 'endash.test',
    verdict: 'fix',
    code: 'characters_changed',
    evidence: {
      characters: [
        {
          position: 3,
          expected: '-',
          seen: '–',
          expected_code_points: ['U+002D'],
          seen_code_points: ['U+2013'],
        },
      ],
    },
  },
  {
    title: 'a Cyrillic letter that looks the same, next to SPF',
    name: 'cyrillic.test',
    verdict: 'fix',
    code: 'characters_changed',
    evidence: { characters: [{ expected: 'B', seen: 'В', seen_code_points: ['U+0412'] }] },
  },
  {
    title: 'a value encoded for a URL',
    name: 'percent.test',
    verdict: 'fix',
    code: 'encoded',
    evidence: { encoding: 'URL encoding (%3D for "=")' },
  },
  {
    title: 'token and prefix swapped',
    name: 'swapped.test',
    verdict: 'fix',
    code: 'swapped',
    evidence: { seen: `${EXPECTED.slice(10)}=mc-verify` },
  },
  {
    title: 'a placeholder',
    name: 'placeholder.test',
    verdict: 'fix',
    code: 'placeholder',
    evidence: { seen: 'mc-verify=YOUR_TOKEN' },
  },
  {
    title: 'the value as the host of a TXT record',
    name: 'valuehost.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: `${EXPECTED.toLowerCase()}.valuehost.test`, host_field: '@' },
  },
  {
    title: 'the value as the host of a CNAME record',
    name: 'valuealias.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: `${EXPECTED.toLowerCase()}.valuealias.test` },
  },
  {
    title: 'the token as the host and the prefix as the value',
    name: 'tokenhost.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: `${EXPECTED.slice(10).toLowerCase()}.tokenhost.test` },
  },
  {
    title: 'the record at www',
    name: 'atwww.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: 'www.atwww.test' },
  },
  {
    title: 'the record at the parent',
    name: 'app.toparent.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: 'toparent.test', host_field: 'app' },
  },
  {
    title: 'the record at an underscore label',
    name: 'underscore.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '_mc-verify.underscore.test' },
  },
  {
    title: 'the record at the wildcard, which does not cover the apex',
    name: 'wildmatch.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '*.wildmatch.test', expected_at: 'wildmatch.test' },
  },
  {
    title: 'the record at the wildcard of the zone, which does not cover a name that exists further down',
    name: 'a.b.wildhigh.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '*.wildhigh.test', host_field: 'a.b' },
  },
  {
    title: 'the record at a wildcard below the name',
    name: 'app.wildbelow.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: '*.app.wildbelow.test', host_field: 'app' },
  },
  {
    title: 'a wildcard TXT record',
    name: 'app.wild.test',
    verdict: 'fix',
    code: 'wildcard_answer',
    evidence: { values: ['v=spf1 -all'] },
  },
  {
    title: 'a wildcard alias',
    name: 'app.wildalias.test',
    verdict: 'fix',
    code: 'wildcard_answer',
    evidence: { wildcard_alias: 'web.wildalias.test' },
  },
  {
    title: 'a wildcard several labels above',
    name: 'a.b.wild.test',
    verdict: 'fix',
    code: 'wildcard_answer',
    evidence: { values: ['v=spf1 -all'] },
  },
  {
    title: 'a record at the apex with the same value as the wildcard',
    name: 'wildtwin.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { values: ['v=spf1 -all'] },
  },
  {
    title: 'a record at the name itself with the same value as the wildcard',
    name: 'app.wildtwin.test',
    verdict: 'fix',
    code: 'missing',
    evidence: { values: ['v=spf1 -all'] },
  },
  {
    title: 'an alias at the name itself with the same target as the wildcard',
    name: 'app.wildtwinalias.test',
    verdict: 'fix',
    code: 'cname_at_name',
    evidence: { chain: ['web.wildtwinalias.test'] },
  },
  {
    title: 'an alias at the name',
    name: 'app.cname.test',
    verdict: 'fix',
    code: 'cname_at_name',
    evidence: { chain: ['web.cname.test'], end: 'absent' },
  },
  {
    title: 'an alias for a name that does not exist',
    name: 'app.dangling.test',
    verdict: 'fix',
    code: 'cname_dangling',
    evidence: { chain: ['gone.dangling.test'], end: 'nxdomain' },
  },
  {
    title: 'an alias for a name in another zone that does not exist',
    name: 'app.cnameout.test',
    verdict: 'fix',
    code: 'cname_dangling',
    evidence: { chain: ['www.target.test'] },
  },
  {
    title: 'an alias into a domain that does not exist',
    name: 'app.danglingout.test',
    verdict: 'fix',
    code: 'cname_dangling',
    evidence: { chain: ['nobody.nosuchdomain.test'] },
  },
  {
    title: 'an alias from a zone into its parent, on the same server',
    name: 'app.child.family.test',
    verdict: 'fix',
    code: 'cname_dangling',
    evidence: { chain: ['gone.family.test'] },
    report: { zone: 'child.family.test' },
  },
  {
    title: 'aliases in a circle',
    name: 'app.loop.test',
    verdict: 'fix',
    code: 'cname_loop',
    evidence: { chain: ['two.loop.test', 'three.loop.test', 'app.loop.test'] },
  },
  {
    title: 'quotation marks in the value',
    name: 'quoted.test',
    verdict: 'fix',
    code: 'quoted',
    evidence: { seen: `"${EXPECTED}"` },
  },
  {
    title: 'a space at the end',
    name: 'blank.test',
    verdict: 'fix',
    code: 'whitespace',
    evidence: { invisible: [{ name: 'space', hex: '20', position: EXPECTED.length + 1 }] },
  },
  {
    title: 'a no-break space at the end',
    name: 'nbsp.test',
    verdict: 'fix',
    code: 'whitespace',
    evidence: { invisible: [{ name: 'no-break space', hex: 'c2a0', position: EXPECTED.length + 1 }] },
  },
  {
    title: 'a zero-width space inside',
    name: 'zerowidth.test',
    verdict: 'fix',
    code: 'whitespace',
    evidence: { invisible: [{ name: 'zero-width space', hex: 'e2808b', position: 11 }] },
  },
  {
    title: 'a value split into two records',
    name: 'splitrecords.test',
    verdict: 'fix',
    code: 'split_records',
    evidence: { seen: [EXPECTED.slice(0, 14), EXPECTED.slice(14)] },
  },
  {
    title: 'a value copied from a shortened display',
    name: 'ellipsis.test',
    verdict: 'fix',
    code: 'truncated',
    evidence: { seen: `${EXPECTED.slice(0, 16)}...${EXPECTED.slice(-4)}` },
  },
  {
    title: 'a truncated value',
    name: 'truncated.test',
    verdict: 'fix',
    code: 'truncated',
    evidence: { difference: { at: 21, expected: EXPECTED.slice(20), seen: '' } },
  },
  {
    title: 'a value in lowercase',
    name: 'case.test',
    verdict: 'fix',
    code: 'case_changed',
    evidence: { seen: EXPECTED.toLowerCase() },
  },
  {
    title: 'an older token next to SPF',
    name: 'stale.test',
    verdict: 'fix',
    code: 'stale_token',
    evidence: { seen: OTHER_TOKEN, old_state_ttl: 600 },
    report: { retry_after_seconds: 600 },
  },
  {
    title: 'only the token',
    name: 'tokenonly.test',
    verdict: 'fix',
    code: 'token_only',
    evidence: { seen: EXPECTED.slice(10) },
  },
  {
    title: 'only the prefix',
    name: 'prefixonly.test',
    verdict: 'fix',
    code: 'prefix_only',
    evidence: { seen: 'mc-verify=' },
  },
  {
    title: 'a whole zone line pasted',
    name: 'pasted.test',
    verdict: 'fix',
    code: 'pasted_line',
    evidence: { seen: `pasted.test. 300 IN TXT "${EXPECTED}"` },
  },
  {
    title: 'TXT= pasted with the value',
    name: 'txtequals.test',
    verdict: 'fix',
    code: 'pasted_line',
    evidence: { seen: `TXT=${EXPECTED}` },
  },
  {
    title: 'the value after SPF in one record',
    name: 'extra.test',
    verdict: 'fix',
    code: 'extra_text',
    evidence: { seen: `v=spf1 -all ${EXPECTED}` },
  },
  {
    title: 'a record in the parent zone that the delegation hides',
    name: 'x.team.outer.test',
    verdict: 'fix',
    code: 'other_name',
    evidence: { found_at: 'team.outer.test' },
    report: { zone: 'team.outer.test' },
  },
  {
    title: 'a domain that is not registered',
    name: 'app.nobody.test',
    verdict: 'fix',
    code: 'domain_not_found',
    evidence: { domain: 'nobody.test', said_by: 'test' },
    report: { zone: null, nameservers: [] },
  },
]

const SERVERS: readonly Scenario[] = [
  {
    title: 'one of two servers has the record',
    name: 'partial.test',
    verdict: 'wait',
    code: 'partial_propagation',
    evidence: {
      with: [{ host: 'ns-a.partial.test', serial: 42 }],
      without: [{ host: 'ns-b.partial.test', serial: 41, outcome: 'mismatch' }],
    },
    report: { retry_after_seconds: 7200, resolvers: [] },
  },
  {
    title: 'one of two servers has the name',
    name: 'app.partialnx.test',
    verdict: 'wait',
    code: 'partial_propagation',
    evidence: { without: [{ host: 'ns-b.partialnx.test', serial: 6, outcome: 'nxdomain' }] },
    report: { retry_after_seconds: 7200 },
  },
  {
    title: 'a server that drops queries with EDNS',
    name: 'dropsedns.test',
    // The resolver gets no answer either.
    verdict: 'fix',
    code: 'edns_dropped',
    evidence: { servers: [{ host: 'ns-dropsedns.dropsedns.test', outcome: 'match' }] },
  },
  ...(['failsedns', 'refusededns', 'badversedns'] as const).map((id) => ({
    title: `a server that answers queries with EDNS with an error (${id})`,
    name: `${id}.test`,
    // The resolver gets no answer, or one without records.
    verdict: 'fix' as const,
    code: 'edns_rejected' as const,
    evidence: {
      rcodes: { failsedns: 'SERVFAIL', refusededns: 'REFUSED', badversedns: 'BADVERS' }[id],
      servers: [{ outcome: 'match' }],
    },
  })),
  {
    title: 'a server whose answers lack the AA bit',
    name: 'noaa.test',
    // Unbound takes them.
    verdict: 'ready_with_warning',
    code: 'not_authoritative',
    evidence: { servers: [{ authoritative: false }] },
    report: { resolvers: [{ outcome: 'match' }] },
  },
  {
    title: 'an NS record without the dot at the end, next to a delegation that is right',
    name: 'nodot.test',
    verdict: 'ready_with_warning',
    code: 'nameserver_unreachable',
    evidence: { servers: [{ host: 'ns1.example.net.nodot.test', address: null }] },
  },
  {
    title: 'a server that refuses only TXT queries',
    name: 'refusestxt.test',
    verdict: 'fix',
    code: 'txt_refused',
    evidence: { servers: [{ outcome: 'refused' }] },
  },
  {
    title: 'a resolver listed as a name server',
    name: 'recursor.test',
    verdict: 'fix',
    code: 'lame_nameserver',
    evidence: { servers: [{ outcome: 'refused' }] },
  },
  {
    title: 'a name server in its own zone without glue',
    name: 'noglue.test',
    verdict: 'fix',
    code: 'no_nameservers',
    evidence: { hosts: ['ns-a.noglue.test'], glue_missing: true },
  },
  {
    title: 'two servers that are not copies of each other',
    name: 'sameserial.test',
    verdict: 'wait',
    code: 'partial_propagation',
    evidence: { with: [{ serial: 1 }], without: [{ serial: 1 }] },
  },
  {
    title: 'two providers that each list only themselves, one with the record',
    name: 'moved.test',
    verdict: 'fix',
    code: 'partial_propagation',
    evidence: {
      with: [{ host: 'ns-a.moved.test' }],
      without: [{ host: 'ns-b.moved.test' }],
      apart: { with: ['ns-a.moved.test'], without: ['ns-b.moved.test'] },
    },
  },
  {
    title: 'a lame server next to a good one',
    name: 'lame.test',
    verdict: 'ready_with_warning',
    code: 'lame_nameserver',
    evidence: { servers: [{ host: 'ns-b.lame.test', outcome: 'refused', rcode: 'REFUSED' }] },
  },
  {
    title: 'lame servers only',
    name: 'alllame.test',
    verdict: 'fix',
    code: 'lame_nameserver',
    evidence: { servers: [{ outcome: 'refused' }, { outcome: 'refused' }] },
  },
  {
    title: 'a dead server next to two good ones',
    name: 'dead.test',
    verdict: 'ready_with_warning',
    code: 'nameserver_unreachable',
    evidence: { servers: [{ address: HOSTS.dead, outcome: 'unreachable' }] },
  },
  {
    title: 'different servers in parent and child, all with the record',
    name: 'mismatch.test',
    verdict: 'ready_with_warning',
    code: 'parent_child_mismatch',
    evidence: { only_parent: ['ns-b.mismatch.test'], only_child: [] },
  },
  {
    title: 'different servers in parent and child, one side with the record',
    name: 'divided.test',
    verdict: 'fix',
    code: 'parent_child_mismatch',
    evidence: { parent: ['ns-a.divided.test', 'ns-b.divided.test'], child: ['ns-a.divided.test'] },
  },
  ...(['a', 'b'] as const).map((holder) => ({
    title: `a zone only at server ${holder} that nothing delegates`,
    name: `mail.panel${holder}.test`,
    verdict: 'fix' as const,
    code: 'zone_not_delegated' as const,
    evidence: {
      with: [{ address: HOSTS[holder] }],
      without: [{ address: HOSTS[holder === 'a' ? 'b' : 'a'] }],
    },
  })),
  {
    title: 'name servers without an address',
    name: 'nons.test',
    verdict: 'fix',
    code: 'no_nameservers',
    evidence: { hosts: ['ns1.nosuchhost.test', 'ns2.nosuchhost.test'] },
  },
  {
    title: 'an answer that needs TCP, which is closed to everyone',
    name: 'tcpclosed.test',
    verdict: 'fix',
    code: 'tcp_blocked',
    evidence: { servers: [{ tcp: 'refused' }], certain: true },
  },
  {
    title: 'an answer that needs TCP, which is closed only from here',
    name: 'tcpclosedhere.test',
    verdict: 'ready_with_warning',
    code: 'tcp_blocked',
    evidence: { certain: false },
    report: { resolvers: [{ outcome: 'match' }] },
  },
  {
    title: 'an open resolver listed as a name server, which has the record and the zone',
    name: 'openresolver.test',
    verdict: 'ready_with_warning',
    code: 'not_authoritative',
    evidence: { servers: [{ authoritative: false, outcome: 'lame' }] },
  },
  {
    title: 'a BIND with open recursion from which the zone is gone',
    name: 'gone.test',
    verdict: 'fix',
    code: 'lame_nameserver',
    evidence: { servers: [{ authoritative: false }] },
  },
  {
    title: 'a server that drops queries for signatures',
    name: 'dropsdo.test',
    // The resolver validates, so it gets no answer either.
    verdict: 'fix',
    code: 'edns_dropped',
    evidence: { dropped: 'do', servers: [{ host: 'ns-dropsdo.dropsdo.test', outcome: 'match' }] },
  },
  {
    title: 'a CNAME next to the record in the same answer',
    name: 'app.addscname.test',
    verdict: 'fix',
    code: 'cname_at_name',
    evidence: { target: 'web.addscname.test' },
  },
  {
    title: 'a TXT set of 12 kB',
    name: 'many.test',
    verdict: 'ready_with_warning',
    code: 'too_many_txt',
    evidence: { records: 61 },
  },
]

describe.runIf(needs('knotd', 'nsd', 'unbound', 'named'))('against Knot, NSD, Unbound and BIND', () => {
  let network: ServerNetwork
  beforeAll(async () => {
    network = await startServerNetwork(ZONES)
  })
  afterAll(async () => {
    await network?.stop()
  })

  describe('a healthy setup is ready, with no finding above info:', () => {
    test.each(HEALTHY)('%s', async (_title, name) => {
      const report = await network.check(name, EXPECTED)
      expect(report.findings.filter((finding) => finding.severity !== 'info')).toEqual([])
      expect(report).toMatchObject({ verdict: 'ready', ready: true, retry_after_seconds: null })
      expect(report.resolvers).toMatchObject([{ outcome: 'match' }])
    })

    test('a record next to a wildcard with the same value', async () => {
      expect(await network.check('app.wildtwinmatch.test', EXPECTED)).toMatchObject({ findings: [] })
      const [remark] = (await network.check('anything.wildmatch.test', EXPECTED)).findings
      expect(remark).toMatchObject({ code: 'wildcard_answer', severity: 'info' })
    })

    test('seen through BIND', async () => {
      const report = await network.check('four.test', EXPECTED, { resolvers: [network.bind] })
      expect(report).toMatchObject({ verdict: 'ready', findings: [] })
      expect(report.nameservers).toHaveLength(4)
    })

    test('private DNS whose registry cannot be reached', async () => {
      for (const name of ['one.test', 'app.sub.test']) {
        const report = await network.check(name, EXPECTED, { resolvers: [network.lonely] })
        expect(report).toMatchObject({ verdict: 'ready', findings: [] })
      }
    })

    test('with an authoritative server as the resolver', async () => {
      const report = await network.check('app.sub.test', EXPECTED, {
        resolvers: [{ address: HOSTS.a, port: network.port }],
      })
      expect(report).toMatchObject({ verdict: 'ready', zone: 'sub.test', findings: [] })
      expect(report.nameservers.map((server) => server.host)).toEqual(['ns-a.sub.test', 'ns-b.sub.test'])
    })

    test('with one of two resolvers dead, which is a warning', async () => {
      const report = await network.check('one.test', EXPECTED, {
        resolvers: [{ address: HOSTS.dead, port: network.port }, network.unbound],
      })
      expect(report.verdict).toBe('ready_with_warning')
      expect(report.findings).toMatchObject([{ code: 'resolver_broken', severity: 'warning' }])
    })
  })

  describe('without an expected value, the check shows', () => {
    test.each(HEALTHY)('no finding above info for %s', async (_title, name) => {
      const report = await network.check(name, null)
      expect(report.findings.filter((finding) => finding.severity !== 'info')).toEqual([])
      expect(report).toMatchObject({ expected: null, verdict: 'unknown', ready: false, resolvers: [] })
      expect(report.nameservers.flatMap(({ values }) => values)).toContain(EXPECTED)
    })

    test('what is at the name, and who hosts the zone', async () => {
      const report = await network.check('missing.test', null)
      expect(report).toMatchObject({ zone: 'missing.test', retry_after_seconds: null })
      expect(report.nameservers).toMatchObject([
        { host: 'ns-a.missing.test', values: ['v=spf1 include:_spf.example.net ~all'], ttl: 1800 },
        { host: 'ns-b.missing.test', values: ['v=spf1 include:_spf.example.net ~all'], ttl: 1800 },
      ])
      expect(report.findings).toMatchObject([
        {
          code: 'wrong_provider_hint',
          evidence: { nameservers: ['ns-a.missing.test', 'ns-b.missing.test'] },
        },
      ])
    })

    test('where an alias leads, and what is there', async () => {
      const { findings } = await network.check('app.alias.test', null)
      expect(findings.map(({ code }) => code)).toEqual(['cname_at_name', 'wrong_provider_hint'])
      expect(findings[0]?.message).toBe(
        `app.alias.test is an alias (CNAME) for proof.target.test, so there can't be a TXT record next to it; found at the target: "${EXPECTED}"`,
      )
      expect(findings[0]?.evidence).toMatchObject({ values: [EXPECTED] })
    })

    test('that the domain does not exist', async () => {
      const { verdict, findings } = await network.check('nowhere.test', null)
      expect({ verdict, code: findings[0]?.code }).toEqual({ verdict: 'fix', code: 'domain_not_found' })
    })
  })

  describe('the check finds the cause:', () => {
    test.each(CAUSES)('$title: $code', async (scenario) => {
      expectScenario(await network.check(scenario.name, EXPECTED), scenario)
    })

    test.each(['app.dangling.test', 'app.danglingout.test', 'app.loop.test', 'app.cname.test'])(
      'the alias %s, also with an authoritative server as the resolver',
      async (name) => {
        const resolvers = [{ address: HOSTS.a, port: network.port }]
        const report = await network.check(name, EXPECTED, { resolvers })
        expect(report.zone).toBe(name.slice(4))
        expect(report.findings[0]?.code).toMatch(/^cname_/)
        expect(report.nameservers).toHaveLength(2)
      },
    )

    test.each([
      ['app.old.dnamegone.test', 'cname_dangling'],
      ['app.old.dnameloop.test', 'cname_loop'],
    ])('the DNAME above %s, not a CNAME', async (name, code) => {
      const [finding] = (await network.check(name, EXPECTED)).findings
      expect(finding).toMatchObject({ code, evidence: { dname: name.slice(4) } })
      expect(finding?.message).toContain(`alias (through the DNAME at ${name.slice(4)})`)
      expect(finding?.fix).toMatch(`Remove the DNAME at ${name.slice(4)}`)
    })

    test.each(['dnameself.test', 'dnameselfbind.test'])(
      'a DNAME in %s that points below itself',
      async (zone) => {
        const { report, ms } = await timed(() => network.check(`app.shop.${zone}`, EXPECTED))
        expect(ms).toBeLessThan(5000)
        expect(report.verdict).toBe('fix')
        expect(report.findings).toMatchObject([{ code: 'cname_loop', evidence: { dname: `shop.${zone}` } }])
        expect(report.findings[0]?.message).toContain(`leads back below shop.${zone}`)
      },
    )

    test.each(['dnamelong.test', 'dnamelongbind.test'])(
      'a DNAME in %s that makes a name longer than DNS allows',
      async (zone) => {
        const report = await network.check(`${'y'.repeat(63)}.far.${zone}`, EXPECTED)
        expect(report.verdict).toBe('fix')
        expect(report.findings).toMatchObject([
          { code: 'cname_dangling', evidence: { dname: `far.${zone}` } },
        ])
        expect(report.findings[0]?.message).toContain("which can't exist: DNS allows 253")
      },
    )

    test('the domain twice in the name to check, without advice to remove the right record', async () => {
      const [finding] = (await network.check('one.test.one.test', EXPECTED)).findings
      expect(finding).toMatchObject({ code: 'other_name', evidence: { found_at: 'one.test' } })
      expect(finding?.fix).toMatch(/^Check one\.test instead/)
      expect(finding?.fix).not.toMatch(/remove/i)
    })

    test('bytes that are not text, shown as Latin-1', async () => {
      const report = await network.check('binary.test', EXPECTED)
      expect(report.nameservers[0]?.values).toEqual(['\xff\xfe\0\x1b[31m'])
    })

    test('a missing record, with the provider that hosts the zone', async () => {
      const report = await network.check('cloud.test', EXPECTED)
      expect(report.findings.map((finding) => finding.code)).toEqual([
        'missing',
        'lame_nameserver',
        'wrong_provider_hint',
      ])
      expect(report.findings[2]?.evidence).toMatchObject({ providers: ['Cloudflare'] })
    })
  })

  describe('the check finds server problems:', () => {
    test.each(SERVERS)('$title: $code', async (scenario) => {
      expectScenario(await network.check(scenario.name, EXPECTED), scenario)
    })
  })

  describe('a firewall on this network that drops', () => {
    const isUdp = ({ message }: DnsExchange) => message.length > 0
    const hasEdns = ({ message }: DnsExchange) => Buffer.from(message).readUInt16BE(10) > 0

    test.each([
      ['UDP', 'udp', isUdp],
      ['EDNS', 'edns', hasEdns],
    ] as const)('%s does not make the domain’s servers look broken', async (_title, filtered, isDropped) => {
      const effects = realEffects()
      const udp: DnsNetwork['udp'] = async (exchange) => {
        if (exchange.server.address === network.unbound.address || !isDropped(exchange))
          return await effects.dns.udp(exchange)
        await effects.clock.sleep(exchange.timeoutMs, exchange.signal).catch(() => undefined)
        throw new DnsTransportError('timeout', 'dropped')
      }
      const report = await network.check(
        'one.test',
        EXPECTED,
        {},
        { ...effects, dns: { ...effects.dns, udp } },
      )
      expect(report).toMatchObject({
        verdict: 'ready',
        findings: [{ code: 'queries_filtered', severity: 'info', evidence: { filtered: [filtered] } }],
      })
    })
  })

  describe('the check waits for silent and slow servers, but not too long:', () => {
    test.concurrent('one silent server among three', async () => {
      const { report, ms } = await timed(() => network.check('silentone.test', EXPECTED))
      expectScenario(report, {
        name: 'silentone.test',
        verdict: 'ready_with_warning',
        code: 'nameserver_unreachable',
        evidence: { servers: [{ address: HOSTS.silent, outcome: 'timeout' }] },
      })
      expect(report.resolvers).toMatchObject([{ outcome: 'match' }])
      expect(ms).toBeLessThan(5500)
    })

    test.concurrent('one silent server among three without the record', async () => {
      expectScenario(await network.check('silentmissing.test', EXPECTED), {
        name: 'silentmissing.test',
        verdict: 'fix',
        code: 'missing',
        evidence: {},
        report: { resolvers: [] },
      })
    })

    test.concurrent('only silent servers, which is never "missing"', async () => {
      const { report, ms } = await timed(() => network.check('allsilent.test', EXPECTED))
      expectScenario(report, {
        name: 'allsilent.test',
        verdict: 'unknown',
        code: 'nameserver_unreachable',
        evidence: { servers: [{ outcome: 'timeout' }, { outcome: 'timeout' }] },
      })
      expect(ms).toBeLessThan(10_000)
    })

    test.concurrent('a silent resolver, which is never "missing"', async () => {
      const { report, ms } = await timed(() =>
        network.check('a.b.c.deep.test', EXPECTED, {
          resolvers: [{ address: HOSTS.silent, port: network.port }],
        }),
      )
      expect(report).toMatchObject({ verdict: 'unknown', findings: [{ code: 'resolver_broken' }] })
      expect(ms).toBeLessThan(10_000)
    })

    test.concurrent('one slow server after three fast ones', async () => {
      const report = await network.check('slow.test', EXPECTED)
      expect(report).toMatchObject({ verdict: 'ready', findings: [] })
      expect(report.nameservers.find((server) => server.address === HOSTS.slow)?.ms).toBeGreaterThan(2900)
    })
  })

  describe('the check finds resolver problems:', () => {
    test('a CNAME next to the record that only other queries show, once it is cached', async () => {
      const effects = realEffects()
      const name = 'app.hascname.test'
      const deadline = effects.clock.monotonic() + 5000
      await ask(network.unbound, { name, type: 'A' }, { recursionDesired: true, deadline }, effects)
      expectScenario(await network.check(name, EXPECTED), {
        name,
        verdict: 'fix',
        code: 'cname_at_name',
        evidence: { target: 'web.hascname.test', servers: ['ns-hasCname.hascname.test'.toLowerCase()] },
      })
    })

    test('an absence cached by Unbound, with the seconds left', async () => {
      await network.check('one.test', EXPECTED)
      await primeResolver(network, 'cachedabsence.test', 'unbound')
      await network.change('cachedabsence.test', [
        'zone-set',
        'cachedabsence.test',
        '@',
        '300',
        'TXT',
        `"${EXPECTED}"`,
      ])
      const report = await network.check('cachedabsence.test', EXPECTED)
      expectScenario(report, {
        name: 'cachedabsence.test',
        verdict: 'wait',
        code: 'cached_absence',
        evidence: { outcome: 'absent' },
      })
      const left = report.findings[0]?.evidence['seconds_left']
      expect(left).toBeGreaterThan(60)
      expect(left).toBeLessThanOrEqual(77)
      expect(report.retry_after_seconds).toBe(left)
    })

    test('an absence cached by BIND for the SOA record’s own TTL', async () => {
      await primeResolver(network, 'cachedbind.test', 'bind')
      await network.change('cachedbind.test', [
        'zone-set',
        'cachedbind.test',
        '@',
        '300',
        'TXT',
        `"${EXPECTED}"`,
      ])
      const report = await network.check('cachedbind.test', EXPECTED, { resolvers: [network.bind] })
      expect(report).toMatchObject({ verdict: 'wait', findings: [{ code: 'cached_absence' }] })
      const left = report.retry_after_seconds
      expect(left).toBeGreaterThan(70)
      expect(left).toBeLessThanOrEqual(88)
    })

    test('an older TXT set cached at an apex with SPF', async () => {
      await primeResolver(network, 'cachedapex.test', 'unbound')
      await network.change(
        'cachedapex.test',
        ['zone-unset', 'cachedapex.test', '@', 'TXT', `"${OTHER_TOKEN}"`],
        ['zone-set', 'cachedapex.test', '@', '222', 'TXT', `"${EXPECTED}"`],
      )
      const report = await network.check('cachedapex.test', EXPECTED)
      expectScenario(report, {
        name: 'cachedapex.test',
        verdict: 'wait',
        code: 'cached_old_value',
        evidence: { values: expect.arrayContaining([OTHER_TOKEN]) },
      })
      expect(report.retry_after_seconds).toBeGreaterThan(200)
      expect(report.retry_after_seconds).toBeLessThanOrEqual(222)
    })

    test('invalid signatures', async () => {
      expectScenario(await network.check('bogus.test', EXPECTED), {
        name: 'bogus.test',
        verdict: 'fix',
        code: 'dnssec_bogus',
        evidence: {
          reason: 'rejected',
          resolvers: [{ with_checking: 'SERVFAIL', with_checking_disabled: 'match' }],
        },
      })
    })

    test('a DS record left behind by a move, with a resolver that does not validate', async () => {
      expectScenario(await network.check('dsleft.test', EXPECTED), {
        name: 'dsleft.test',
        verdict: 'fix',
        code: 'dnssec_bogus',
        evidence: { reason: 'ds_without_key', key_tags: [12345] },
      })
    })

    test('a DS record left behind by a move, and a missing record', async () => {
      const report = await network.check('dsleftmissing.test', EXPECTED)
      expect(report.findings.map((finding) => finding.code)).toEqual([
        'missing',
        'dnssec_bogus',
        'wrong_provider_hint',
      ])
    })

    test('a DS record for another key, as a warning if a resolver validates the zone', async () => {
      expectScenario(await network.check('wrongds.test', EXPECTED), {
        name: 'wrongds.test',
        verdict: 'ready_with_warning',
        code: 'dnssec_bogus',
        evidence: { reason: 'wrong_ds' },
      })
    })

    test.each([
      [
        'has others for the name servers inside',
        'insidens.test',
        ['ns-a.insidens.test', 'ns-d.insidens.test'],
        false,
      ],
      ['blocks the name servers', 'blockedns.test', ['ns-a.blockedns.test', 'ns-b.blockedns.test'], true],
    ] as const)('a resolver that %s, which changes nothing', async (_what, name, hosts, filtered) => {
      const report = await network.check(name, EXPECTED)
      expectScenario(report, { name, verdict: 'ready', code: 'split_dns', evidence: { filtered } })
      expect(report.nameservers).toMatchObject(hosts.map((host) => ({ host, outcome: 'match' })))
    })

    test('a resolver configured to use an internal server, which is not worth waiting for', async () => {
      const report = await network.check('split.test', EXPECTED)
      expectScenario(report, {
        name: 'split.test',
        verdict: 'ready_with_warning',
        code: 'split_dns',
        evidence: { authoritative: false, primary: 'dc1.split.test' },
        report: { retry_after_seconds: null },
      })
    })

    test('a resolver that uses the previous name servers as long as it caches their NS set', async () => {
      const report = await network.check('left.test', EXPECTED)
      expectScenario(report, {
        name: 'left.test',
        verdict: 'wait',
        code: 'stale_delegation',
        evidence: { previous: ['ns-b.left.test'], current: ['ns-a.left.test'] },
      })
      expect(report.retry_after_seconds).toBeGreaterThan(86_000)
    })

    test('a router that removes TXT records from answers', async () => {
      const report = await network.check('striptxt.test', EXPECTED, {
        resolvers: [{ address: HOSTS.stripper, port: network.port }],
      })
      expectScenario(report, {
        name: 'striptxt.test',
        verdict: 'ready_with_warning',
        code: 'txt_filtered',
        evidence: { outcome: 'absent' },
      })
    })

    test('a broken resolver', async () => {
      expectScenario(await network.check('brokenresolver.test', EXPECTED), {
        name: 'brokenresolver.test',
        verdict: 'ready_with_warning',
        code: 'resolver_broken',
        evidence: { resolver: `127.0.53.53:${network.port}` },
      })
    })
  })

  test.each([0, 3, 20, 300, 2600])('an interrupt after %i ms ends the check at once', async (ms) => {
    const controller = new AbortController()
    const reason = new Error('interrupted')
    setTimeout(() => controller.abort(reason), ms)
    const request = { resolvers: [network.unbound], authoritativePort: network.port, publicResolvers: false }
    const start = performance.now()
    const checks = ['allsilent.test', 'silentone.test'].map((name) =>
      checkDns({ ...request, name, expected: EXPECTED }, realEffects(controller.signal)),
    )
    for (const ended of await Promise.allSettled(checks))
      expect(ended).toMatchObject({ status: 'rejected', reason })
    expect(performance.now() - start).toBeLessThan(ms + 2000)
  })

  test('resolvers are never asked about a name that the authoritative servers do not have', async () => {
    const names = [
      'a.b.missing.test',
      'missing.test',
      'app.wild.test',
      'app.doubledsub.test',
      'app.dangling.test',
    ]
    for (const name of names) {
      await network.check(name, EXPECTED)
      await network.check(name, EXPECTED, { resolvers: [network.lonely] })
    }
    const asked = [...network.unboundQueries(), ...network.unboundQueries('lonely')]
    expect(asked).toContain('test. NS')
    // Nor if the network blocks queries to the authoritative servers: here, to a closed port.
    const blocked = { authoritativePort: network.port === 65_535 ? 20_000 : network.port + 1 }
    for (const resolvers of [[network.unbound], [network.lonely]])
      expect((await network.check('x.y.soamin.test', EXPECTED, { ...blocked, resolvers })).verdict).toBe(
        'unknown',
      )
    const absent = [
      'x.y.soamin.test.',
      'y.soamin.test.',
      'a.b.missing.test.',
      'b.missing.test.',
      'app.wild.test.',
      'app.doubledsub.test.',
      'gone.dangling.test.',
    ]
    for (const name of absent) expect(asked.filter((question) => question.startsWith(`${name} `))).toEqual([])
    expect(asked).not.toContain('missing.test. TXT')
    expect(asked).not.toContain('app.dangling.test. TXT')
  })
})

/** Makes a resolver cache what the zone has now. */
async function primeResolver(world: ServerNetwork, name: string, which: 'unbound' | 'bind'): Promise<void> {
  const effects = realEffects()
  const reply = await ask(
    world[which],
    { name, type: 'TXT' },
    { recursionDesired: true, deadline: effects.clock.monotonic() + 5000 },
    effects,
  )
  expect(reply.kind).toBe('answer')
}

function expectScenario(report: CheckReportJson, scenario: Omit<Scenario, 'title'>): void {
  const others = report.findings.filter(
    (finding) => finding.severity === 'error' && finding.code !== scenario.code,
  )
  expect(others).toEqual([])
  expect(report.findings.map((finding) => finding.code)).toContain(scenario.code)
  expect(report.verdict).toBe(scenario.verdict)
  const finding = report.findings.find((candidate) => candidate.code === scenario.code)
  expect(finding?.evidence).toMatchObject(scenario.evidence)
  expect(finding?.fix).not.toBe('')
  if (scenario.report !== undefined) expect(report).toMatchObject(scenario.report)
}

async function timed(work: () => Promise<CheckReportJson>): Promise<{ report: CheckReportJson; ms: number }> {
  const start = performance.now()
  const report = await work()
  return { report, ms: performance.now() - start }
}
