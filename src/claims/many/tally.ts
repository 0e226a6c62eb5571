import { dnsHostsOf } from '../../dns/diagnosis/dns-hosts.ts'
import { registeredDomainOf } from '../../dns/resolution/registry.ts'
import { type CliError, EXIT_ORDER, Exit, type ExitCode, type UnusableLine } from '../../errors.ts'

/** How the work on one domain ended. */
export interface Done {
  /** What is counted: a verdict, a status. */
  readonly label: string
  /** What programs get. */
  readonly item: object
  /** What `--format zone`, `value` and `--provider` print instead. */
  readonly text?: string
  /** Why it isn't done, as the command for this domain alone would end. */
  readonly error?: CliError | undefined
  /** Why, where something better than the error says it. */
  readonly cause?: Cause | undefined
  /** Whether somebody has to do something: not if waiting is enough. */
  readonly needsPerson?: boolean
  /** A problem beside it. */
  readonly warning?: string | undefined
}

/** Why a domain isn't done, and what to do. */
export interface Cause {
  readonly code: string
  readonly message: string
  readonly fix: string | undefined
  /** Name servers of the domain. */
  readonly hosts?: readonly string[]
  /** What differs from domain to domain in the texts, by the word that stands for it. */
  readonly particulars?: Readonly<Record<string, string | null | undefined>>
}

/** Domains with the same cause at the same DNS host. */
export interface CauseCount {
  readonly code: string
  readonly title: string
  /** Whoever hosts the DNS of these domains; undefined if the cause has nothing to do with it. */
  readonly host: string | undefined
  /** In the words of one of the domains, with what is particular to it replaced by a word. */
  readonly message: string
  readonly fix: string | undefined
  readonly needsPerson: boolean
  /** The first ones. */
  readonly names: readonly string[]
  readonly count: number
}

/** What is known of a run while it goes on; its size doesn't grow with the number of domains. */
export interface Tally {
  /** Whose work has begun. */
  readonly begun: number
  readonly done: number
  readonly failed: number
  /** Of those: which can still end well, without anything but another try. */
  readonly unfinished: number
  /** Of those: whose claim ended unsuccessfully, and was not replaced by another. */
  readonly ended: number
  readonly repeated: number
  readonly problems: number
  /** The first ones. */
  readonly firstProblems: readonly string[]
  /** By label, in the order in which they came. */
  readonly counts: ReadonlyMap<string, number>
  /** The latest domains that need a person. */
  readonly needy: readonly { readonly domain: string; readonly title: string }[]
  /** The most severe exit code so far; 0 if all are done. */
  readonly exit: ExitCode
  /** The most frequent first. */
  causes(): readonly CauseCount[]
}

const MAX_CAUSES = 500
const MAX_NAMES = 100
const MAX_NEEDY = 3
/** In texts for people … */
const MAX_PROBLEMS = 3
/** … and for programs. */
const MAX_UNUSABLE = 1000

export class RunTally implements Tally {
  begun = 0
  done = 0
  failed = 0
  unfinished = 0
  ended = 0
  repeated = 0
  problems = 0
  exit: ExitCode = Exit.done
  readonly unusable: UnusableLine[] = []
  readonly counts = new Map<string, number>()
  readonly needy: { domain: string; title: string }[] = []
  readonly #causes = new Map<
    string,
    { -readonly [Key in keyof CauseCount]: CauseCount[Key] } & { names: string[] }
  >()

  add(
    domain: string,
    { label, error, cause = causeOf(error), needsPerson = error !== undefined }: Done,
  ): void {
    this.done += 1
    this.counts.set(label, (this.counts.get(label) ?? 0) + 1)
    if (error !== undefined) {
      this.failed += 1
      if (error.exit === Exit.notYet || error.exit === Exit.unavailable) this.unfinished += 1
      const isOver = error.exit === Exit.negativeEnd
      if (isOver && !['claim_blocked', 'claim_superseded'].includes(error.code)) this.ended += 1
      this.#raise(error.exit)
    }
    if (cause === undefined) return
    const title = titleOf(cause.code)
    if (needsPerson) {
      this.needy.push({ domain, title })
      if (this.needy.length > MAX_NEEDY) this.needy.shift()
    }
    const host = cause.hosts === undefined ? undefined : hostOf(cause.hosts)
    const key = `${cause.code} ${host ?? ''}`
    const known = this.#causes.get(key)
    if (known !== undefined) {
      known.count += 1
      if (known.names.length < MAX_NAMES) known.names.push(domain)
    } else if (this.#causes.size < MAX_CAUSES) {
      const particulars = { DOMAIN: domain, ...cause.particulars }
      const general = (text: string) => generalize(text, particulars)
      const { code, message, fix } = cause
      const texts = { message: general(message), fix: fix === undefined ? undefined : general(fix) }
      this.#causes.set(key, { code, title, host, ...texts, needsPerson, names: [domain], count: 1 })
    }
  }

