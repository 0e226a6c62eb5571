// The manual page and docs/commands.md, made from the definitions that help is made of.
import { everyCommand } from '../src/cli/line.ts'
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from '../src/commands/definition.ts'
import {
  ENVIRONMENT,
  EXIT_MEANINGS,
  GLOBAL_OPTIONS,
  globalOptions,
  optionText,
  PROGRAM,
} from '../src/commands/program.ts'
import { Exit, type ExitCode } from '../src/errors.ts'

interface Documented {
  readonly words: string
  readonly definition: CommandDefinition
}

async function everyDefinition(): Promise<Documented[]> {
  return Promise.all(
    [...everyCommand()].map(async ({ words, leaf }) => ({
      words: words.join(' '),
      definition: await leaf.load(),
    })),
  )
}

function usage({ words, definition }: Documented): string {
  return ['mailclaim', words, ...(definition.arguments ?? []).map(({ syntax }) => syntax), '[options]'].join(
    ' ',
  )
}

function paragraphs(text: string): string[] {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s*\n\s*/g, ' '))
}

function says(item: ArgumentDefinition | OptionDefinition): string {
  return 'flags' in item ? optionText(item) : item.says
}

/** The formats that only this command knows, beside the usual ones. */
function ownFormats({ definition }: Documented): readonly OptionDefinition[] {
  if ((definition.formats ?? []).length === 0) return []
  return globalOptions(definition).filter(({ flags }) => flags.startsWith('--format '))
}

/** Every exit code that the command ends with, in order. */
function exits({ definition }: Documented): ExitCode[] {
  return [...new Set([Exit.done, ...definition.exits])].sort((one, other) => one - other)
}

/** docs/commands.md. */
export async function commandsPage(): Promise<string> {
  const commands = await everyDefinition()
  const items = (list: readonly (ArgumentDefinition | OptionDefinition)[]) =>
    list.map((item) => `| \`${cell('flags' in item ? item.flags : item.syntax)}\` | ${cell(says(item))} |`)
  const sections = commands.map((command) => {
    const { words, definition } = command
    const taken = [...(definition.arguments ?? []), ...(definition.options ?? []), ...ownFormats(command)]
    return [
      `## mailclaim ${words}`,
      '',
      '```text',
      usage(command),
      '```',
      '',
      paragraphs(definition.description).map(escapeMarkdown).join('\n\n'),
      '',
      ...(taken.length === 0 ? [] : ['| | |', '|---|---|', ...items(taken), '']),
      'Examples:',
      '',
      '```text',
      definition.examples.map((example) => `# ${example.says}\n${example.command}`).join('\n\n'),
      '```',
      '',
      `Exit codes: ${exits(command)
        .map((code) => `${code} (${EXIT_MEANINGS[code]})`)
        .join(', ')}. See [exit codes](exit-codes.md).`,
      '',
    ].join('\n')
  })
  return [
    '# Commands',
    '',
    '<!-- Made by `npm run docs` from the definitions that `--help` is made of. Changes made here are lost. -->',
    '',
    ...commands.map(({ words }) => `- [${words}](#mailclaim-${words.replaceAll(' ', '-')})`),
    '',
    '## Options of every command',
    '',
    '| | |',
    '|---|---|',
    ...items(GLOBAL_OPTIONS),
    '',
    '## Environment',
    '',
    'A flag beats the environment, which beats the profile, which beats a default.',
    '',
    '| | |',
    '|---|---|',
    ...ENVIRONMENT.map((variable) => `| \`${variable.name}\` | ${cell(variable.says)} |`),
    '',
    ...sections,
  ].join('\n')
}

function escapeMarkdown(text: string): string {
  return text.replace(/[\\`*_<>[\]]/g, '\\$&')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

/** man/mailclaim.1, in the man macros (man(7)). */
export async function manualPage(version: string): Promise<string> {
  const commands = await everyDefinition()
  const item = (term: string, text: string) => ['.TP', `.B ${roff(term)}`, roff(text)]
  const section = (command: Documented) => [
    `.SS ${roff(`mailclaim ${command.words}`)}`,
    `.B ${roff(usage(command))}`,
    ...paragraphs(command.definition.description).flatMap((paragraph) => ['.PP', roff(paragraph)]),
    ...[
      ...(command.definition.arguments ?? []),
      ...(command.definition.options ?? []),
      ...ownFormats(command),
    ].flatMap((taken) => item('flags' in taken ? taken.flags : taken.syntax, says(taken))),
    '.PP',
    'Examples:',
    ...command.definition.examples.flatMap((example) => [
      '.PP',
      `${roff(`${example.says}:`)}`,
      '.PP',
      '.nf',
      '.RS 4',
      roff(example.command),
      '.RE',
      '.fi',
    ]),
    '.PP',
    `Exit codes: ${exits(command).join(', ')}.`,
  ]
  return [
    '.\\" Made by "npm run docs" from the definitions that --help is made of.',
    `.TH MAILCLAIM 1 "" "mailclaim ${version}" "User Commands"`,
    '.SH NAME',
    `mailclaim \\- ${roff('sign in, claim a domain and find out why it does not verify')}`,
    '.SH SYNOPSIS',
    '.B mailclaim',
    roff('<command> [arguments] [options]'),
    '.SH DESCRIPTION',
    roff(PROGRAM.description),
    '.PP',
    roff(
      'Data goes to standard output, everything else to standard error. On a terminal data is shown as tables, elsewhere as tab-separated values; --format decides where it is given.',
    ),
    '.SH GLOBAL OPTIONS',
    ...GLOBAL_OPTIONS.flatMap((option) => item(option.flags, option.says)),
    '.SH COMMANDS',
    ...commands.flatMap(section),
    '.SH ENVIRONMENT',
    roff('A flag beats the environment, which beats the profile, which beats a default.'),
    ...ENVIRONMENT.flatMap((variable) => item(variable.name, variable.says)),
    '.SH EXIT STATUS',
    ...Object.values(Exit).flatMap((code) => item(String(code), EXIT_MEANINGS[code])),
    '.SH FILES',
    roff(
      'mailclaim config path prints where the settings are kept, with --json the folder of sessions as well.',
    ),
    '',
  ].join('\n')
}

/** Text as troff prints it: backslashes, hyphens that can be copied, no line that starts with a control character. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll("'", '\\(aq')
    .replaceAll('`', '\\(ga')
    .replaceAll('"', '\\(dq')
    .replaceAll('…', '...')
    .replaceAll('’', '\\(cq')
    .replace(/^\./, '\\&.')
}
