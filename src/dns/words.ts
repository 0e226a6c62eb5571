import { formatDuration } from '../terminal/time.ts'

export type Verdict = 'ready' | 'ready_with_warning' | 'wait' | 'fix' | 'unknown'
export type Severity = 'error' | 'warning'

/** The worst first. */
const VERDICTS: readonly Verdict[] = ['fix', 'unknown', 'wait', 'ready_with_warning', 'ready']

interface Words {
  /** What the finding makes of the report, unless another makes it worse. */
  readonly verdict: Verdict
  /**
   * What is wrong, in one line that begins in lower case and ends without a full stop. Facts stand in braces, as
   * `{name}` or `{name:kind}`. What is in brackets stands there only if its fact isn't null.
   */
  readonly message: string
  /** The one thing to do, in the same form. */
  readonly fix: string
}

/** To be followed by what is wrong and what to do. */
const mistake = { verdict: 'fix' } as const
const unknown = { verdict: 'unknown' } as const
const wait = { verdict: 'wait' } as const
const warning = { verdict: 'ready_with_warning' } as const

const ADD =
  'add a TXT record[ in the zone {zone}][ at {provider}], beside any others: host {host}, value {expected}'
const CORRECT = 'correct the value of that record, at the host {host}[ in the zone {zone}]: {expected}'
/** After a sentence that no name server's answer counts. */
const AT_RESOLVERS = '[; TXT values at {resolvers}: {values:quoted}][, kept for {seconds:duration}]'

/**
 * Everything that a check can find, with what to say about it. A new code needs two real incidents; a special case is a fact
 * in the evidence of an existing one.
 */
