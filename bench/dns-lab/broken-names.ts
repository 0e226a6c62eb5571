import packet from 'dns-packet'
import { NSD } from './network.ts'
import { question } from './processes.ts'
import { relay } from './relay.ts'
import { EXPECTED, RIGHT, SPF, txt } from './setup.ts'
import type { Broken, Truth } from './truth.ts'
import { type Holder, zone } from './zone.ts'

const AT = (host: string) => `${host} TXT "${EXPECTED}"`

function place(
  id: string,
  what: string,
  name: string,
  domain: string,
  records: string,
  truth: Omit<Truth, 'verdicts'> = {},
): Broken {
  return { id, what, name, zones: [zone(domain, records)], truth: { verdicts: ['fix'], ...truth } }
}

const OTHER = { codes: ['other_name', 'doubled_name'] }

/** The right value at the wrong name. */
export const NAMES: readonly Broken[] = [
  place('n-doubled', 'the domain doubled', 'doubled.com', 'doubled.com', AT('doubled.com'), {
    codes: ['doubled_name'],
  }),
  place(
    'n-doubledsub',
    'the domain doubled below the apex',
    'app.doubledsub.com',
    'doubledsub.com',
    AT('app.doubledsub.com'),
    { codes: ['doubled_name'] },
  ),
  place('n-doubledtwice', 'the domain doubled twice', 'twice.com', 'twice.com', AT('twice.com.twice.com'), {
    codes: ['doubled_name'],
  }),
  place(
    'n-firstlabel',
    'the first label of the domain typed as the host',
    'hostonly.com',
    'hostonly.com',
    AT('hostonly'),
    OTHER,
  ),
  place(
    'n-firstlabelsub',
    'the host typed again below itself',
    'shop.again.com',
    'again.com',
    AT('shop.shop'),
    OTHER,
  ),
  place(
    'n-quotedat',
    '"@" with its quotation marks typed as the host',
    'quotedat.com',
    'quotedat.com',
    AT('\\034\\064\\034'),
    { firstMentions: /@/ },
  ),
  place('n-at', '@ stored as a name', 'literalat.com', 'literalat.com', AT('\\064'), { firstMentions: /@/ }),
  place('n-www', 'at www', 'atwww.com', 'atwww.com', AT('www'), OTHER),
  place('n-parent', 'at the parent', 'app.atparent.com', 'atparent.com', `app A 192.0.2.1\n${RIGHT}`, OTHER),
  place(
    'n-underscore',
    'at a label with an underscore',
    'atlabel.com',
    'atlabel.com',
    AT('_mc-verify'),
    OTHER,
  ),
  place('n-wildbelow', 'at a wildcard below the name', 'app.wildbelow.com', 'wildbelow.com', AT('*.app'), {
    codes: ['other_name', 'wildcard_answer'],
  }),
  place('n-wildcard', 'a wildcard answers', 'app.wildcard.com', 'wildcard.com', '* TXT "v=spf1 -all"', {
    codes: ['wildcard_answer'],
  }),
  {
    id: 'n-givendoubled',
    what: 'the right record; the given name has the domain twice',
    name: 'given.com.given.com',
    zones: [zone('given.com', RIGHT)],
    truth: {
      verdicts: ['fix'],
      firstMentions: /twice|doubled|--name|you (typed|gave)|given name/i,
      never: /remove/i,
    },
  },
  {
    id: 'n-occluded',
    what: 'at the parent of a delegation, which hides it',
    name: 'app.team.hidden.dev',
    zones: [
      zone('hidden.dev', `app.team TXT "${EXPECTED}"`, { at: ['knot'] }),
      zone('team.hidden.dev', '', { at: ['nsd'] }),
    ],
    truth: { verdicts: ['fix'], codes: ['missing', 'other_name'] },
  },
]

const looped = (holder: Holder): Broken => ({
  id: `a-dnameself-${holder}`,
  what: `a DNAME below itself (${holder})`,
  name: `app.shop.dname-${holder}.com`,
  zones: [zone(`dname-${holder}.com`, 'shop DNAME eu.shop', { at: [holder] })],
  truth: { verdicts: ['fix'], codes: ['cname_loop', 'cname_dangling'], firstMentions: /DNAME/ },
})

