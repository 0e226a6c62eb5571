import type { TestZone } from './zone-file.ts'

/** The value that every scenario expects. */
export const EXPECTED = 'mc-verify=Q7dX2kV9pLr4TzB8nW'
export const OTHER_TOKEN = 'mc-verify=A1b2C3d4E5f6G7h8J9'
const SPF = '@ TXT "v=spf1 include:_spf.example.net ~all"'
const RIGHT = `@ TXT "${EXPECTED}"`

/** An easy mistake: the target is below the DNAME, which applies again. */
const BELOW_ITSELF = 'shop DNAME eu.shop'
/** Makes a name longer than DNS allows if 63 characters precede it. */
const TOO_LONG = `far DNAME ${Array(3).fill('x'.repeat(60)).join('.')}`

const onA = (domain: string, records: string, more: Partial<TestZone> = {}): TestZone => ({
  domain,
  on: { a: records },
  ns: ['a'],
  ...more,
})

/** The same records at two servers. */
const onBoth = (domain: string, records: string, more: Partial<TestZone> = {}): TestZone => ({
  domain,
  on: { a: records, b: records },
  ns: ['a', 'b'],
  ...more,
})

const healthy: readonly TestZone[] = [
  onA('one.test', RIGHT),
  {
    domain: 'four.test',
    on: { a: RIGHT, b: RIGHT, c: RIGHT },
    ns: ['a', 'b', 'c', 'd'],
  },
  onA('six.test', RIGHT, { ipv6: '::1' }),
  // Two names, one server.
  onA('twins.test', `${RIGHT}\nns-two A 127.0.53.11`, { ns: ['a', 'ns-two.twins.test.'] }),
  onBoth('sub.test', `app TXT "${EXPECTED}"`),
  onBoth('aliasparent.test', `www CNAME web\nweb A 192.0.2.1\n_mc.www TXT "${EXPECTED}"`),
  onBoth('spf.test', `${SPF}\n${RIGHT}`),
  onA('signed.test', RIGHT, { signed: true }),
  onBoth('strings.test', `@ TXT "${EXPECTED.slice(0, 11)}" "${EXPECTED.slice(11)}"`),
  onBoth('deep.test', `a.b.c TXT "${EXPECTED}"`),
  onBoth('alias.test', `app CNAME proof.target.test.`),
  onA('target.test', `proof TXT "${EXPECTED}"`),
  onBoth('wildmatch.test', `* TXT "${EXPECTED}"`),
  onBoth('xn--bcher-kva.test', RIGHT),
  onA('dname.test', `old DNAME new\napp.new TXT "${EXPECTED}"`),
  onBoth('stalebeside.test', `@ TXT "${OTHER_TOKEN}"\n${RIGHT}`),
  // A zone below another one.
  onA('outer.test', `team NS ns-b.team.outer.test.\nns-b.team A 127.0.53.12\nteam TXT "occluded"`),
  { domain: 'team.outer.test', on: { b: RIGHT }, ns: ['b'], undelegated: true },
  onA('large.test', `${RIGHT}\n${fillers(12)}`),
]

/** TXT records of about 200 bytes. */
function fillers(count: number): string {
  return Array.from(
    { length: count },
    (_, index) => `@ TXT "service-${index}-proof=${String(index).padStart(3, '0').repeat(60)}"`,
  ).join('\n')
}

