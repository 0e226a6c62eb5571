import { domainToUnicode } from 'node:url'
import { formatDuration } from '../terminal/time.ts'

/** Verdict of a check, as in the JSON report. With `ready` and `ready_with_warning`, the report's `ready` is true. */
export type CheckVerdict = 'ready' | 'ready_with_warning' | 'wait' | 'fix' | 'unknown'
/** Severity of a finding, as in the JSON report. */
export type FindingSeverity = 'error' | 'warning'

/**
 * Templates of a finding code. `{fact}` or `{fact:kind}` stands for a fact of the finding; a part in brackets is left out if one of
 * its facts is null or undefined.
 */
interface Templates {
  /** Template of the message: the problem, in one line that starts in lowercase and ends without a full stop. */
  readonly message: string
  /** Template of the fix: an instruction to the user, in one line that starts in lowercase and ends without a full stop. */
  readonly fix: string
}
type Table = Readonly<Record<string, Templates>>

/** Part of a fix: the zone of the record, if known. */
const ZONE = '[ in the zone {zone:name}]'
/** Fix for a TXT record with a damaged value. */
const CORRECT = `correct the value of that record[ on {copies}], at the host {host}${ZONE}: {expected}`
/** Part of the fix for a record at a wrong name: the expected value, if the record has a faulty copy of it. */
const VALUE = '[, and as its value {value}]'
/**
 * Part of the messages which say that no name server gave a usable answer: the TXT values at resolvers that answered, and how long
 * caches keep them.
 */
const AT_RESOLVERS = '[; TXT values at {resolvers}: {values:quoted}][, kept for {seconds:duration}]'

/** Texts of findings about mistakes in DNS, which a user has to fix (verdict `fix`). */
const MISTAKES = {
  domain_not_found: {
    message: "the domain {domain:name} isn't in DNS: its registry has no name servers for it",
    fix: 'check the spelling of {domain:name}, whether it is registered, and its name servers at the registrar',
  },
  no_nameservers: {
    message: 'none of the name servers of {zone:name} has an address: {hosts}',
    fix: 'correct their names {holder:place}, or add the address records that are missing',
  },
  missing: {
    message: "the TXT record isn't at {name:name}; TXT values there: {values:count}[; {owner} manages them]",
    fix: '{use:remedy}',
  },
  doubled_name: {
    message:
      'a TXT record is at {found_at:name}: the DNS provider added the zone to a name that had it: {values:quoted}',
    fix: `enter {host} as the record's host${VALUE}; the provider adds {zone:name} to it`,
  },
  other_name: {
    message: 'a TXT record is at {found_at:name} instead of {name:name}: {values:quoted}',
    fix: `enter {host} as the record's host${ZONE}${VALUE}`,
  },
  cname_at_name: {
    message: "{name:name} is an alias (CNAME) for {target}, and can't have a TXT record of its own",
    fix: 'replace the CNAME with the TXT record {reason:remedy}',
  },
  wildcard_answer: {
    message: '{name:name} has no record of its own; a wildcard answers for it[: {values:quoted}]',
    fix: '{use:remedy}',
  },
  quoted: {
    message: 'the stored value has quotation marks or backslashes in it: {seen:quoted}',
    fix: 'enter the value without quotation marks and backslashes; the DNS provider adds those that it needs',
  },
  whitespace: {
    message: 'the stored value differs in spaces or in characters that nobody sees: {seen:quoted}',
    fix: 'delete the value, and enter it again as plain text without spaces and line breaks',
  },
  case_changed: {
    message: 'the stored value differs in uppercase and lowercase letters: {seen:quoted}',
    fix: CORRECT,
  },
  truncated: { message: 'the stored value is cut off: {seen:quoted}', fix: CORRECT },
  extra_text: {
    message: 'the record holds more than the value: {seen:quoted}',
    fix: `put the value alone in a TXT record of its own, at the host {host}${ZONE}: {expected}`,
  },
  split_records: {
    message: 'the value is split over several TXT records: {seen:quoted}',
    fix: `enter the whole value in one TXT record, at the host {host}${ZONE}: {expected}`,
  },
  prefix_or_token_only: {
    message: 'the stored value is only what is before or after the equals sign: {seen:quoted}',
    fix: CORRECT,
  },
  characters_changed: {
    message: 'the stored value is almost right, but some of its characters differ: {seen:quoted}',
    fix: CORRECT,
  },
  stale_token: {
    message: "the record holds another claim's token: {seen:quoted}",
    fix: '{use:remedy}',
  },
  lame_nameserver: {
    message: "the name servers set for {zone:name} don't serve it: {servers}",
    fix: 'have the DNS provider[ {provider}] add or repair {zone:name} or, if the servers are of an earlier one, correct them {holder:place}',
  },
  parent_child_mismatch: {
    message: 'name servers of two versions of {zone:name} answer, and these lack the record: {servers}',
    fix: '{reason:remedy}',
  },
  dnssec_bogus: {
    message:
      "resolvers that check DNSSEC don't accept what {zone:name} says: {reason:words}[: {resolver_says}]",
    fix: '{reason:remedy}',
  },
} as const satisfies Table