/** A CNAME at the apex: BIND, Knot and NSD refuse to load it, but some providers' servers have it. */
const apexAlias = relay({
  upstream: NSD,
  own: ({ name, type, packet: query }) =>
    name === 'apexalias.com' && type !== 'SOA' && type !== 'NS'
      ? packet.encode({
          type: 'response',
          id: query.id ?? 0,
          flags: packet.AUTHORITATIVE_ANSWER,
          questions: query.questions ?? [],
          answers: [{ type: 'CNAME', name, ttl: 300, data: 'web.apexalias.com' }],
        })
      : undefined,
})

/** A CNAME next to the record, in answers to these queries: BIND, Knot and NSD refuse to load it, others serve it. */
function beside(id: string, what: string, types: readonly string[], truth: Truth): Broken {
  const apex = `${id}.com`
  const name = `app.${apex}`
  const server = relay({
    upstream: NSD,
    change: (answer, query) => {
      if (query.name !== name || !types.includes(query.type)) return answer
      const { id = 0, questions = [], answers = [] } = packet.decode(answer)
      return packet.encode({
        type: 'response',
        id,
        flags: packet.AUTHORITATIVE_ANSWER,
        questions,
        answers: [{ type: 'CNAME', name, ttl: 3600, data: `web.${apex}` }, ...answers],
      })
    },
  })
  return {
    id,
    what,
    name,
    zones: [zone(apex, `${AT('app')}\nweb A 192.0.2.1`, { at: ['nsd'], ns: { ns1: [server.address] } })],
    before: async (resolver) => {
      if (!types.includes('TXT')) await question(resolver, name, 'A', 3000)
    },
    truth,
  }
}

const BESIDE: Truth = { verdicts: ['fix'], codes: ['cname_at_name'], never: /Wait \d+/ }

/** Aliases. */
export const ALIASES: readonly Broken[] = [
  beside('a-beside', 'a CNAME next to the record, in one answer', ['TXT'], BESIDE),
  beside(
    'a-besidecached',
    'a CNAME next to the record, which the resolver has cached',
    ['A', 'CNAME'],
    BESIDE,
  ),
  looped('knot'),
  looped('nsd'),
  looped('bind'),
  place(
    'a-dnamegrow',
    'two DNAMEs that lengthen each other',
    'x.one.grow.com',
    'grow.com',
    'one DNAME a.two\ntwo DNAME b.one',
    { codes: ['cname_loop', 'cname_dangling'], firstMentions: /DNAME/ },
  ),
  place(
    'a-dnameloop',
    'two DNAMEs in a circle',
    'app.old.dnameloop.com',
    'dnameloop.com',
    'old DNAME older\nolder DNAME old',
    { codes: ['cname_loop'] },
  ),
  place(
    'a-cname',
    'an alias at the name',
    'app.aliased.com',
    'aliased.com',
    'app CNAME web\nweb A 192.0.2.1',
    { codes: ['cname_at_name', 'cname_dangling'] },
  ),
  place('a-dangling', 'an alias to nowhere', 'app.dangling.com', 'dangling.com', 'app CNAME gone', {
    codes: ['cname_dangling'],
  }),
  place('a-loop', 'aliases in a circle', 'app.circle.com', 'circle.com', 'app CNAME two\ntwo CNAME app', {
    codes: ['cname_loop'],
  }),
  place(
    'a-instead',
    'a CNAME chosen instead of TXT',
    'app.instead.com',
    'instead.com',
    `app CNAME ${EXPECTED.replace('=', '\\061')}`,
    {
      codes: ['cname_instead_of_txt'],
      firstMentions: /instead of|as a CNAME|type TXT|record type|kind of record/i,
    },
  ),
  {
    id: 'a-apex',
    what: 'a CNAME at the apex',
    name: 'apexalias.com',
    zones: [zone('apexalias.com', txt(SPF), { at: ['nsd'], ns: { ns1: [apexAlias.address] } })],
    truth: {
      verdicts: ['fix'],
      codes: ['cname_at_name', 'cname_dangling', 'cname_at_apex'],
      firstMentions: /apex|top of|not allowed|itself/i,
    },
  },
]