const causes: readonly TestZone[] = [
  onBoth('missing.test', SPF, { ttl: 1800 }),
  onBoth('soattl.test', 'www A 192.0.2.1', { soaTtl: 45, minimum: 3600 }),
  onBoth('soamin.test', 'www A 192.0.2.1', { soaTtl: 7200, minimum: 120 }),
  onBoth('ent.test', `x.team TXT "something else"`),
  onBoth('doubled.test', `doubled.test TXT "${EXPECTED}"`),
  onBoth('doubledsub.test', `app.doubledsub.test TXT "${EXPECTED}"`),
  onBoth('doubledtwice.test', `doubledtwice.test.doubledtwice.test TXT "${EXPECTED}"`),
  onBoth('firstlabel.test', `firstlabel TXT "${EXPECTED}"`),
  onBoth('again.test', `shop.shop TXT "${EXPECTED}"`),
  onBoth('literalat.test', `\\064 TXT "${EXPECTED}"`),
  onBoth('quotedat.test', `\\034\\064\\034 TXT "${EXPECTED}"`),
  onBoth('atbelow.test', `\\064 TXT "${EXPECTED}"`),
  onBoth('domainkey.test', `_domainkey TXT "${EXPECTED}"`),
  // The right value in a record of the wrong type.
  onBoth('instead.test', `app CNAME ${EXPECTED.replace('=', '\\061')}`),
  onBoth('insteadat.test', `insteadat.test CNAME ${EXPECTED.replace('=', '\\061')}.`),
  onBoth('valuehost.test', `${EXPECTED.replace('=', '\\061')} TXT "verify"`),
  onBoth('valuealias.test', `${EXPECTED.replace('=', '\\061')} CNAME verify.example.net.`),
  onBoth('tokenhost.test', `${EXPECTED.slice(10)} TXT "mc-verify"`),
  onBoth('ellipsis.test', `@ TXT "${EXPECTED.slice(0, 16)}...${EXPECTED.slice(-4)}"`),
  onBoth('atwww.test', `www TXT "${EXPECTED}"`),
  onBoth('toparent.test', `app A 192.0.2.1\n${RIGHT}`),
  onBoth('underscore.test', `_mc-verify TXT "${EXPECTED}"`),
  onBoth('wildbelow.test', `*.app TXT "${EXPECTED}"`),
  onBoth('wildhigh.test', `* TXT "${EXPECTED}"\na.b A 192.0.2.1`),
  onBoth('wild.test', '* TXT "v=spf1 -all"'),
  onBoth('wildalias.test', '* CNAME web\nweb A 192.0.2.1'),
  // Records with the same value as the wildcard.
  onBoth('wildtwin.test', '@ TXT "v=spf1 -all"\napp TXT "v=spf1 -all"\n* TXT "v=spf1 -all"'),
  onBoth('wildtwinalias.test', '* CNAME web\napp CNAME web\nweb A 192.0.2.1'),
  onBoth('wildtwinmatch.test', `* TXT "${EXPECTED}"\napp TXT "${EXPECTED}"`),
  onBoth('cname.test', 'app CNAME web\nweb A 192.0.2.1'),
  onBoth('cnameout.test', 'app CNAME www.target.test.'),
  onBoth('dnamegone.test', 'old DNAME new\nnew A 192.0.2.1'),
  onBoth('dnameloop.test', 'old DNAME older\nolder DNAME old'),
  onBoth('dnameself.test', BELOW_ITSELF),
  { domain: 'dnameselfbind.test', on: { bind: BELOW_ITSELF }, ns: ['bind'] },
  onBoth('dnamelong.test', TOO_LONG),
  { domain: 'dnamelongbind.test', on: { bind: TOO_LONG }, ns: ['bind'] },
  onBoth('dangling.test', 'app CNAME gone'),
  onBoth('danglingout.test', 'app CNAME nobody.nosuchdomain.test.'),
  onBoth('loop.test', 'app CNAME two\ntwo CNAME three\nthree CNAME app'),
  onBoth('family.test', 'child NS ns-a.child\nns-a.child A 127.0.53.11'),
  onBoth('child.family.test', 'app CNAME gone.family.test.', { undelegated: true }),
  onBoth('quoted.test', `@ TXT "\\"${EXPECTED}\\""`),
  onBoth('endash.test', `@ TXT "mc\\226\\128\\147${EXPECTED.slice(3)}"`),
  onBoth('cyrillic.test', `${SPF}\n@ TXT "${EXPECTED.replace('B', '\\208\\146')}"`),
  onBoth('percent.test', `@ TXT "${EXPECTED.replace('=', '%3D')}"`),
  onBoth('swapped.test', `@ TXT "${EXPECTED.slice(10)}=mc-verify"`),
  onBoth('placeholder.test', '@ TXT "mc-verify=YOUR_TOKEN"'),
  onBoth('blank.test', `@ TXT "${EXPECTED} "`),
  onBoth('nbsp.test', `@ TXT "${EXPECTED}\\194\\160"`),
  onBoth('zerowidth.test', `@ TXT "mc-verify=\\226\\128\\139${EXPECTED.slice(10)}"`),
  onBoth('splitrecords.test', `@ TXT "${EXPECTED.slice(0, 14)}"\n@ TXT "${EXPECTED.slice(14)}"`),
  onBoth('truncated.test', `@ TXT "${EXPECTED.slice(0, 20)}"`),
  onBoth('case.test', `@ TXT "${EXPECTED.toLowerCase()}"`),
  onBoth('stale.test', `${SPF}\n@ TXT "${OTHER_TOKEN}"`, { ttl: 600 }),
  onBoth('tokenonly.test', `@ TXT "${EXPECTED.slice(10)}"`),
  onBoth('prefixonly.test', '@ TXT "mc-verify="'),
  onBoth('pasted.test', `@ TXT "pasted.test. 300 IN TXT \\"${EXPECTED}\\""`),
  onBoth('txtequals.test', `@ TXT "TXT=${EXPECTED}"`),
  onBoth('extra.test', `@ TXT "v=spf1 -all ${EXPECTED}"`),
  onBoth('binary.test', '@ TXT "\\255\\254\\000\\027[31m"'),
  onA('cloud.test', SPF, { ns: ['ada.ns.cloudflare.com.', 'bob.ns.cloudflare.com.'] }),
]