/** Texts of findings that leave the state of the record unknown (verdict `unknown`). */
const UNKNOWNS = {
  given_value_cut: {
    message:
      'the given value is only a part of the one in DNS, {seen:quoted}: it was probably cut when copied',
    fix: 'check again with the whole value, as the claim has it',
  },
  nameserver_unreachable: {
    message: `{reason:words}${AT_RESOLVERS}`,
    fix: "check again from another network; if they don't answer there either, tell the DNS provider[ to open {closed}]",
  },
  dns_intercepted: {
    message: `{reason:words}${AT_RESOLVERS}`,
    fix: 'check from another network, or over HTTPS: --resolver https://dns.quad9.net/dns-query',
  },
  resolver_unreachable: {
    message: `the name servers of {name:name} weren't found; resolvers asked: {replies}${AT_RESOLVERS}`,
    fix: 'check the network of this machine, or ask over HTTPS: --resolver https://dns.quad9.net/dns-query',
  },
  limit_reached: {
    message: 'the check reached its limit of queries before a name server of {name:name} answered',
    fix: 'check {name} with https://zonemaster.net: it has unusually many name servers or delegations',
  },
} as const satisfies Table

/** Texts of findings that usually resolve with time (verdict `wait`). */
const WAITS = {
  partial_propagation: {
    message:
      'name servers that lack the record: {without}; that have it: {with}[; both have serial {serial}, so it may not come by itself]',
    fix: 'check again in {seconds:duration}; if it stays so for hours, add the record at their provider too',
  },
  cached: {
    message: 'the name servers are right, but resolvers still have what was there before: {resolvers}',
    fix: 'wait {seconds:duration}, then check again',
  },
} as const satisfies Table

/** Texts of findings with which the record still counts as visible (verdict `ready_with_warning`). */
const WARNINGS = {
  resolver_only: {
    message: 'from here, only resolvers show the record, and no name server: {resolvers}',
    fix: 'nothing to do: verification asks from another network',
  },
  some_servers_lame: {
    message: "name servers set for {zone:name} that don't serve it: {servers}",
    fix: 'have the DNS provider[ {provider}] add or repair {zone:name} there or, if they are of an earlier one, remove them {holder:place}',
  },
  some_servers_silent: {
    message: '{reason:words}: {servers}',
    fix: 'verification may fail if it queries one of them: {reason:remedy}',
  },
  resolver_differs: {
    message: "the name servers have the record, but these resolvers don't show it: {resolvers}",
    fix: "nothing to do: verification doesn't use these resolvers",
  },
} as const satisfies Table

/**
 * Message and fix templates of all finding codes. Add a code only after two real incidents; report a special case as a fact in the
 * evidence of an existing code.
 */
export const FINDING_TEXTS = { ...MISTAKES, ...UNKNOWNS, ...WAITS, ...WARNINGS } as const

/** Code of a finding in the JSON report, on which scripts rely. */
export type FindingCode = keyof typeof FINDING_TEXTS

/** Verdicts with the texts of the findings that cause them, in the order in which findings are sorted: the most severe first. */
const VERDICTS: readonly (readonly [verdict: CheckVerdict, texts: Table])[] = [
  ['fix', MISTAKES],
  ['unknown', UNKNOWNS],
  ['wait', WAITS],
  ['ready_with_warning', WARNINGS],
]

/** Returns the rank of the verdict that a code causes: 0 for `fix`, the most severe. */
export const verdictRankOf = (code: FindingCode): number => VERDICTS.findIndex(([, texts]) => code in texts)
/** Returns the verdict of a check that expects a value, and whose most severe finding has this code. */
export const verdictOf = (code: FindingCode): CheckVerdict => VERDICTS[verdictRankOf(code)]?.[0] ?? 'fix'
/** Returns the default severity of a code: `error` for the verdicts `fix` and `unknown`, otherwise `warning`. */
export const getDefaultSeverity = (code: FindingCode): FindingSeverity =>
  verdictRankOf(code) < 2 ? 'error' : 'warning'

