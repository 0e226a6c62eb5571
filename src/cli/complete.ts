import type { ArgumentDefinition, CommandDefinition } from '../commands/definition.ts'
import { globalOptions, PROGRAM } from '../commands/program.ts'
import type { Context } from '../context.ts'
import { Exit, type ExitCode } from '../errors.ts'
import { type Completion, longFlag, type OptionDefinition } from '../settings/option.ts'
import { DEFAULT_PROFILE } from '../settings/profiles.ts'
import { type GlobalOptions, resolveSettings } from '../settings/settings.ts'
import { SETTING_KEYS, SETTINGS, type Setting, settingName } from '../settings/table.ts'
import { type CommandLine, commandsOf, loadDefinition, optionValue, parseLine, takesValue } from './line.ts'

/** The words that fit at the cursor, each with its meaning; `files`: the shell's own files. */
type Candidates = readonly (readonly [value: string, description: string])[] | 'files'

/** Of more domains than this, a list helps nobody, and a shell takes seconds for it. */
const MAX_DOMAINS = 500

/**
 * Answers a shell's completion script: `__complete -- word… partial` prints a line for each word that fits at the cursor,
 * `value TAB meaning`, and `:files` if file names fit. It never fails, sends no request and prints no error: a person is
 * in the middle of typing.
 *
 * With `--dotted` each word starts with a dot, because PowerShell drops empty arguments.
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
    // The command itself reports what is wrong when it is run.
  }
  return Exit.done
}

/** @param words the words after the program's name; the last one is the typed part of the word at the cursor. */
async function findCandidates(words: readonly string[], context: Context): Promise<Candidates> {
  const partial = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const line = parseLine(before)
  if (line.unknownWord !== undefined) return []
  const definition = await loadDefinition(line)
  const options = [...(definition?.options ?? []), ...globalOptions(definition)]
  const byFlag = (flag: string) =>
    options.find((option) => longFlag(option.flags) === flag && takesValue(option))
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

function listCommands({ node, isHelp }: CommandLine): Candidates {
  const level = Object.entries(commandsOf(node) ?? {})
  const help = node === undefined && !isHelp ? [['help', 'show the help of a command'] as const] : []
  return [...level.map(([word, { summary }]) => [word, summary] as const), ...help]
}

/** The options that can still be given: all but those that were given and aren't repeatable. */
function listUnusedOptions(
  options: readonly OptionDefinition[],
  before: readonly string[],
  { node }: CommandLine,
): Candidates {
  const used = new Set(before.map((word) => word.replace(/=.*$/s, '')))
  return [
    ...options
      .filter((option) => option.repeatable || !used.has(longFlag(option.flags)))
      .map((option) => [longFlag(option.flags), option.description] as const),
    ['--help', PROGRAM.help],
    ...(node === undefined ? [['--version', PROGRAM.version] as const] : []),
  ]
}

/** The words that are neither options nor their values. */
function findOperands(rest: readonly string[], options: readonly OptionDefinition[]): string[] {
  const valued = new Set(options.filter(takesValue).map((option) => longFlag(option.flags)))
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
  completion: Completion | undefined,
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
      const setting: Setting<unknown> | undefined = key && SETTINGS[key]
      return (setting?.choices ?? []).map((choice) => [choice, ''])
    }
    case 'profiles': {
      const { config } = await readSettings(before, context)
      const names = new Set([...Object.keys(config.profiles), config.current_profile ?? DEFAULT_PROFILE])
      return [...names].sort().map((name) => [name, config.profiles[name]?.base_url ?? ''])
    }
    case 'domains': {
      const { knownDomains } = await import('../claims/ledger.ts')
      const place = { directories: context.directories, settings: await readSettings(before, context) }
      const known = await knownDomains(partial, MAX_DOMAINS, place)
      return known.map(([name, status]) => [name, /^[a-z_]+$/.test(status) ? status : ''])
    }
    default:
      return completion.map((value) => [value, ''])
  }
}

/** The settings that the words before the cursor give. */
function readSettings(before: readonly string[], context: Context) {
  const [profile, baseUrl] = [optionValue(before, '--profile'), optionValue(before, '--base-url')]
  const options: GlobalOptions = { ...(profile && { profile }), ...(baseUrl && { baseUrl }) }
  return resolveSettings(options, [], context)
}