const servers: readonly TestZone[] = [
  { domain: 'partial.test', on: { a: RIGHT, b: SPF }, ns: ['a', 'b'], serials: { a: 42, b: 41 }, ttl: 400 },
  {
    domain: 'partialnx.test',
    on: { a: `app TXT "${EXPECTED}"`, b: '' },
    ns: ['a', 'b'],
    serials: { a: 7, b: 6 },
    minimum: 90,
  },
  { domain: 'sameserial.test', on: { a: RIGHT, b: SPF }, ns: ['a', 'b'] },
  // Half moved: each provider lists only itself.
  {
    domain: 'moved.test',
    on: { a: `@ NS ns-a\n${RIGHT}`, b: `@ NS ns-b\n${SPF}` },
    ns: [],
    parentNs: ['a', 'b'],
    serials: { a: 1, b: 2026010101 },
  },
  // The zone below is only at Knot, or only at NSD, and nothing delegates it.
  onBoth('panela.test', 'www A 192.0.2.1'),
  onA('mail.panela.test', RIGHT, { undelegated: true }),
  onBoth('panelb.test', 'www A 192.0.2.1'),
  { domain: 'mail.panelb.test', on: { b: RIGHT }, ns: ['b'], undelegated: true },
  { domain: 'lame.test', on: { a: RIGHT }, ns: ['a', 'b'] },
  { domain: 'lamemissing.test', on: { a: SPF }, ns: ['a', 'b'] },
  { domain: 'alllame.test', on: { a: RIGHT }, ns: ['b', 'c'], resolveAt: 'a' },
  { domain: 'dead.test', on: { a: RIGHT, b: RIGHT }, ns: ['a', 'b', 'dead'] },
  { domain: 'silentone.test', on: { a: RIGHT, b: RIGHT }, ns: ['a', 'b', 'silent'] },
  { domain: 'silentmissing.test', on: { a: SPF, b: SPF }, ns: ['a', 'b', 'silent'] },
  { domain: 'allsilent.test', on: { a: RIGHT }, ns: ['silent', 'silent2'], resolveAt: 'silent' },
  { domain: 'slow.test', on: { a: RIGHT, b: RIGHT, c: RIGHT }, ns: ['a', 'b', 'c', 'slow'] },
  { domain: 'mismatch.test', on: { a: RIGHT, b: RIGHT }, ns: ['a'], parentNs: ['a', 'b'] },
  { domain: 'divided.test', on: { a: RIGHT, b: SPF }, ns: ['a'], parentNs: ['a', 'b'] },
  {
    domain: 'nons.test',
    on: { a: RIGHT },
    ns: ['ns1.nosuchhost.test.', 'ns2.nosuchhost.test.'],
  },
  { domain: 'noedns.test', on: { a: RIGHT }, ns: ['noedns'] },
  { domain: 'noisy.test', on: { a: RIGHT }, ns: ['noisy'] },
  { domain: 'tcpclosed.test', on: { a: `${RIGHT}\n${fillers(24)}` }, ns: ['udponly'], resolveAt: 'udponly' },
  { domain: 'tcpclosedhere.test', on: { a: `${RIGHT}\n${fillers(24)}` }, ns: ['udponly'] },
  { domain: 'openresolver.test', on: { a: RIGHT }, ns: ['openResolver'], resolveAt: 'a' },
  // The zone is gone from BIND, which gives everyone a referral to the root.
  { domain: 'gone.test', on: { a: RIGHT }, ns: ['bind'], resolveAt: 'a' },
  { domain: 'dropsdo.test', on: { a: RIGHT }, ns: ['dropsDo'], resolveAt: 'dropsDo' },
  ...(['addsCname', 'hasCname'] as const).map(
    (host): TestZone => ({
      domain: `${host.toLowerCase()}.test`,
      on: { a: `app TXT "${EXPECTED}"\nweb A 192.0.2.1` },
      ns: [host],
      resolveAt: host,
    }),
  ),
  { domain: 'dropsedns.test', on: { a: RIGHT }, ns: ['dropsEdns'], resolveAt: 'dropsEdns' },
  { domain: 'failsedns.test', on: { a: RIGHT }, ns: ['failsEdns'], resolveAt: 'failsEdns' },
  { domain: 'badversedns.test', on: { a: RIGHT }, ns: ['badversEdns'], resolveAt: 'badversEdns' },
  { domain: 'noaa.test', on: { a: RIGHT }, ns: ['unauthoritative'], resolveAt: 'unauthoritative' },
  // The delegation is right; the zone's own NS record lacks the dot.
  { domain: 'nodot.test', on: { a: RIGHT }, ns: ['ns1.example.net.nodot.test.'], parentNs: ['a'] },
  { domain: 'refusestxt.test', on: { a: RIGHT }, ns: ['refusesTxt'], resolveAt: 'refusesTxt' },
  // A resolver listed by mistake; nothing intercepts queries.
  { domain: 'recursor.test', on: { a: RIGHT }, ns: ['recursor'], resolveAt: 'a' },
  { domain: 'noglue.test', on: { a: RIGHT }, ns: ['a'], withoutGlue: true, resolveAt: 'dead' },
  onA('many.test', `${RIGHT}\n${fillers(60)}`),
]