/** Parts of messages, for placeholders of the kind `words` such as `{reason:words}`, by the value of the fact (here `reason`). */
const REASONS: Readonly<Record<string, string>> = {
  no_key: 'the registry has a DS record, but the zone has no key',
  wrong_ds: "the DS record at the registry matches none of the zone's keys",
  expired: 'the signatures have expired',
  rejected: 'a resolver rejects its signatures',
  unproven: "it isn't signed, and the zone above doesn't prove that",
  answered: 'something, probably on this network, answers instead of the name servers of {name:name}',
  inside: 'this network has its own {name:name}, which others may not see',
  silent: 'no name server answers for {name:name}',
  alias: '{alias_of:name} is an alias (CNAME) for {name:name}, for which no name server answers',
  not_asked: 'the name servers of {name:name} have no address that this network can reach',
  too_large: "the TXT records of {name:name} are too large for UDP, and TCP port 53 doesn't answer",
  no_txt: '{zone:name} has name servers that answer, but not for TXT records',
  dead: "name servers of {zone:name} that don't answer",
  no_address: 'name servers of {zone:name} that have no address',
}

/** Remedy for DS records that match no key of the zone. */
const CHANGE_DS =
  'first remove the DS record {holder:place}, or replace it with that of the present DNS provider'

/**
 * Texts that replace a placeholder such as `{use:remedy}` in a fix, by the value of the finding's fact (here `use`). Each is a
 * complete fix or the end of one.
 */
const REMEDIES: Readonly<Record<string, string>> = {
  active: `add a TXT record${ZONE}[ at {provider}][, in the panel with the name servers {in_charge}], beside any others: host {host}, value {expected}`,
  parked:
    'the domain is parked ({at}): renew it if it has expired, or set other name servers, at the registrar first',
  suspended:
    'the domain is suspended ({at}): renew it, or confirm its contact address, at the registrar first',
  value_as_target: 'that was meant: its target is the value, so CNAME was chosen instead of TXT',
  other_target: 'and any address records, or add it at the target if that is yours',
  beside: 'that is there beside it: a resolver that has cached the alias never sees that record',
  not_delegated: "remove {servers} from the NS records in the zone: they aren't set {holder:place}",
  delegated:
    'add the record there too or, if they are of an earlier provider, remove {servers} {holder:place}',
  no_key: CHANGE_DS,
  wrong_ds: CHANGE_DS,
  expired: 'have the DNS provider sign the zone again',
  rejected: 'have the DNS provider correct the signatures; https://dnsviz.net shows which are wrong',
  unproven: 'have whoever signs the zone above sign it again; https://dnsviz.net shows what is missing',
  too_large: 'have the DNS provider open TCP port 53, or remove TXT records that nobody needs',
  no_txt: 'have the DNS provider repair them',
  dead: 'have the DNS provider repair them',
  no_address: 'correct their names {holder:place}, or remove them there',
}

/** A name server in the evidence of a finding. */
export interface ServerEvidence {
  readonly host: string
  readonly address: string | null
  readonly [detail: string]: string | number | null
}

/** A fact of a finding, as a JSON value. */
export type FindingFact = string | number | null | ServerEvidence | readonly FindingFact[]
/** Facts of a finding by name: its `evidence` in the JSON report, with which its templates are filled. */
export type Evidence = Readonly<Record<string, FindingFact>>

/** A fact within a message or fix, as text. It may come from DNS or the user, so each output format has to escape it. */
export interface UnescapedFact {
  readonly value: string
  /**
   * Whether `toPlainText` puts quotation marks around `value`, so that spaces at its ends are visible: true for most TXT values
   * in messages.
   */
  readonly isQuoted?: boolean
}
/** Pieces of a finding's message or fix: strings (our words, durations, counts) and facts, which each output format escapes. */
export type RichText = readonly (string | UnescapedFact)[]

/**
 * Default maximum of `shorten`, in characters. Verification values usually have fewer than a hundred, but a hostile server can send
 * 64 KB.
 */
const MAX_VALUE_LENGTH = 300
/** Maximum number of items that a message shows of a list in a finding's facts; the finding's evidence has all items. */
const MAX_LISTED = 6
/** Maximum number of TXT values, or of name servers with addresses (`ServerEvidence`), that a message lists for one placeholder. */
const MAX_LONG_LISTED = 2

/**
 * Fills facts into a template: a message or fix of `FINDING_TEXTS`, a reason or a remedy.
 *
 * @throws Error for a placeholder outside of brackets without a fact, and for a fact of the kind `words` or `remedy` that isn't a
 *   key of `REASONS` or `REMEDIES`
 */
export function fillTemplate(template: string, facts: Evidence): RichText {
  return template.split(/\[([^\]]*)\]/).flatMap((part, index) => {
    // The split alternates plain text, fact name and kind, so every third piece from the second on is a fact's name.
    const pieces = part.split(/\{(\w+)(?::(\w+))?\}/)
    const isOptional = index % 2 === 1
    if (isOptional && pieces.some((piece, at) => at % 3 === 1 && (facts[piece] ?? null) === null)) return []
    return pieces.flatMap((piece, at) => {
      if (at % 3 !== 1) return at % 3 === 2 || piece === '' ? [] : [piece]
      const fact = facts[piece]
      if (fact === undefined) throw new Error(`no {${piece}} for: ${template}`)
      return formatFact(fact, pieces[at + 1], facts)
    })
  })
}

