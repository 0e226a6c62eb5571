import type { ManyWork } from '../../claims/many/run-many.ts'
import type { OptionColumn } from '../../claims/many/subjects.ts'
import { noOpenClaims, openClaims } from '../../claims/resolve.ts'
import type { Context } from '../../context.ts'
import { CliError, Exit, usageError } from '../../errors.ts'
import { parseChoice, parseCount } from '../../settings/parse-value.ts'
import type { Settings } from '../../settings/settings.ts'
import { note } from '../../terminal/notices.ts'
import type { OptionDefinition } from '../definition.ts'

export interface ManyFlags {
  readonly from?: string
  readonly all?: true
  readonly jobs?: number
  readonly failFast?: true
}

const DEFAULT_JOBS = 16
const MAX_JOBS = 500

const FROM_FLAG = '--from'
const FROM: OptionDefinition = {
  flags: `${FROM_FLAG} <file>`,
  description:
    'read the domains from a list: a domain on each line, CSV (domain,value,region, …) or JSON lines; - is standard input',
  completion: 'files',
}
const ALL: OptionDefinition = {
  flags: '--all',
  description: 'every open claim known on this machine',
  conflicts: ['--from'],
}
const LIMITS: readonly OptionDefinition[] = [
  {
    flags: '--jobs <n>',
    description: 'of several domains, work on this many at once',
    default: String(DEFAULT_JOBS),
    parse: (text) => {
      const jobs = parseCount(text, '--jobs', 1)
      if (jobs > MAX_JOBS) throw usageError(`--jobs: ${jobs} is more than ${MAX_JOBS}`)
      return jobs
    },
  },
  { flags: '--fail-fast', description: 'of several domains, stop at the first that fails' },
]

/** The options of a command that takes several domains. */
export const MANY_OPTIONS: readonly OptionDefinition[] = [FROM, ALL, ...LIMITS]

/** The same for a command of domains that aren't in the ledger yet. */
export const MANY_NEW_OPTIONS: readonly OptionDefinition[] = [FROM, ...LIMITS]

/** What `--fields` can name beside a command's own fields, for a domain of several that isn't done. */
export const ERROR_FIELDS: readonly string[] = ['code', 'message', 'hint', 'status', 'exit'].map(
  (field) => `error.${field}`,
)

/** Whether a command line means several domains, or one in a list. */
export function isMany(domains: readonly string[], { from, all }: ManyFlags): boolean {
  return domains.length > 1 || from !== undefined || all === true
}

/** The options that one domain of a list can have, by column. */
function optionColumns(options: readonly OptionDefinition[]): ReadonlyMap<string, OptionColumn> {
  return new Map(
    options.flatMap(({ flags, choices, parse }): [string, OptionColumn][] => {
      const [flag = '', value] = flags.split(' ')
      if (flag.startsWith('--no-')) return []
      const name = flag.slice(2).replaceAll('-', '_')
      const key = name.replace(/_(.)/g, (_match, letter: string) => letter.toUpperCase())
      const read = (text: string) => {
        if (value === undefined) return readFlag(text, name)
        if (choices !== undefined) parseChoice(text, name, choices)
        return parse === undefined ? text : parse(text, name)
      }
      return [[name, { key, parse: read }]]
    }),
  )
}

/** @throws CliError exit 2 */
function readFlag(text: string, name: string): boolean {
  if (/^(true|yes|on|1)$/i.test(text)) return true
  if (/^(false|no|off|0)$/i.test(text)) return false
  throw usageError(`${name}: ${JSON.stringify(text)} is neither true nor false`)
}

/**
 * Runs the work for every domain that the command line means.
 *
 * @throws CliError as `runMany` does, and `claim_unknown`, exit 5, for `--all` if all open claims are at other services
 */
export async function runForAll(
  domains: readonly string[],
  flags: ManyFlags,
  work: ManyWork & { readonly takesIds: boolean },
  context: Context,
  settings: Settings,
): Promise<void> {
  const { from, all, jobs = DEFAULT_JOBS, failFast = false } = flags
  if (all && domains.length > 0) throw usageError("a domain and --all can't be used together")
  if (from === '-' && context.stdin.isTTY)
    throw usageError(
      '--from - reads standard input, which is a terminal',
      'pipe the domains into it, or name a file',
    )
  const [{ runMany }, { countLines, readArgument, readSubjects }, { CREATE_OPTIONS }] = await Promise.all([
    import('../../claims/many/run-many.ts'),
    import('../../claims/many/subjects.ts'),
    import('./create-options.ts'),
  ])
  // A mistake in a list doesn't stop the others; one on the command line may mean that the whole line means something else.
  for (const domain of domains) readArgument(domain, work.takesIds)
  const typed = all ? await allOpen(context, settings) : domains
  const listed = from === undefined ? 0 : from === '-' ? undefined : await countLines(from)
  let isEmpty = true
  const readings = readSubjects({
    domains: typed,
    from,
    // One list serves all commands, so each accepts what another one needs.
    columns: optionColumns(CREATE_OPTIONS),
    takesIds: work.takesIds,
    stdin: () => context.stdin.stream as AsyncIterable<Uint8Array>,
  })
  const subjects = (async function* () {
    for await (const reading of readings) {
      isEmpty = false
      yield reading
    }
  })()
  const total = listed === undefined ? undefined : typed.length + listed
  const selection = [...(from === undefined ? [] : [FROM_FLAG, from]), ...(all ? ['--all'] : []), ...domains]
  // A hint repeats the command for the one domain that it is about.
  const others = withoutDomains(settings.argv, domains)
  const perform: ManyWork['perform'] = (subject, run) =>
    work.perform(subject, { ...run, settings: { ...run.settings, argv: [...others, subject.domain] } })
  try {
    await runMany({ ...work, perform, selection }, subjects, { jobs, failFast, total }, context, settings)
  } finally {
    // If the run was interrupted, what is still being read would keep the process alive.
    if (from === '-') context.stdin.stream.destroy()
  }
  if (isEmpty && from !== undefined) throw usageError('--from: the list has no domain')
}

/** The words of a command line that don't say which domains it means. */
function withoutDomains(argv: readonly string[], domains: readonly string[]): string[] {
  return argv.filter(
    (word, at) => !domains.includes(word) && !/^--(from(=|$)|all$)/.test(word) && argv[at - 1] !== FROM_FLAG,
  )
}

/**
 * The domains of all open claims; none, with a note, if none is known.
 *
 * @throws CliError `claim_unknown`, exit 5, if all of them are at other services
 */
async function allOpen(context: Context, settings: Settings): Promise<readonly string[]> {
  const open = await openClaims(context, settings)
  if (open.size > 0) return [...new Set([...open.values()].flatMap((names) => [...names]))].sort()
  const { problem, hint } = await noOpenClaims(context, settings)
  if (hint !== undefined) throw new CliError('claim_unknown', Exit.notFound, problem, { hint })
  await note(problem, context, settings)
  return []
}
