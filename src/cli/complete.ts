import {
  type ArgumentDefinition,
  type CommandDefinition,
  type Completion,
  longFlag,
  type OptionDefinition,
} from '../commands/definition.ts'
import { globalOptions, TOPICS } from '../commands/program.ts'
import type { Context } from '../context.ts'
import { Exit, type ExitCode } from '../errors.ts'
import { readUsableConfig } from '../settings/config.ts'
import { DEFAULT_PROFILE } from '../settings/profiles.ts'
import { type GlobalOptions, resolveSettings } from '../settings/settings.ts'
import { SETTING_KEYS, SETTINGS, type Setting, settingName } from '../settings/table.ts'
import { type CommandLine, commandsOf, isGroup, readLine, takesValue } from './line.ts'

/** A word that fits at the cursor, with its meaning. */
export interface Candidate {
  readonly value: string
  readonly description: string
}

export interface Answer {
  readonly candidates: readonly Candidate[]
  /** Whether the shell offers its files. */
  readonly files: boolean
}

/**
 * Answers a shell's completion script: `__complete -- word… partial` prints a line for each word that fits at the cursor,
 * `value TAB meaning`, and `:files` if file names fit. It never fails, sends no request and prints no error: a person is
 * in the middle of typing.
 *
 * With `--dotted` each word starts with a dot, because PowerShell drops empty arguments.
 */
export async function answerShell(argv: readonly string[], context: Context): Promise<ExitCode> {
  const [mode, ...given] = argv
  const words = mode === '--dotted' ? given.map((word) => word.slice(1)) : given
  try {
    const { candidates, files } = await complete(words, context)
    const lines = candidates.map(({ value, description }) => `${value}\t${description}\n`)
    if (files) lines.push(':files\n')
    await context.stdout.write(lines.join(''))
  } catch {
    // The command itself reports what is wrong when it is run.
  }
  return Exit.done
}

/**
 * The words that fit at the cursor.
 *
 * @param words the words after the program's name; the last one is the typed part of the word at the cursor.
 */
export async function complete(words: readonly string[], context: Context): Promise<Answer> {
  const partial = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const line = readLine(before)
  if (line.unknownWord !== undefined) return nothing
  const definition = line.node === undefined || isGroup(line.node) ? undefined : await line.node.load()
  const options = [...(definition?.options ?? []), ...globalOptions(definition)]
  const literal = before.includes('--')

  const expecting = literal ? undefined : optionBefore(before, options)
  if (expecting !== undefined)
    return matching(await optionValues(expecting, before, partial, context), partial)

  if (!literal && /^--[a-z-]+=/.test(partial)) {
    const flag = partial.slice(0, partial.indexOf('='))
    const option = options.find((candidate) => longFlag(candidate.flags) === flag && takesValue(candidate))
    if (option === undefined) return nothing
    const { candidates, files } = await optionValues(option, before, partial.slice(flag.length + 1), context)
    const inPlace = candidates.map(({ value, description }) => ({ value: `${flag}=${value}`, description }))
    return matching({ candidates: inPlace, files }, partial)
  }
  if (!literal && partial.startsWith('-')) return matching(unusedOptions(options, before, line), partial)
  if (definition === undefined) return matching(commandWords(line), partial)
  const argument = argumentAt(definition, operands(line.rest, options).length)
  if (argument === undefined || line.helpWord) return nothing
  return matching(await values(argument.completion, before, context, partial), partial)
}

const nothing: Answer = { candidates: [], files: false }

function matching(answer: Answer, partial: string): Answer {
  return {
    candidates: answer.candidates.filter(({ value }) => value.startsWith(partial)),
    files: answer.files,
  }
}

function optionBefore(
  before: readonly string[],
  options: readonly OptionDefinition[],
): OptionDefinition | undefined {
  const previous = before.at(-1)
  return options.find((option) => longFlag(option.flags) === previous && takesValue(option))
}

function commandWords(line: CommandLine): Answer {
  const level = Object.entries(commandsOf(line.node) ?? {})
  const candidates = level.map(([value, node]) => ({ value, description: node.summary }))
  if (line.node !== undefined) return answer(candidates)
  const topics = Object.entries(TOPICS).map(([value, description]) => ({ value, description }))
  const help = { value: 'help', description: 'show the help of a command' }
  return answer([...candidates, ...(line.helpWord ? topics : [help])])
}