/**
 * Formats a fact by its kind: `duration` (from seconds), `quoted` (TXT values), `count` (of a list), `name` (domain name), `place`
 * (zone that holds a delegation; null for the registrar), `words` or `remedy` (key of `REASONS` or `REMEDIES`). Without a kind,
 * null becomes `unknown`.
 */
function formatFact(fact: FindingFact, kind: string | undefined, facts: Evidence): RichText {
  if (kind === 'duration') return [formatDuration(Number(fact))]
  // If the fact isn't a key of `REASONS` or `REMEDIES`, use a template whose placeholder has no fact: `fillTemplate` throws.
  if (kind === 'words') return fillTemplate(REASONS[String(fact)] ?? `{${fact}}`, facts)
  if (kind === 'remedy') return fillTemplate(REMEDIES[String(fact)] ?? `{${fact}}`, facts)
  if (kind === 'place')
    return fact === null ? ['at the registrar'] : ['in the zone ', { value: String(fact) }]
  if (kind === 'name' && typeof fact === 'string') return [{ value: shorten(formatName(fact)) }]
  if (fact === null || typeof fact !== 'object') {
    const value = shorten(String(fact ?? 'unknown'))
    return [{ value, isQuoted: kind === 'quoted' && !value.startsWith('"') }]
  }
  if (!isList(fact)) return [{ value: fact.address === null ? fact.host : `${fact.host} (${fact.address})` }]
  if (fact.length === 0) return ['none']
  if (kind === 'count') return [String(fact.length)]
  const all = mergeAddresses(fact)
  const most = kind === 'quoted' || fact.some(isServer) ? MAX_LONG_LISTED : MAX_LISTED
  const listed = all.slice(0, most).flatMap((one) => [', ', ...formatFact(one, kind, facts)])
  return [...listed.slice(1), ...(all.length > most ? [` and ${all.length - most} more`] : [])]
}

const isList = (fact: ServerEvidence | readonly FindingFact[]): fact is readonly FindingFact[] =>
  Array.isArray(fact)
const isServer = (fact: FindingFact): fact is ServerEvidence =>
  fact !== null && typeof fact === 'object' && !isList(fact)

/** Replaces, in a list of facts, the entries of a name server with several addresses by one entry, its host name. */
function mergeAddresses(facts: readonly FindingFact[]): readonly FindingFact[] {
  const hosts = facts.flatMap((fact) => (isServer(fact) ? fact.host : []))
  const isRepeated = (host: string) => hosts.indexOf(host) !== hosts.lastIndexOf(host)
  return [...new Set(facts.map((fact) => (isServer(fact) && isRepeated(fact.host) ? fact.host : fact)))]
}

/** Joins the pieces of a text for terminals, JSON and errors. Facts aren't escaped. */
export const toPlainText = (text: RichText): string =>
  text
    .map((part) => (typeof part === 'string' ? part : part.isQuoted ? `"${part.value}"` : part.value))
    .join('')

/** Capitalizes the first letter of a text, unless the text starts with a fact such as a domain name. */
export function capitalizeText([first = '', ...rest]: RichText): RichText {
  return typeof first === 'string' ? [capitalize(first), ...rest] : [first, ...rest]
}

export const capitalize = (words: string): string => words.charAt(0).toUpperCase() + words.slice(1)

/** Cuts a text that is longer than `length` characters to that length, including the ellipsis at its end. */
export function shorten(text: string, length = MAX_VALUE_LENGTH): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text
}

/**
 * Matches a label whose letters are all Latin, or all East Asian, Thai or Devanagari, and which is shown in Unicode: users hardly
 * confuse these scripts.
 */
const PLAIN_LABEL =
  /^(?:[a-z\d\u00df-\u024f_*-]+|[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Deva}ー\d-]+)$/u
/**
 * Matches a name that is entirely in Cyrillic or entirely in Greek letters, top-level domain included, and so is shown in U-labels.
 * Below a Latin top-level domain, such labels could be homographs of Latin labels.
 */
const ONE_SCRIPT = /^(?:[\p{sc=Cyrl}\d.-]+|[\p{sc=Grek}\d.-]+)$/u

/** Formats a name in U-labels (RFC 5890 section 2.3.2.1), or in A-labels if it might be a homograph of another name. */
function formatName(name: string): string {
  const unicode = domainToUnicode(name)
  const isPlain = ONE_SCRIPT.test(unicode) || unicode.split('.').every((label) => PLAIN_LABEL.test(label))
  return isPlain ? unicode : name
}
