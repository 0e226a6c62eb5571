import type { ArgumentDefinition, CommandDefinition } from '../commands/definition.ts'
import { createGlobalOptions, ROOT_HELP } from '../commands/options.ts'
import type { Context } from '../context.ts'
import { Exit, type ExitCode } from '../errors.ts'
import { type CompletionSource, type OptionDefinition, toLongFlag } from '../settings/option.ts'
import { DEFAULT_PROFILE } from '../settings/profiles.ts'
import { type GivenOptions, resolveSettings } from '../settings/settings.ts'
import { SETTING_KEYS, SETTINGS, type SettingDefinition, settingName } from '../settings/table.ts'
import { loadCommand, readOption, type SplitArgv, splitArgv, subcommandsOf, takesValue } from './line.ts'

/** Completion candidates with their descriptions; `'files'` if the shell should complete file names itself. */
type Candidates = readonly (readonly [value: string, description: string])[] | 'files'

/** Maximum number of domains to offer as candidates: a longer list is of no help, and slow to display. */
const MAX_DOMAINS = 500

/**
 * Prints completion candidates for a shell's completion script: a line `value TAB description` for each, or `:files` if the shell
 * should complete file names. Prints no error, because the user is still typing.
 *
 * @param argv `--` and the words after `mailclaim`, the last of which is at the cursor; or `--dotted` and these words, each with a
 *   dot in front, because PowerShell before 7.3 drops empty arguments
 */
export async function printCompletions(argv: readonly string[], context: Context): Promise<ExitCode> {
  const [mode, ...given] = argv
  const words = mode === '--dotted' ? given.map((word) => word.slice(1)) : given
  try {
    const found = await findCandidates(words, context)
    const partial = words.at(-1) ?? ''
    const fits = found === 'files' ? [[':files']] : found.filter(([value]) => value.startsWith(partial))
    const lines = fits.map((candidate) => `${candidate.join('\t')}\n`)
    await context.stdout.write(lines.join(''))
  } catch {
    // After an error, such as an invalid profile name, print no candidates. The completed command reports the error when it runs.
  }
  return Exit.done
}

/** Finds candidates for the last word, which is at the cursor; the caller drops candidates that don't start with this word. */
async function findCandidates(words: readonly string[], context: Context): Promise<Candidates> {
  const partial = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const line = splitArgv(before)
  if (line.unknownWord !== undefined) return []
  const definition = await loadCommand(line)
  const options = [...(definition?.options ?? []), ...createGlobalOptions(definition)]
  const byFlag = (flag: string) =>
    options.find((option) => toLongFlag(option.flags) === flag && takesValue(option))
  const isLiteral = before.includes('--')

  const expecting = isLiteral ? undefined : byFlag(before.at(-1) ?? '')
  if (expecting !== undefined) {
    const { choices, completion } = expecting
    return await listValues(choices ?? completion, before, partial, context)
  }
  if (!isLiteral && partial.startsWith('-')) return listUnusedOptions(options, before, line)
  if (definition === undefined) return listCommands(line)
  const argument = findArgument(definition, findOperands(line.rest, options).length)
  if (argument === undefined || line.isHelp) return []
  return await listValues(argument.completion, before, partial, context)
}

function listCommands({ node, isHelp }: SplitArgv): Candidates {
  const level = Object.entries(subcommandsOf(node) ?? {})
  const help = node === undefined && !isHelp ? [['help', 'show the help of a command'] as const] : []
  return [...level.map(([word, { summary }]) => [word, summary] as const), ...help]
}

/** Lists repeatable options and options that aren't on the command line yet; also `--help` and, at the top level, `--version`. */
function listUnusedOptions(
  options: readonly OptionDefinition[],
  before: readonly string[],
  { node }: SplitArgv,
): Candidates {
  const used = new Set(before.map((word) => word.replace(/=.*$/s, '')))
  return [
    ...options
      .filter((option) => option.repeatable || !used.has(toLongFlag(option.flags)))
      .map((option) => [toLongFlag(option.flags), option.description] as const),
    ['--help', ROOT_HELP.help],
    ...(node === undefined ? [['--version', ROOT_HELP.version] as const] : []),
  ]
}

/** Returns the operands: words that are neither options nor their values, and everything after `--`. */
function findOperands(rest: readonly string[], options: readonly OptionDefinition[]): string[] {
  const valued = new Set(options.filter(takesValue).map((option) => toLongFlag(option.flags)))
  const end = rest.indexOf('--')
  const [words, literal] = end < 0 ? [rest, []] : [rest.slice(0, end), rest.slice(end + 1)]
  return [
    ...words.filter((word, at) => !word.startsWith('-') && !valued.has(words[at - 1] ?? '')),
    ...literal,
  ]
}

function findArgument(definition: CommandDefinition, position: number): ArgumentDefinition | undefined {
  const last = definition.arguments?.at(-1)
  return definition.arguments?.[position] ?? (last?.syntax.includes('...') ? last : undefined)
}

async function listValues(
  completion: CompletionSource | undefined,
  before: readonly string[],
  partial: string,
  context: Context,
): Promise<Candidates> {
  switch (completion) {
    case undefined:
      return []
    case 'files':
      return 'files'
    case 'settings':
      return SETTING_KEYS.map((key) => [settingName(key), SETTINGS[key].description])
    case 'setting_values': {
      const key = SETTING_KEYS.findLast((candidate) => before.includes(settingName(candidate)))
      const setting: SettingDefinition<unknown> | undefined = key && SETTINGS[key]
      return (setting?.choices ?? []).map((choice) => [choice, ''])
    }
    case 'profiles': {
      const { config } = await readSettings(before, context)
      const names = new Set([...Object.keys(config.profiles), config.current_profile ?? DEFAULT_PROFILE])
      return [...names].sort().map((name) => [name, config.profiles[name]?.base_url ?? ''])
    }
    case 'domains': {
      const { collectDomainCompletions } = await import('../claims/ledger.ts')
      const place = { directories: context.directories, settings: await readSettings(before, context) }
      const known = await collectDomainCompletions(partial, MAX_DOMAINS, place)
      return known.map(([name, status]) => [name, /^[a-z_]+$/.test(status) ? status : ''])
    }
    default:
      return completion.map((value) => [value, ''])
  }
}

/**
 * Resolves the settings with the command line's profile and base URL: completion offers domains of the ledger that these select.
 */
function readSettings(before: readonly string[], context: Context) {
  const [profile, baseUrl] = [readOption(before, '--profile'), readOption(before, '--base-url')]
  const options: GivenOptions = { ...(profile && { profile }), ...(baseUrl && { baseUrl }) }
  return resolveSettings(options, [], context)
}
