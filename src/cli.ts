import { Command, CommanderError, Option } from 'commander'
import type { CommandDefinition, OptionDefinition } from './commands/definition.ts'
import { EXIT_MEANINGS, GLOBAL_OPTIONS, PROGRAM } from './commands/program.ts'
import { type CommandGroup, type CommandLeaf, type CommandTree, tree } from './commands/tree.ts'
import { type Context, OutputClosedError } from './context.ts'
import { CliError, Exit, type ExitCode } from './errors.ts'
import { type GlobalOptions, resolveSettings } from './settings/settings.ts'
import { sanitizeLine, sanitizeLines, stringifyJson } from './terminal/sanitize.ts'

/**
 * Runs the program: reads the words that were typed, runs the command and maps its end to an exit code. The one place
 * that prints errors.
 *
 * @param argv the words after the program's name.
 */
export async function run(argv: readonly string[], context: Context): Promise<ExitCode> {
  try {
    const words = commandWords(argv)
    const program = buildProgram(argv, context, await loadCommand(words))
    await program.parseAsync([...argv], { from: 'user' })
    return Exit.done
  } catch (error) {
    return report(error, argv, context)
  }
}

/** A command that has been loaded, with the words that lead to it. */
interface LoadedCommand {
  readonly words: readonly string[]
  readonly definition: CommandDefinition
}

function isGroup(node: CommandLeaf | CommandGroup): node is CommandGroup {
  return 'commands' in node
}

/**
 * The words that name a command, found before commander reads the line, so that only that command's code is loaded.
 * Values of global options that stand before the command are stepped over.
 */
function commandWords(argv: readonly string[], commands: CommandTree = tree): string[] {
  const takesValue = new Set(
    GLOBAL_OPTIONS.filter((option) => option.flags.includes('<')).map((option) => longFlag(option.flags)),
  )
  const words: string[] = []
  let level: Readonly<Record<string, CommandLeaf | CommandGroup>> = commands
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '--') break
    if (word.startsWith('-')) {
      if (takesValue.has(word)) at++
      continue
    }
    // `mailclaim help claims check` is another way to write `mailclaim claims check --help`.
    if (word === 'help' && words.length === 0) continue
    const next = Object.hasOwn(level, word) ? level[word] : undefined
    if (next === undefined) break
    words.push(word)
    if (!isGroup(next)) break
    level = next.commands
  }
  return words
}

async function loadCommand(words: readonly string[]): Promise<LoadedCommand | undefined> {
  let node: CommandLeaf | CommandGroup | undefined
  let level: Readonly<Record<string, CommandLeaf | CommandGroup>> = tree
  for (const word of words) {
    node = level[word]
    if (node === undefined || !isGroup(node)) break
    level = node.commands
  }
  return node === undefined || isGroup(node) ? undefined : { words, definition: await node.load() }
}

/** The whole program, as commander knows it: every name, and the options of the one command that was typed. */
function buildProgram(argv: readonly string[], context: Context, loaded: LoadedCommand | undefined): Command {
  const program = new Command('mailclaim')
  program
    .description(PROGRAM.description)
    .version(context.program.version, '-V, --version', 'print the version')
    .configureHelp({ helpWidth: Math.min(context.stdout.columns ?? 80, 100), showGlobalOptions: false })
    .exitOverride()
    .showSuggestionAfterError(true)
    .enablePositionalOptions(false)
    .helpCommand('help [command]', 'show the help of a command')
  // What commander prints is collected and written through the context, so that back pressure and EPIPE are heeded.
  const printed: string[] = []
  program.configureOutput({
    writeOut: (text) => printed.push(text),
    writeErr: () => {},
    outputError: () => {},
  })
  program.addHelpText('after', () => `\n${PROGRAM.after}`)
  addOptions(program, GLOBAL_OPTIONS, 'Global options:')
  addLevel(program, tree, [])
  return Object.assign(program, { parseAsync: parse })

  async function parse(words: string[], options: { from: 'user' }): Promise<Command> {
    try {
      return await Command.prototype.parseAsync.call(program, words, options)
    } finally {
      for (const text of printed) await context.stdout.write(text)
    }
  }

  function addLevel(
    parent: Command,
    level: Readonly<Record<string, CommandLeaf | CommandGroup>>,
    above: readonly string[],
  ): void {
    for (const [word, node] of Object.entries(level)) {
      const words = [...above, word]
      const command = parent
        .command(word)
        .summary(node.says)
        .description(node.says)
        .copyInheritedSettings(parent)
      if (isGroup(node)) {
        addOptions(command, GLOBAL_OPTIONS, 'Global options:')
        addLevel(command, node.commands, words)
      } else if (loaded !== undefined && loaded.words.join(' ') === words.join(' ')) {
        define(command, loaded.definition)
      }
    }
  }

  function define(command: Command, definition: CommandDefinition): void {
    command.description(definition.description)
    for (const argument of definition.arguments ?? []) command.argument(argument.syntax, argument.says)
    addOptions(command, definition.options ?? [], 'Options:')
    addOptions(command, GLOBAL_OPTIONS, 'Global options:')
    command.addHelpText('after', () => helpAfter(definition))
    command.action(async () => {
      const options = givenOptions(command)
      const settings = await resolveSettings(
        options as GlobalOptions,
        argv,
        definition.formats ?? [],
        context,
      )
      await definition.run({ arguments: command.args, options }, context, settings)
    })
  }
}