/** The options that can still be given: all but those that were given and aren't repeatable. */
function unusedOptions(
  options: readonly OptionDefinition[],
  before: readonly string[],
  line: CommandLine,
): Answer {
  const used = new Set(before.map((word) => word.replace(/=.*$/s, '')))
  const candidates = options
    .filter((option) => option.repeatable || !used.has(longFlag(option.flags)))
    .map((option) => ({ value: longFlag(option.flags), description: option.description }))
  const program = line.node === undefined ? [{ value: '--version', description: 'print the version' }] : []
  return {
    candidates: [...candidates, { value: '--help', description: 'show the help' }, ...program],
    files: false,
  }
}

/** The words that are neither options nor their values. */
function operands(rest: readonly string[], options: readonly OptionDefinition[]): string[] {
  const valued = new Set(options.filter(takesValue).map((option) => longFlag(option.flags)))
  const found: string[] = []
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ''
    if (word === '--') return [...found, ...rest.slice(at + 1)]
    if (valued.has(word)) at++
    else if (!word.startsWith('-')) found.push(word)
  }
  return found
}

function argumentAt(definition: CommandDefinition, position: number): ArgumentDefinition | undefined {
  const last = definition.arguments?.at(-1)
  return definition.arguments?.[position] ?? (last?.syntax.includes('...') ? last : undefined)
}

async function optionValues(
  option: OptionDefinition,
  before: readonly string[],
  partial: string,
  context: Context,
): Promise<Answer> {
  const { candidates, files } = await values(option.choices ?? option.completion, before, context)
  // Where a list fits, such as id,status, each part of it is completed.
  const listed = option.flags.endsWith('[list]') ? partial.split(',').slice(0, -1) : []
  const others = candidates.filter(({ value }) => !listed.includes(value))
  return {
    candidates: others.map((one) => ({ ...one, value: [...listed, one.value].join(',') })),
    files,
  }
}

async function values(
  completion: Completion | undefined,
  before: readonly string[],
  context: Context,
  partial = '',
): Promise<Answer> {
  if (completion === undefined) return nothing
  if (typeof completion !== 'string') return answer(completion.map((value) => ({ value, description: '' })))
  switch (completion) {
    case 'files':
      return { candidates: [], files: true }
    case 'settings':
      return answer(
        SETTING_KEYS.map((key) => ({ value: settingName(key), description: SETTINGS[key].description })),
      )
    case 'setting_values': {
      const key = SETTING_KEYS.findLast((candidate) => before.includes(settingName(candidate)))
      const setting: Setting<unknown> | undefined = key && SETTINGS[key]
      return values(setting?.choices, before, context)
    }
    case 'profiles':
      return answer(await profiles(context))
    case 'domains':
      return answer(await domains(partial, before, context))
  }
}

const answer = (candidates: readonly Candidate[]): Answer => ({ candidates, files: false })

async function profiles(context: Pick<Context, 'directories'>): Promise<Candidate[]> {
  const { config } = await readUsableConfig(context)
  const names = new Set([...Object.keys(config.profiles), config.current_profile ?? DEFAULT_PROFILE])
  return [...names].sort().map((value) => ({ value, description: config.profiles[value]?.base_url ?? '' }))
}

/** Of more domains than this, a list helps nobody, and a shell takes seconds for it. */
const MOST_DOMAINS = 500

/** The domains that the active profile knows. */
async function domains(partial: string, before: readonly string[], context: Context): Promise<Candidate[]> {
  const options: GlobalOptions = {}
  const profile = lastValue('--profile', before)
  const baseUrl = lastValue('--base-url', before)
  if (profile !== undefined) options.profile = profile
  if (baseUrl !== undefined) options.baseUrl = baseUrl
  const settings = await resolveSettings(options, [], context, true)
  const { knownDomains } = await import('../claims/ledger.ts')
  return (await knownDomains(partial, MOST_DOMAINS, context, settings)).map(([value, status]) => ({
    value,
    description: /^[a-z_]+$/.test(status) ? status : '',
  }))
}

function lastValue(flag: string, words: readonly string[]): string | undefined {
  const at = words.lastIndexOf(flag)
  if (at >= 0) return words[at + 1]
  return words.findLast((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1)
}
