import type { Command } from 'commander'
import type { CommandDefinition } from '../commands/definition.ts'
import { EXIT_CODES, GLOBAL_OPTIONS, optionText, PROGRAM, type Topic } from '../commands/program.ts'
import { ENVIRONMENT, FORMAT_MEANINGS, PRECEDENCE } from '../commands/reference.ts'
import { EXIT_ORDER, Exit } from '../errors.ts'
import { FORMATS } from '../settings/settings.ts'
import { exampleList, GLOBAL_OPTIONS_TITLE, itemList, wrapped } from './help.ts'

type Block =
  | string
  | { readonly title: string; readonly items: readonly (readonly [term: string, description: string])[] }
  | { readonly examples: CommandDefinition['examples'] }

/** Each topic: paragraphs, lists and examples. */
const TOPIC_TEXTS: Readonly<Record<Topic, readonly Block[]>> = {
  options: [
    {
      title: GLOBAL_OPTIONS_TITLE,
      items: [
        ...GLOBAL_OPTIONS.map((option) => [option.flags, optionText(option)] as const),
        ['-h, --help', PROGRAM.help],
        ['-V, --version', PROGRAM.version],
      ],
    },
    'Every command takes them, before or after its name. If one is given twice, the last one counts, unless it is repeatable.',
    PRECEDENCE,
  ],
  environment: [
    { title: 'Environment:', items: ENVIRONMENT.map(({ name, description }) => [name, description]) },
    PRECEDENCE,
  ],
  'exit-codes': [
    {
      title: 'Exit codes:',
      items: Object.values(Exit).map((code) => [String(code), EXIT_CODES[code].meaning]),
    },
    'After 7 a script can try again later, after 8 it waits; any other code but 0 is a reason to stop. The help of a command names the codes that it can end with. With --json or --format jsonl the error is a line of JSON on standard error, with a more specific code.',
    `A command that works on several domains goes on after one that fails, and ends with the most severe exit code of all, in the order ${EXIT_ORDER.join(', ')}. An interrupted one ends with 130 or 143.`,
  ],
  formats: [
    { title: 'Formats:', items: FORMATS.map((format) => [format, FORMAT_MEANINGS[format]]) },
    'Without --format: a table on a terminal, else tsv. Some commands have more formats, which their help names: claims check has markdown and html, claims record has zone and value, and what prints one thing prints its bare value.',
    '--fields id,client.name selects fields, and columns in that order. --fields alone lists those of a command, in the format that --format names. --json is --format json.',
    {
      examples: {
        'mailclaim claims list --format csv --fields name,status': 'two columns for a spreadsheet',
        'mailclaim claim --fields --format jsonl': 'the fields of an event',
      },
    },
  ],
  ci: [
    'Sign in with an API key: put it into MAILCLAIM_API_KEY, from a secret of the CI system, for the one step that needs it. It is never stored. A runner that keeps its disk can have a session of its own instead: mailclaim login --profile ci --store file --no-browser.',
    'Never put a refresh token or the state directory into a secret or a cache. A refresh token works once: the next job to send it makes the service revoke the whole grant.',
    'With CI=true, --no-input, or without a terminal, nothing is asked: if a value is missing, the exit code is 2. A command that reaches its --timeout ends with exit code 8, and a later job can continue; 9 means that it ended unsuccessfully.',
    {
      examples: {
        'mailclaim claim example.com --no-input --timeout 900 --format jsonl':
          'the whole flow, with an event per line',
        'mailclaim claims check example.com --format markdown': 'a report for the summary of a job',
        'mailclaim doctor --json > doctor.json': 'the setup of a job that failed, without secrets',
      },
    },
  ],
}

/** What `mailclaim help <topic>` prints, at the width of the program's help. */
export function topicText(topic: Topic, program: Command): string {
  const blocks = TOPIC_TEXTS[topic].map((block) => {
    if (typeof block === 'string') return wrapped(block, program)
    return 'items' in block
      ? itemList(block.title, block.items, program)
      : exampleList(block.examples, program)
  })
  return `${blocks.join('\n\n')}\n`
}