export const WORDS = {
  invalid_name: { ...mistake, message: '{problem}', fix: '{advice}' },
  domain_not_found: {
    ...mistake,
    message: "the domain {domain} isn't in DNS: its registry has no name servers for it",
    fix: 'check the spelling of {domain}, whether it is registered, and its name servers at the registrar',
  },
  no_nameservers: {
    ...mistake,
    message: 'no name server of {zone} has an address: {hosts}',
    fix: 'correct the names of the name servers at the registrar, or add the missing address records',
  },
  missing: {
    ...mistake,
    message: "the TXT record isn't at {name}; TXT values there: {values:quoted}",
    fix: ADD,
  },
  doubled_name: {
    ...mistake,
    message:
      'a TXT record is at {found_at}: the DNS provider added the zone to a name that had it: {values:quoted}',
    fix: "enter {host} as the record's host[, and as its value {value}]; the provider adds {zone} to it",
  },
  other_name: {
    ...mistake,
    message: 'a TXT record is at {found_at} instead of {name}: {values:quoted}',
    fix: "enter {host} as the record's host in the zone {zone}[, and as its value {value}]",
  },
  cname_at_name: {
    ...mistake,
    message: "{name} is an alias (CNAME) for {target}, and can't have a TXT record of its own",
    fix: 'replace the CNAME with the TXT record {reason:words}',
  },
  wildcard_answer: {
    ...mistake,
    message: '{name} has no record of its own: a wildcard answers for it: {values:quoted}',
    fix: ADD,
  },
  quoted: {
    ...mistake,
    message: 'the stored value has quotation marks or backslashes in it: {seen:quoted}',
    fix: 'enter the value without quotation marks; the DNS provider adds those that it needs',
  },
  whitespace: {
    ...mistake,
    message: 'the stored value differs in spaces or in characters that nobody sees: {seen:quoted}',
    fix: 'delete the value, and enter it again as plain text without spaces and line breaks',
  },
  case_changed: {
    ...mistake,
    message: 'the stored value differs in uppercase and lowercase letters: {seen:quoted}',
    fix: CORRECT,
  },
  truncated: { ...mistake, message: 'the stored value is cut off: {seen:quoted}', fix: CORRECT },
  extra_text: {
    ...mistake,
    message: 'the record holds more than the value: {seen:quoted}',
    fix: 'put the value alone in a TXT record of its own, at the host {host}[ in the zone {zone}]: {expected}',
  },
  split_records: {
    ...mistake,
    message: 'the value is split over several TXT records: {seen:quoted}',
    fix: 'enter the whole value in one TXT record, at the host {host}[ in the zone {zone}]: {expected}',
  },
  prefix_or_token_only: {
    ...mistake,
    message: 'the stored value is only what is before or after the equals sign: {seen:quoted}',
    fix: CORRECT,
  },
  given_value_cut: {
    ...unknown,
    message:
      'the given value is only a part of the one in DNS, {seen:quoted}: it was probably cut when copied',
    fix: 'check again with the whole value, as the claim has it',
  },
  characters_changed: {
    ...mistake,
    message: 'the stored value is almost right, but some of its characters differ: {seen:quoted}',
    fix: CORRECT,
  },
  stale_token: {
    ...mistake,
    message: 'the record holds another token, as of an earlier or another claim: {seen:quoted}',
    fix: ADD,
  },
  lame_nameserver: {
    ...mistake,
    message: 'no name server of {zone} serves it: {servers}',
    fix: 'have the DNS provider load the zone, or set its name servers at the registrar to those that have it',
  },
  nameserver_unreachable: {
    ...unknown,
    message: `no name server answers for {name}${AT_RESOLVERS}`,
    fix: "check again from another network; if they don't answer there either, tell the DNS provider",
  },
  parent_child_mismatch: {
    ...mistake,
    message: 'two sets of name servers answer for {zone}, and these lack the record: {servers}',
    fix: 'add the record there too, or make the NS records at the registrar and in the zone the same',
  },
  dnssec_bogus: {
    ...mistake,
    message: "DNSSEC of {zone} is broken, so validating resolvers don't accept its answers: {reason:words}",
    fix: 'have the DNS provider sign the zone again, or remove or update the DS record at the registrar',
  },
  partial_propagation: {
    ...wait,
    message: 'name servers that lack the record: {without}; that have it: {with}',
    fix: 'check again soon: copying takes at most {at_most:duration}; if it never ends, add the record at their provider too',
  },
  cached: {
    ...wait,
    message: 'the name servers are right, but resolvers still use what they have cached: {resolvers}',
    fix: 'wait {seconds:duration}, then check again',
  },
  dns_intercepted: {
    ...unknown,
    message: `{reason:words}${AT_RESOLVERS}`,
    fix: 'check from another network, or ask a resolver over HTTPS: --resolver https://dns.quad9.net/dns-query',
  },
  resolver_unreachable: {
    ...unknown,
    message: `the name servers of {name} weren't found; the resolvers answered: {replies}${AT_RESOLVERS}`,
    fix: 'check the network connection of this machine, or use another resolver: --resolver 9.9.9.9',
  },
  limit_reached: {
    ...unknown,
    message: 'the check reached its limit of queries before a name server of {name} answered',
    fix: 'check {name} with https://zonemaster.net: it has unusually many name servers or delegations',
  },
  resolver_only: {
    ...warning,
    message: 'no name server can be reached from here, but resolvers show the record: {resolvers}',
    fix: 'nothing to do; from another network, check that each name server has it',
  },
  some_servers_lame: {
    ...warning,
    message: "name servers that don't serve {zone}: {servers}",
    fix: 'have the DNS provider load the zone there, or correct the name servers at the registrar',
  },
  some_servers_silent: {
    ...warning,
    message: "name servers of {zone} that don't answer: {servers}",
    fix: 'verification may fail if it queries one of them: have the DNS provider repair them',
  },
  resolver_differs: {
    ...warning,
    message: "the name servers have the record, but these resolvers don't show it: {resolvers}",
    fix: "nothing to do: verification doesn't use these resolvers",
  },
} as const satisfies Readonly<Record<string, Words>>

export type Code = keyof typeof WORDS

/** How bad a code's verdict is: less is worse. */
export const rankOf = (code: Code): number => VERDICTS.indexOf(WORDS[code].verdict)

/** Whether the record can't be used, or nobody knows, for as long as this is so; what passes by itself is a warning. */
export const severityOf = (code: Code): Severity =>
  ['fix', 'unknown'].includes(WORDS[code].verdict) ? 'error' : 'warning'

/** The words that a fact of the kind `words` stands for. */
const REASONS = {
  no_key: 'the registry has a DS record, but the zone has no key',
  wrong_ds: "the DS record at the registry matches none of the zone's keys",
  expired: 'the signatures have expired',
  rejected: 'a resolver rejects its signatures',
  answered: 'something on this network answers instead of the name servers of {name}',
  inside: 'this network has its own {name}, which others may not see',
  value_as_target: 'that was meant: its target is the value, so CNAME was chosen instead of TXT',
  other_target: 'and any address records, or add it at the target if that is yours',
} as const

