import { Exit, type ExitCode } from '../errors.ts'
import { FORMATS } from '../settings/settings.ts'
import type { CommandDefinition, OptionDefinition } from './definition.ts'

/** What the exit codes mean to a script. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  [Exit.done]: 'done',
  [Exit.bug]: 'a bug, or an unexpected local failure',
  [Exit.usage]: 'usage: bad flag, argument or value',
  [Exit.notConfigured]: 'not configured: base URL or client id missing or unusable',
  [Exit.notSignedIn]: 'not signed in, or the credential was refused or cannot be reached',
  [Exit.notFound]: 'not found',
  [Exit.refused]: 'the service refused the request',
  [Exit.unavailable]: 'network, time-out, rate limit, or an answer that makes no sense',
  [Exit.notYet]: 'not yet: record not visible, or still in flight when time ran out',
  [Exit.negativeEnd]: 'a negative end: blocked, expired, superseded, canceled or failed',
  [Exit.interrupted]: 'interrupted',
  [Exit.terminated]: 'terminated',
}

export const PROGRAM = {
  description:
    'Sign in, claim a domain that another team has verified, and find out why a claim does not go through.',
  after: '`mailclaim help <command>` shows what a command does, with examples and exit codes.',
  welcome:
    'Nothing is configured yet. To try everything on this machine, without an account: mailclaim sandbox. To sign in to a service: mailclaim login.',
} as const

/** The variables that the program heeds; a flag beats them. */
export const ENVIRONMENT: readonly { readonly name: string; readonly says: string }[] = [
  { name: 'MAILCLAIM_BASE_URL', says: 'the address of the service, as --base-url' },
  { name: 'MAILCLAIM_CLIENT_ID', says: 'the OAuth client id, as --client-id' },
  { name: 'MAILCLAIM_API_KEY', says: 'an API key; beats a stored session and is never kept' },
  { name: 'MAILCLAIM_PROFILE', says: 'the profile, as --profile' },
  { name: 'MAILCLAIM_STORE', says: 'where a login keeps its secret: keychain or file' },
  { name: 'MAILCLAIM_RESOLVER', says: 'DNS resolvers, separated by spaces or commas' },
  { name: 'MAILCLAIM_AUTHORITATIVE_PORT', says: 'as --authoritative-port' },
  { name: 'MAILCLAIM_CONFIG_DIR', says: 'the folder of the settings' },
  { name: 'MAILCLAIM_STATE_DIR', says: 'the folder of sessions and remembered claims' },
  { name: 'NO_COLOR, FORCE_COLOR', says: 'no colour, or colour even where it is no terminal' },
  { name: 'HTTPS_PROXY, HTTP_PROXY, NO_PROXY', says: 'the proxy, and what goes past it' },
  { name: 'NODE_EXTRA_CA_CERTS', says: 'a file of further certificate authorities' },
]

/** Under which heading the program's help shows a command. */
export const HEADINGS: Readonly<Record<string, string>> = {
  login: 'Sign in',
  logout: 'Sign in',
  auth: 'Sign in',
  grants: 'Look at the team',
  imports: 'Look at the team',
  claims: 'Claim a domain',
  claim: 'Claim a domain',
  sandbox: 'Try and repair',
  doctor: 'Try and repair',
  config: 'Set up',
  completion: 'Set up',
  help: 'Set up',
}

/** The options that every command takes, before or after its name. */
export const GLOBAL_OPTIONS: readonly OptionDefinition[] = [
  { flags: '--profile <name>', says: 'use this profile', completion: 'profiles' },
  { flags: '--base-url <url>', says: 'the address of the service' },
  { flags: '--client-id <id>', says: 'the OAuth client id' },
  {
    flags: '--format <format>',
    says: 'table, json, jsonl, csv or tsv',
    completion: ['table', 'json', 'jsonl', 'csv', 'tsv'],
  },
  { flags: '--json', says: 'the same as --format json' },
  { flags: '--fields <list>', says: 'only these fields, as in id,client.name' },
  { flags: '--csv-safe', says: "in CSV, put ' before cells that a spreadsheet would run" },
  { flags: '--quiet', says: 'no progress, hints or warnings' },
  { flags: '--verbose', says: 'show HTTP exchanges on stderr, secrets left out' },
  { flags: '--no-input', says: 'never ask a question' },
  { flags: '--no-color', says: 'no colour' },
  { flags: '--http-timeout <seconds>', says: 'how long an HTTP answer may take (30)' },
  { flags: '--resolver <address>', says: 'ask this DNS resolver, IP[:PORT]; repeatable', repeatable: true },
  { flags: '--authoritative-port <port>', says: 'where authoritative name servers listen (53)' },
]

/** The global options as one command takes them: some know more formats than others. */
export function globalOptions(definition: CommandDefinition | undefined): readonly OptionDefinition[] {
  const formats = [...FORMATS, ...(definition?.formats ?? [])]
  return GLOBAL_OPTIONS.map((option) =>
    option.flags.startsWith('--format ')
      ? { ...option, says: `${formats.slice(0, -1).join(', ')} or ${formats.at(-1)}`, completion: formats }
      : option,
  )
}

/** What an option says, with the values that it takes where it does not name them itself. */
export function optionText({ says, choices = [] }: OptionDefinition): string {
  return choices.every((choice) => says.includes(choice)) ? says : `${says} (${choices.join(', ')})`
}
