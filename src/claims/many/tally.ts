import { dnsHostOf } from '../../dns/hosts.ts'
import { registeredDomainOf } from '../../dns/resolution/registry.ts'
import { shorten } from '../../dns/words.ts'
import { CliError, EXIT_ORDER, Exit, type ExitCode, type UnusableLine } from '../../errors.ts'
import { generalize, type Particulars } from './general-text.ts'

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
  /** Why, where something better than the error says it; what to do first comes first. */
  readonly causes?: readonly Cause[]
  /** Whether somebody has to do something: not if waiting is enough. */
  readonly needsPerson?: boolean
  /** A problem beside it. */
  readonly warning?: string | undefined
}

/** Why a domain isn't done, and what to do, in words that go for others too (`generalize`). */
export interface Cause {
  readonly code: string
  readonly message: string
  /** Whether the message says more than the code: each other one is then another cause. */
  readonly isSaid?: boolean
  readonly fix: string | undefined
  /** Name servers of the domain, if the cause has to do with them. */
  readonly hosts?: readonly string[] | undefined
  /** What the words in these texts stand for. */
  readonly particulars?: Particulars
  /** The message about this domain; the general one if absent. */
  readonly own?: string
}

/** How far the work on a domain is that isn't done. */
export interface Progress {
  /** What the work does now: "waiting for DNS". */
  readonly step: string
  /** Why it waits, as far as is known. */
  readonly causes?: readonly Cause[]
  readonly needsPerson?: boolean
}

/** The step before a claim is created, or known to be there. */
export const STARTING = 'starting'
export const WAITING_FOR_DNS = 'waiting for DNS'
export const ASKING = 'asking the service'
export const CHECKING_DNS = 'checking DNS'
export const VERIFYING = 'verifying'

/** Domains with the same cause and the same fix at the same DNS host. */
export interface CauseCount {
  readonly title: string
  /** Whoever hosts the DNS of these domains; undefined if the cause has nothing to do with it. */
  readonly host: string | undefined
  /** Undefined if it differs from domain to domain. */
  readonly message: string | undefined
  /** The first line of the first message, where that says more than the title. */
  readonly said: string | undefined
  readonly fix: string | undefined
  readonly needsPerson: boolean
  /** The first ones. */
  readonly names: readonly string[]
  readonly count: number
}

/** The same with what its words stand for, for each of its domains. */
export interface CauseReport extends CauseCount {
  readonly members: readonly {
    readonly name: string
    readonly particulars: Particulars
    /** The message about this domain. */
    readonly said: string | undefined
  }[]
}

/** Domains that are done. */
export interface DoneReport {
  /** What they are counted as. */
  readonly label: string
  readonly names: readonly string[]
}

/** What is known of a run while it goes on; unless it's for a report, its size doesn't grow with the number of domains. */
export interface Tally {
  readonly done: number
  readonly failed: number
  /** Of those: which can still end well, without anything but another try. */
  readonly unfinished: number
  /** Of those: whose claim ended unsuccessfully or is gone, and was not replaced by another. */
  readonly ended: number
  readonly repeated: number
  readonly problems: number
  /** The first ones. */
  readonly firstProblems: readonly string[]
  /** By label, in the order in which they came. */
  readonly counts: ReadonlyMap<string, number>
  /** How many domains in progress are at which step, in the order in which the steps came. */
  readonly steps: ReadonlyMap<string, number>
  /** How many domains, done or in progress, need a person; each of them may have several causes. */
  readonly needing: number
  /** The latest domains that are done and need a person. */
  readonly needy: readonly { readonly domain: string; readonly title: string }[]
  /** The most severe exit code so far; 0 if all are done. */
  readonly exit: ExitCode
  /** The most frequent first, with what is known of the domains in progress. */
  causes(): readonly CauseCount[]
  /** For a report of all domains: in the order of the list, whichever ended first. */
  causesInOrder(): readonly CauseReport[]
  /** For such a report: the domains that are done, whether or not there is a warning. */
  doneInOrder(): readonly DoneReport[]
}

/** Ends the title of a cause that doesn't keep its domains from being done. */
const WARNING = ' (warning)'
export const isWarning = ({ title }: Pick<CauseCount, 'title'>): boolean => title.endsWith(WARNING)

const MAX_CAUSES = 500
const MAX_NAMES = 100
/** Characters of the message about a domain. */
const LONGEST_SAID = 1000
/** Characters of what was found instead of a value; anybody may have written it. */
const LONGEST_FOUND = 300
const MAX_NEEDY = 3
/** In texts for people … */
const MAX_PROBLEMS = 3
/** … and for programs. */
const MAX_UNUSABLE = 1000