  get firstProblems(): readonly string[] {
    return this.unusable.slice(0, MAX_PROBLEMS).map(problemText)
  }

  problem(problem: UnusableLine): void {
    this.problems += 1
    if (this.unusable.length < MAX_UNUSABLE) this.unusable.push(problem)
    this.#raise(Exit.usage)
  }

  causes(): readonly CauseCount[] {
    return [...this.#causes.values()].sort((one, other) => other.count - one.count)
  }

  #raise(exit: ExitCode): void {
    this.exit = EXIT_ORDER.find((code) => code === exit || code === this.exit) ?? exit
  }
}

/** `FILE:LINE: why` */
export function problemText({ where, why }: UnusableLine): string {
  return where === undefined ? why : `${where}: ${why}`
}

function causeOf(error: CliError | undefined): Cause | undefined {
  return error && { code: error.code, message: error.message, fix: error.hint }
}

/** A text about one domain as it goes for others too. The longest particulars first: one may be a part of another. */
function generalize(text: string, particulars: NonNullable<Cause['particulars']>): string {
  const values = Object.entries(particulars).flatMap(([word, value]) => (value ? [{ word, value }] : []))
  values.sort((one, other) => other.value.length - one.value.length)
  // In one pass, so that no word that was put in is taken for a particular.
  const pattern = values.map(({ value }) => value.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')
  return text.replaceAll(
    new RegExp(pattern, 'gi'),
    (found) => values.find(({ value }) => value.toLowerCase() === found.toLowerCase())?.word ?? found,
  )
}

/** Where the words of the code alone would mislead. */
const TITLES: Readonly<Record<string, string>> = {
  missing: 'record missing',
  other_name: 'record at another name',
  doubled_name: 'zone name doubled',
  quoted: 'quotation marks in the value',
  whitespace: 'spaces in the value',
  extra_text: 'more text in the value',
  case_changed: 'letter case changed',
  encoded: 'value encoded',
  swapped: 'halves of the value swapped',
  token_only: 'prefix of the value missing',
  prefix_only: 'token of the value missing',
  truncated: 'value cut off',
  placeholder: 'placeholder in the value',
  stale_token: 'value of another claim',
  pasted_line: 'zone file line in the value',
  nameserver_unreachable: 'name server unreachable',
  lame_nameserver: 'name server without the zone',
  partial_propagation: 'not at all name servers yet',
  claim_in_flight: 'still in progress',
}

/** A few words for a cause, from its code. */
export function titleOf(code: string): string {
  if (Object.hasOwn(TITLES, code)) return TITLES[code] ?? code
  return code
    .replaceAll('_', ' ')
    .replaceAll(/\b(?:cname|txt|dns|dnssec|tcp|udp|edns)\b/g, (word) => word.toUpperCase())
}

/** Who hosts these name servers: the provider's name if it's known, else what the hosts have in common. */
export function hostOf(hosts: readonly string[]): string | undefined {
  const [known] = dnsHostsOf('', hosts)
  if (known !== undefined) return known.name
  const domains = [...new Set(hosts.map((host) => registeredDomainOf(host)))].sort()
  const [domain, ...others] = domains
  if (domain === undefined) return undefined
  if (others.length > 0)
    return domains
      .slice(0, 2)
      .map((each) => `*.${each}`)
      .join(', ')
  const labels = new Set(hosts.map((host) => host.slice(0, -domain.length).replace(/\d+/g, '*')))
  const [label] = labels
  return labels.size === 1 && label ? `${label}${domain}` : `*.${domain}`
}