const registered = (id: string, what: string, name: string, truth: Partial<Truth>): Broken => ({
  id,
  what,
  name,
  zones: [],
  truth: { verdicts: ['fix'], ...truth },
})

/** @param unaware the registry server that doesn't know the domain yet. */
const disagreement = (id: string, name: string, unaware: Holder): Broken => ({
  id,
  what: 'registry servers that disagree about a new domain',
  name,
  zones: [zone(name, RIGHT, { delegationAt: { [unaware]: 'none' } })],
  truth: {
    verdicts: ['ready', 'ready_with_warning', 'wait'],
    codes: [
      'no finding',
      'registry_disagrees',
      'parent_disagrees',
      'partial_delegation',
      'resolver_broken',
      'cached_absence',
    ],
  },
})

/** Names that depend on who is a registry and who is a company. */
export const REGISTRY_NAMES: readonly Broken[] = [
  {
    id: 'r-idme',
    what: 'at the apex of a company domain that looks like a registry',
    name: 'new.ind.me',
    zones: [zone('ind.me', RIGHT)],
    truth: { verdicts: ['fix'], codes: ['other_name'] },
  },
  {
    id: 'r-webde',
    what: 'missing below a company domain that looks like a registry',
    name: 'a.b.firm.de',
    zones: [zone('firm.de', txt(SPF), { at: ['bind'] })],
    truth: { verdicts: ['fix'], codes: ['missing'] },
  },
  {
    id: 'r-comde',
    what: 'missing in a company domain com.de',
    name: 'verify.com.de',
    zones: [zone('com.de', txt(SPF))],
    truth: { verdicts: ['fix'], codes: ['missing'] },
  },
  {
    id: 'r-goio',
    what: 'missing at the apex of a short company domain',
    name: 'go.io',
    zones: [zone('go.io', txt(SPF))],
    truth: { verdicts: ['fix'], codes: ['missing'] },
  },
  registered('r-nobody', 'not registered', 'app.nobody.com', {
    codes: ['domain_not_found'],
    firstMentions: /domain nobody\.com/,
  }),
  registered('r-tld', 'a typo in the top-level domain', 'example.con', { codes: ['domain_not_found'] }),
  registered('r-couk', 'not registered below co.uk', 'app.nobody.co.uk', {
    codes: ['domain_not_found'],
    firstMentions: /domain nobody\.co\.uk/,
  }),
  registered('r-cojp', 'not registered below co.jp', 'app.nobody.co.jp', {
    codes: ['domain_not_found'],
    firstMentions: /domain nobody\.co\.jp/,
  }),
  registered('r-comau', 'not registered below com.au', 'nobody.com.au', {
    codes: ['domain_not_found'],
    firstMentions: /domain nobody\.com\.au/,
  }),
  registered('r-k12', 'not registered below pvt.k12.ma.us', 'app.nobody.pvt.k12.ma.us', {
    codes: ['domain_not_found'],
    firstMentions: /nobody\.pvt\.k12\.ma\.us/,
  }),
  registered('r-own', "in a registry's own zone", 'co.uk', {
    firstMentions: /registr/i,
    never: /Add (a|the) TXT/i,
  }),
  registered('r-own2', "in a registry's own name that isn't a separate zone", 'co.jp', {
    firstMentions: /registr/i,
    never: /Add (a|the) TXT/i,
  }),
  {
    id: 'r-ukcom',
    what: 'not registered at a private registry',
    name: 'nobody.eu.com',
    zones: [zone('eu.com', '')],
    truth: {
      verdicts: ['fix'],
      codes: ['domain_not_found', 'missing'],
      firstMentions: /regist/i,
      never: /Add (a|the) TXT/i,
    },
  },
  {
    id: 'r-github',
    what: 'missing in the zone of a host for everybody',
    name: 'nobody.gitlab.io',
    zones: [zone('gitlab.io', '* A 192.0.2.1')],
    truth: { verdicts: ['fix'], codes: ['missing', 'domain_not_found'] },
  },
  disagreement('r-disagree', 'fresh.org', 'tldB'),
  disagreement('r-disagree2', 'fresh2.org', 'tldA'),
]
