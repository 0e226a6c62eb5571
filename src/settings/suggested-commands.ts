import { commandLine } from '../shell-quote.ts'
import { PROFILE_AND_SETTINGS, settingName } from './table.ts'

/** A command in a message. A synopsis is no suggestion. */
const SUGGESTION =
  /(?<!usage: )\bmailclaim ((?:auth|claims|config|grants|imports) [a-z]+|claim|doctor|login|logout)(?![\w-])/g

/** Commands that depend on no profile. */
const ANY_PROFILE = /^auth (list|switch)$/
/** The settings that only commands with DNS queries use. */
const DNS_SETTINGS: readonly string[] = ['resolver', 'authoritative_port']

/** The settings that can't be used with an API key. */
const SESSION_SETTINGS: readonly string[] = ['scope', 'resource']

interface GivenOption {
  readonly key: string
  readonly flag: string
  /** None for an option without a value. */
  readonly values: readonly string[]
  /** The only command that has it; every command if undefined. */
  readonly only: string | undefined
}

/**
 * Adds to each command that a text suggests the settings that were given as options, such as `--profile ci`, so that it
 * continues with the same session, ledger and name servers, and a sign-in with the same scopes. Everything that suggests a
 * command is printed through this.
 *
 * An option that the command has already, or that means nothing to it, isn't added. Nor is a value that the setting refuses: it
 * may be anything, such as an address with a password.
 *
 * @param argv the words that were typed after the program's name
 */
export function withGivenOptions(
  text: string,
  argv: readonly string[],
  platform: NodeJS.Platform = process.platform,
): string {
  const given = givenOptions(argv)
  if (given.length === 0) return text
  return text.replace(SUGGESTION, (_match, command: string, at: number) => {
    const [own = ''] = text.slice(at + 1).split(/\bmailclaim |\n/, 1)
    const added = given.filter((option) => applies(option, command, own) && !hasOption(own, option.flag))
    return commandLine(
      [...command.split(' '), ...added.flatMap(({ flag, values }) => [flag, ...values])],
      platform,
    )
  })
}

/** The command that was typed, with other values of these options: all other words are kept, quoted for the shell. */
export function commandWith(
  argv: readonly string[],
  values: Readonly<Record<string, string>>,
  platform: NodeJS.Platform,
): string {
  const isOther = (word = '') => !Object.hasOwn(values, word)
  const end = argv.indexOf('--')
  const [before, after] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end)]
  const others = before.filter((word, at) => isOther(word.replace(/=.*/s, '')) && isOther(before[at - 1]))
  return commandLine([...others, ...Object.entries(values).flat(), ...after], platform)
}

/** Not a setting, but another way to sign in. */
const WITH_API_KEY: GivenOption = { key: '', flag: '--with-api-key', values: [], only: 'login' }

function applies({ key, only }: GivenOption, command: string, own: string): boolean {
  if (ANY_PROFILE.test(command) || (only !== undefined && only !== command)) return false
  if (SESSION_SETTINGS.includes(key) && hasOption(own, WITH_API_KEY.flag)) return false
  if (command.startsWith('config ')) return key === 'profile'
  return !DNS_SETTINGS.includes(key) || /^(claims? ?|doctor)/.test(command)
}

function hasOption(text: string, flag: string): boolean {
  return new RegExp(`${flag}(?![\\w-])`).test(text)
}

function givenOptions(argv: readonly string[]): GivenOption[] {
  const end = argv.indexOf('--')
  const words = end < 0 ? argv : argv.slice(0, end)
  const settings = PROFILE_AND_SETTINGS.flatMap(([key, { flags, command, parse }]) => {
    if (flags === undefined) return []
    const flag = `--${settingName(key)}`
    const values = words.flatMap((word, at) =>
      word === flag
        ? words.slice(at + 1, at + 2)
        : word.startsWith(`${flag}=`)
          ? [word.slice(flag.length + 1)]
          : [],
    )
    return values
      .filter((value) => isValid(() => parse(value, flag)))
      .map((value) => ({ key, flag, values: [value], only: command }))
  })
  return words.includes(WITH_API_KEY.flag) ? [WITH_API_KEY, ...settings] : settings
}

function isValid(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch {
    return false
  }
}