/** A name server, as a fact of a finding. */
export interface ServerFact {
  readonly host: string
  readonly address: string | null
  readonly [detail: string]: string | number | null
}

export type Fact = string | number | null | ServerFact | readonly Fact[]
/** The facts of a finding: the evidence of the JSON report, and what its words have in braces. */
export type Facts = Readonly<Record<string, Fact>>

/** A fact in a text: it may hold anything, and each format quotes it differently. */
export interface Value {
  readonly value: string
  /** TXT values are: spaces at their ends count. Those that end a fix aren't, so that they are easy to copy. */
  readonly isQuoted?: boolean
}
/** A sentence with its facts kept apart. */
export type Text = readonly (string | Value)[]

/** In characters. Real values have fewer than a hundred, and nobody reads a message with 64 kilobytes in it. */
const LONGEST_VALUE = 300
/** Facts of a list that a message names, and name servers; the evidence has all of them. */
const MOST_LISTED = 6
const MOST_SERVERS = 2

/** How a fact is shown: in seconds, as a TXT value in quotation marks, as words of our own; or as it is. */
type Kind = 'duration' | 'quoted' | 'words' | undefined

/** The words with the facts in place of the names in braces. */
export function textOf(words: string, facts: Facts): Text {
  return words.split(/\[([^\]]*)\]/).flatMap((part, index) => {
    const isThere = index % 2 === 0 || namesIn(part).every((name) => (facts[name] ?? null) !== null)
    return isThere ? partText(part, facts) : []
  })
}

const BRACES = /\{(\w+)(?::(\w+))?\}/

const namesIn = (part: string) => [...part.matchAll(new RegExp(BRACES, 'g'))].map(([, name = '']) => name)

/** A text without brackets: every third piece is a name, followed by its kind. */
function partText(part: string, facts: Facts): Text {
  const pieces = part.split(BRACES)
  return pieces.flatMap((piece, index) => {
    if (index % 3 === 0) return [piece]
    return index % 3 === 1 ? factText(facts[piece] ?? null, pieces[index + 1] as Kind, facts) : []
  })
}

function factText(fact: Fact, kind: Kind, facts: Facts): Text {
  if (kind === 'duration') return [formatDuration(Number(fact))]
  if (kind === 'words') return partText(REASONS[fact as keyof typeof REASONS], facts)
  if (fact === null || typeof fact !== 'object') {
    const value = shorten(String(fact ?? 'unknown'))
    return [{ value, isQuoted: kind === 'quoted' && !value.startsWith('"') }]
  }
  if (!isList(fact)) return [{ value: fact.address === null ? fact.host : `${fact.host} (${fact.address})` }]
  if (fact.length === 0) return ['none']
  const all = eachHostOnce(fact)
  const most = fact.some(isServer) ? MOST_SERVERS : MOST_LISTED
  const listed = all.slice(0, most).flatMap((one) => [', ', ...factText(one, kind, facts)])
  return [...listed.slice(1), ...(all.length > most ? [` and ${all.length - most} more`] : [])]
}

const isList = (fact: ServerFact | readonly Fact[]): fact is readonly Fact[] => Array.isArray(fact)
const isServer = (fact: Fact): fact is ServerFact =>
  fact !== null && typeof fact === 'object' && !isList(fact)

/** The host alone if it is listed at several addresses. */
function eachHostOnce(facts: readonly Fact[]): readonly Fact[] {
  const hosts = facts.map((fact) => (isServer(fact) ? fact.host : null))
  return facts.flatMap((fact, index) => {
    const host = hosts[index] ?? null
    if (host === null || hosts.indexOf(host) === hosts.lastIndexOf(host)) return [fact]
    return hosts.indexOf(host) === index ? [host] : []
  })
}

/** The text on one line, for terminals, scripts and errors. */
export const plainText = (text: Text): string =>
  text
    .map((part) => (typeof part === 'string' ? part : part.isQuoted ? `"${part.value}"` : part.value))
    .join('')

/** The text with a capital letter in front, if it begins with words of our own. */
export function sentence([first = '', ...rest]: Text): Text {
  return typeof first === 'string' ? [capitalize(first), ...rest] : [first, ...rest]
}

/** Facts keep their case: `example.com` stays, whatever is in front of it. */
export const capitalize = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

/** The beginning of a text that is too long to read. */
export function shorten(text: string, length = LONGEST_VALUE): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}