function addOptions(command: Command, options: readonly OptionDefinition[], heading: string): void {
  for (const definition of options) {
    const option = new Option(definition.flags, definition.says).helpGroup(heading)
    if (definition.choices !== undefined) option.choices(definition.choices)
    else if (definition.repeatable)
      option.argParser((text: string, before: unknown[] | undefined) => [
        ...(before ?? []),
        definition.parse?.(text) ?? text,
      ])
    else if (definition.parse !== undefined) option.argParser(definition.parse)
    command.addOption(option)
  }
}

/** What was typed on this line, wherever it stood: a global option counts before and after the command's name. */
function givenOptions(command: Command): Record<string, unknown> {
  const given: Record<string, unknown> = {}
  for (let at: Command | null = command; at !== null; at = at.parent) {
    for (const [name, value] of Object.entries(at.opts())) {
      if (at.getOptionValueSource(name) !== 'cli') continue
      // The nearest to the command wins; lists add up.
      const nearer = given[name]
      given[name] =
        nearer === undefined
          ? value
          : Array.isArray(nearer) && Array.isArray(value)
            ? [...value, ...nearer]
            : nearer
    }
  }
  return given
}

function helpAfter(definition: CommandDefinition): string {
  const examples = definition.examples.flatMap((example) => [`  # ${example.says}`, `  $ ${example.command}`])
  const exits = [Exit.done, ...definition.exits].map(
    (code) => `  ${String(code).padEnd(3)} ${EXIT_MEANINGS[code]}`,
  )
  return ['', 'Examples:', ...examples, '', 'Exit codes (others: mailclaim --help):', ...exits].join('\n')
}

function longFlag(flags: string): string {
  return /--[a-z-]+/.exec(flags)?.[0] ?? flags
}

/** Prints what went wrong as the contract says and tells the exit code. */
async function report(error: unknown, argv: readonly string[], context: Context): Promise<ExitCode> {
  if (error instanceof OutputClosedError) return Exit.done
  const expected = asExpected(error)
  if (expected === 'done') return Exit.done
  const json = wantsJson(argv)
  const failure = expected ?? bug(error)
  try {
    if (json) await context.stderr.write(`${stringifyJson(failure)}\n`)
    else {
      await context.stderr.write(`error: ${sanitizeLine(failure.message)}\n`)
      if (failure.hint !== undefined) await context.stderr.write(`hint: ${sanitizeLines(failure.hint)}\n`)
      if (expected === undefined && argv.includes('--verbose') && error instanceof Error) {
        await context.stderr.write(`${sanitizeLines(error.stack ?? '')}\n`)
      }
    }
  } catch (closed) {
    if (!(closed instanceof OutputClosedError)) throw closed
  }
  return failure.exit
}

function asExpected(error: unknown): CliError | 'done' | undefined {
  if (error instanceof CliError) return error
  if (!(error instanceof CommanderError)) return undefined
  // Help and version are thrown as errors too, after they have been printed.
  if (error.exitCode === 0) return 'done'
  if (error.code === 'commander.help')
    return new CliError('usage', Exit.usage, 'a command is missing', { hint: 'see mailclaim --help' })
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  return new CliError('usage', Exit.usage, message, {
    hint: suggestion?.replace(/^\(|\)$/g, '') ?? 'see --help',
  })
}

function bug(error: unknown): CliError {
  const message = error instanceof Error ? error.message : String(error)
  return new CliError('bug', Exit.bug, `this is a bug in mailclaim: ${message}`, {
    hint: 'run it again with --verbose and report what it prints',
  })
}

/** Asked before and beside commander, because its own errors have to be printed in the right form too. */
function wantsJson(argv: readonly string[]): boolean {
  const line = argv.slice(0, argv.includes('--') ? argv.indexOf('--') : argv.length)
  const format = line
    .findLast((word, at) => line[at - 1] === '--format' || word.startsWith('--format='))
    ?.replace(/^--format=/, '')
  return line.includes('--json') || format === 'json' || format === 'jsonl'
}