export class RunTally implements Tally {
  done = 0
  failed = 0
  unfinished = 0
  ended = 0
  repeated = 0
  problems = 0
  needing = 0
  exit: ExitCode = Exit.done
  readonly unusable: UnusableLine[] = []
  readonly counts = new Map<string, number>()
  readonly needy: { domain: string; title: string }[] = []
  readonly steps = new Map<string, number>()
  /** By domain, for a report. */
  readonly #places: Map<string, number> | undefined
  readonly #doneNames = new Map<string, string[]>()
  readonly #done: CauseGroups
  readonly #inProgress: CauseGroups
  readonly #progress = new Map<
    string,
    { step: string; needsPerson: boolean; groups: readonly (string | undefined)[] }
  >()

  /** @param isWhole whether all domains of each cause are kept, for a report */
  constructor({ isWhole = false } = {}) {
    this.#places = isWhole ? new Map() : undefined
    this.#done = new CauseGroups(isWhole)
    this.#inProgress = new CauseGroups(isWhole)
  }

  /** The work on a domain begins, in the order of the list. */
  begin(domain: string): void {
    this.#places?.set(domain, this.#places.size)
  }

  /** What the work on a domain does now, and why it isn't done yet. */
  progress(domain: string, { step, causes = [], needsPerson = false }: Progress): void {
    this.#forget(domain)
    const groups = causes.map((cause) => this.#inProgress.add(domain, cause, needsPerson, ' (so far)'))
    this.#progress.set(domain, { step, needsPerson, groups })
    if (needsPerson) this.needing += 1
    this.steps.set(step, (this.steps.get(step) ?? 0) + 1)
  }

  add(
    domain: string,
    {
      label,
      error,
      causes = error ? [causeOf(error, { DOMAIN: domain, ...error.particulars })] : [],
      needsPerson = error !== undefined,
    }: Done,
  ): void {
    this.#forget(domain)
    this.done += 1
    this.counts.set(label, (this.counts.get(label) ?? 0) + 1)
    if (error !== undefined) {
      this.failed += 1
      if (error.exit === Exit.notYet || error.exit === Exit.unavailable) this.unfinished += 1
      // The error of a claim that is gone has the service's answer as its cause; any other 404 is the answer itself.
      const isGone = error.exit === Exit.notFound && error.cause instanceof CliError
      const isOver = error.exit === Exit.negativeEnd || isGone
      if (isOver && !['claim_blocked', 'claim_superseded'].includes(error.code)) this.ended += 1
      this.#raise(error.exit)
    }
    if (error === undefined && this.#places !== undefined) pushTo(this.#doneNames, label, domain)
    const [first] = causes
    if (first === undefined) return
    const remark = error === undefined ? WARNING : ''
    for (const cause of causes) this.#done.add(domain, cause, needsPerson, remark)
    if (!needsPerson) return
    this.needing += 1
    this.needy.push({ domain, title: titleOf(first.code) })
    if (this.needy.length > MAX_NEEDY) this.needy.shift()
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
    return [...this.#done.all(), ...this.#inProgress.all()].sort((one, other) => other.count - one.count)
  }

  causesInOrder(): readonly CauseReport[] {
    return [...this.#done.all(), ...this.#inProgress.all()]
      .map((group) => {
        const names = this.#inOrder(group.names)
        const members = names.map((name) => {
          const { particulars = {}, said } = group.members.get(name) ?? {}
          return { name, particulars, said }
        })
        return { ...group, names, members }
      })
      .sort(
        (one, other) => other.count - one.count || this.#place(one.names[0]) - this.#place(other.names[0]),
      )
  }

  doneInOrder(): readonly DoneReport[] {
    return [...this.#doneNames]
      .map(([label, names]) => ({ label, names: this.#inOrder(names) }))
      .sort((one, other) => this.#place(one.names[0]) - this.#place(other.names[0]))
  }

  #place(domain: string | undefined): number {
    return this.#places?.get(domain ?? '') ?? 0
  }

  #inOrder(domains: readonly string[]): string[] {
    return domains.toSorted((one, other) => this.#place(one) - this.#place(other))
  }

  #forget(domain: string): void {
    const known = this.#progress.get(domain)
    if (known === undefined) return
    this.#progress.delete(domain)
    this.steps.set(known.step, (this.steps.get(known.step) ?? 0) - 1)
    if (known.needsPerson) this.needing -= 1
    for (const group of known.groups) if (group !== undefined) this.#inProgress.remove(domain, group)
  }

  #raise(exit: ExitCode): void {
    this.exit = EXIT_ORDER.find((code) => code === exit || code === this.exit) ?? exit
  }
}

function shortened(found: string | null | undefined): string | undefined {
  if (!found || found.length <= LONGEST_FOUND) return found ?? undefined
  return `${found.slice(0, LONGEST_FOUND)}…`
}

/** `FILE:LINE: why` */
export function problemText({ where, why }: UnusableLine): string {
  return where === undefined ? why : `${where}: ${why}`
}

function pushTo(lists: Map<string, string[]>, key: string, item: string): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}

/** Domains with the same cause, as they come. */
type CauseGroup = { -readonly [Key in keyof CauseCount]: CauseCount[Key] } & {
  names: string[]
  /** What is known of each domain, for a report. */
  readonly members: Map<string, { readonly particulars: Particulars; readonly said: string }>
}

/** Domains by what is wrong and what to do about it. */
class CauseGroups {
  readonly #groups = new Map<string, CauseGroup>()
  readonly #isWhole: boolean
  readonly #maxNames: number

  constructor(isWhole: boolean) {
    this.#isWhole = isWhole
    this.#maxNames = isWhole ? Number.POSITIVE_INFINITY : MAX_NAMES
  }

  /** @returns the key of the group that the domain is in now; undefined if there are too many groups for it */
  add(
    domain: string,
    { code, message, isSaid = false, fix, hosts, particulars = {}, own = message }: Cause,
    needsPerson: boolean,
    remark: string,
  ): string | undefined {
    const title = `${titleOf(code)}${remark}`
    const host = hosts && hostOf(hosts)
    const said = isSaid ? firstLine(message) : undefined
    const exact = JSON.stringify([code, remark, host, said?.replaceAll(REQUEST_ID, 'ID'), firstLine(fix)])
    const isKept = this.#groups.has(exact) || this.#groups.size < MAX_CAUSES
    const key = isKept ? exact : JSON.stringify([code, remark])
    let group = this.#groups.get(key)
    if (group === undefined) {
      if (this.#groups.size >= 2 * MAX_CAUSES) return undefined
      const kept = isKept ? { host, said } : { host: undefined, said: undefined }
      group = { title, ...kept, message, fix, needsPerson, names: [], members: new Map(), count: 0 }
      this.#groups.set(key, group)
    }
    group.count += 1
    if (group.names.length < this.#maxNames) group.names.push(domain)
    if (this.#isWhole) {
      const FOUND = shortened(particulars['FOUND'])
      group.members.set(domain, { particulars: { ...particulars, FOUND }, said: shorten(own, LONGEST_SAID) })
    }
    if (!isKept || group.message !== message) group.message = undefined
    if (!isKept || group.fix !== fix) group.fix = isKept ? firstLine(fix) : DIFFERENT_FIXES
    group.needsPerson ||= needsPerson
    return key
  }

  remove(domain: string, key: string): void {
    const group = this.#groups.get(key)
    if (group === undefined) return
    group.count -= 1
    group.names = group.names.filter((name) => name !== domain)
    group.members.delete(domain)
    if (group.count === 0) this.#groups.delete(key)
  }

  all(): Iterable<CauseGroup> {
    return this.#groups.values()
  }
}

/** What differs from answer to answer of a service: a UUID, or a long number or hexadecimal id. */
const REQUEST_ID =
  /(?<![\da-z])(?:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|(?=[a-f]*\d)[\da-f]{12,}|\d{8,}|(?<=_)(?=[a-z]*\d)[\da-z]{8,}|\d{4}-\d\d-\d\dT[\d:.]+Z?)(?![\da-z])/gi

export function firstLine(text: string | undefined): string | undefined {
  return text?.split('\n', 1)[0]
}

const DIFFERENT_FIXES = 'They differ: --format jsonl has the one of each domain'

/** An error as the cause of a domain that isn't done. */
export function causeOf(
  { code, exit, message, hint, status = 0 }: CliError,
  particulars: Particulars,
): Cause {
  // What the service calls a refusal may be anything. The state of a claim is in the title, and each request fails in its
  // own way while the service can't be reached.
  const isAnswered = exit === Exit.refused || status > 0 || code.startsWith('publish_')
  const isSaid = isAnswered || !(exit === Exit.unavailable || code.startsWith('claim_'))
  return {
    code: exit === Exit.unavailable && status >= 500 ? `${code}: ${status}` : code,
    message: generalize(message, particulars),
    isSaid,
    fix: hint === undefined ? undefined : generalize(hint, particulars),
  }
}

/** Where the words of the code alone would mislead. */
const TITLES: Readonly<Record<string, string>> = {
  missing: 'record missing',
  other_name: 'record at another name',
  doubled_name: 'zone name doubled',
  quoted: 'quotation marks in the value',
  whitespace: 'value differs in invisible characters',
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
  lame_nameserver: "name server doesn't serve the zone",
  partial_propagation: 'not at all name servers yet',
  claim_in_flight: 'still in progress',
  not_found: 'claim not found',
  usage: 'wrong usage',
  unreachable: 'service unreachable',
  record_missing: 'claim without a record',
}

/** A few words for a cause, from its code. */
export function titleOf(code: string): string {
  // Behind a colon is a reason.
  const [base = '', ...reason] = code.split(': ')
  if (Object.hasOwn(TITLES, base)) return [TITLES[base], ...reason.map(wordsOf)].join(': ')
  return wordsOf(code)
}

function wordsOf(code: string): string {
  return code
    .replaceAll('_', ' ')
    .replaceAll(/\b(?:cname|txt|dns|dnssec|tcp|udp|edns)\b/g, (word) => word.toUpperCase())
}

/** Who hosts these name servers: the provider's name if it's known, else what the hosts have in common. */
export function hostOf(hosts: readonly string[]): string | undefined {
  const known = dnsHostOf(hosts)
  if (known !== null) return known
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