const resolvers: readonly TestZone[] = [
  onA('cachedabsence.test', 'www A 192.0.2.1', { soaTtl: 3600, minimum: 77 }),
  onA('cachedapex.test', `${SPF}\n@ TXT "${OTHER_TOKEN}"`, { ttl: 222 }),
  onA('cachedbind.test', 'www A 192.0.2.1', { soaTtl: 88, minimum: 3600 }),
  // Inside, resolvers are configured to use another server, which has its own version of the zone.
  {
    domain: 'split.test',
    on: { a: RIGHT, b: '' },
    ns: ['a'],
    resolveAt: 'b',
    primaries: { b: 'dc1' },
    minimum: 900,
  },
  // The resolver uses the servers from before a move.
  {
    domain: 'left.test',
    on: { a: `@ NS ns-a\n${RIGHT}`, b: `@ 86400 NS ns-b\nns-b A 127.0.53.12\n${SPF}` },
    ns: [],
    parentNs: ['a'],
    resolveAt: 'b',
  },
  onA('striptxt.test', RIGHT),
  onA('bogus.test', RIGHT),
  onA('dsleft.test', RIGHT, { ds: `12345 13 2 ${'ab'.repeat(32)}` }),
  onA('dsleftmissing.test', SPF, { ds: `12345 13 2 ${'ab'.repeat(32)}` }),
  onA('wrongds.test', RIGHT, { signed: true, ds: `12345 13 2 ${'ab'.repeat(32)}` }),
  onA('brokenresolver.test', RIGHT, { resolveAt: 'dead' }),
]

export const ZONES: readonly TestZone[] = [...healthy, ...causes, ...servers, ...resolvers]
