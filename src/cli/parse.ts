import { Command, CommanderError, Option } from 'commander'
import type { CommandDefinition } from '../commands/definition.ts'
import { GLOBAL_OPTIONS, globalOptions, HEADINGS, PROGRAM } from '../commands/program.ts'
import { tree } from '../commands/tree.ts'
import type { Context } from '../context.ts'
import { Exit, type ExitCode } from '../errors.ts'
import { readUsableConfig } from '../settings/config.ts'
import { type GlobalOptions, resolveSettings } from '../settings/settings.ts'
import { colorLevel, createPalette, type Palette } from '../terminal/color.ts'
import { environmentVariables, exitCodes, helpAfter, helpLayout, helpWidth, reflow, wrapped } from './help.ts'
import { type CommandLine, type CommandNode, isGroup, readLine } from './line.ts'
import { addOptions, givenOptions } from './options.ts'
import { asksForJson } from './report.ts'
import { usageErrorOf } from './usage-errors.ts'

/**
 * Reads a command line with commander and runs what it names.
 *
 * @param argv the words after the program's name.
 * @returns the exit code where it is not the command that decides: help.
 * @throws CliError exit 2 where the line cannot be understood; whatever the command throws.
 */
export async function runCommandLine(argv: readonly string[], context: Context): Promise<ExitCode> {
  const line = readLine(argv)
  const definition =
    line.node === undefined || isGroup(line.node) || line.stranger !== undefined
      ? undefined
      : await line.node.load()
  const printed = { out: '', err: '' }
  const palette = await createPalette(
    colorLevel(context.environment, argv.includes('--no-color') ? false : undefined, context.stdout),
  )
  const program = buildProgram(line, definition, argv, context, printed, palette)
  try {
    await program.parseAsync(wordsFor(line), { from: 'user' })
    return Exit.done
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && line.node === undefined) {
      // The bare program: not a mistake, but the first thing that people type.
      await context.stdout.write(printed.err + (await welcome(program, context)))
      return Exit.done
    }
    if (error.code === 'commander.help' && !asksForJson(argv)) {
      await context.stderr.write(printed.err)
      return Exit.usage
    }
    if (error.exitCode === 0) {
      await context.stdout.write(printed.out)
      return Exit.done
    }
    throw usageErrorOf(error, line, definition)
  }
}

/** The line in the order that commander understands: the command's words first. */
function wordsFor(line: CommandLine): string[] {
  // Commander then says that it knows no such command, and which it knows.
  if (line.stranger !== undefined) return [...line.words, line.stranger]
  if (line.helpWord) return [...line.words, '--help']
  return [...line.words, ...line.rest]
}

/**
 * The program as commander knows it: the command that was typed and its options; where none was, the names that could
 * have been.
 */
function buildProgram(
  line: CommandLine,
  definition: CommandDefinition | undefined,
  argv: readonly string[],
  context: Context,
  printed: { out: string; err: string },
  palette: Palette,
): Command {
  const program = new Command('mailclaim')
  program
    .description(reflow(PROGRAM.description))
    .usage('<command> [options]')
    .version(context.program.version, '-V, --version', 'print the version')
    .configureHelp(helpLayout(helpWidth(context.stdout), palette))
    .exitOverride()
    .showSuggestionAfterError(true)
    .addHelpOption(new Option('-h, --help', 'show this help').helpGroup('Global options:'))
    .addHelpCommand(
      new Command('help [command]').description('show the help of a command').helpGroup('Set up:'),
    )
    // What commander prints is collected and written through the context, so that back pressure and EPIPE are heeded.
    .configureOutput({
      writeOut: (text) => {
        printed.out += text
      },
      writeErr: (text) => {
        printed.err += text
      },
      outputError: () => {},
      // The palette has decided; commander must not take its colours out again.
      getOutHasColors: () => true,
      // Without these it opens the standard streams to ask them, also where help is not asked for.
      getOutHelpWidth: () => helpWidth(context.stdout),
      getErrHelpWidth: () => helpWidth(context.stdout),
      getErrHasColors: () => true,
    })
  program.addHelpText('after', ({ command }) =>
    command === program
      ? [
          '',
          wrapped(PROGRAM.after, program),
          '',
          environmentVariables(program),
          '',
          exitCodes('Exit codes:', Object.values(Exit), program),
        ].join('\n')
      : '',
  )
  if (definition === undefined) addOptions(program, GLOBAL_OPTIONS, 'Global options:')
  addLevel(program, tree, [])
  return program

  function addLevel(
    parent: Command,
    level: Readonly<Record<string, CommandNode>>,
    above: readonly string[],
  ): void {
    for (const [word, node] of Object.entries(level)) {
      const typed = word === line.words[above.length]
      // Where it is known what to run, nobody asks for its neighbours.
      if (definition !== undefined && !typed) continue
      const words = [...above, word]
      const command = parent.command(word).copyInheritedSettings(parent).helpCommand(false)
      command.summary(node.says).description(`${node.says.charAt(0).toUpperCase()}${node.says.slice(1)}.`)
      command.addHelpOption(new Option('-h, --help', 'show this help').helpGroup('Global options:'))
      const heading = parent === program ? HEADINGS[word] : undefined
      if (heading !== undefined) command.helpGroup(`${heading}:`)
      if (isGroup(node)) {
        command.summary(`${node.says}: ${Object.keys(node.commands).join(', ')}`)
        command.usage('<command> [options]')
        // Words behind `--` are for commander to find.
        if (typed || line.rest.includes('--')) {
          if (definition === undefined) addOptions(command, GLOBAL_OPTIONS, 'Global options:')
          addLevel(command, node.commands, words)
        }
      } else if (definition !== undefined) {
        define(command, definition)
      }
    }
  }

  function define(command: Command, definition: CommandDefinition): void {
    command.description(reflow(definition.description))
    command.usage([...(definition.arguments ?? []).map(({ syntax }) => syntax), '[options]'].join(' '))
    for (const argument of definition.arguments ?? []) command.argument(argument.syntax, argument.says)
    addOptions(command, definition.options ?? [], 'Options:')
    addOptions(command, globalOptions(definition), 'Global options:')
    command.addHelpText('after', () => helpAfter(definition, command))
    command.action(async () => {
      const options = givenOptions(command)
      const settings = await resolveSettings(
        options as GlobalOptions,
        argv,
        definition.formats ?? [],
        context,
        definition.toleratesDamagedConfig === true,
      )
      await definition.run({ arguments: command.args, options }, context, settings)
    })
  }
}

/** What a newcomer reads below the help: nothing is configured yet, and where to start. */
async function welcome(program: Command, context: Context): Promise<string> {
  const { environment } = context
  if (environment.baseUrl !== undefined || environment.apiKey !== undefined) return ''
  const { config, problem } = await readUsableConfig(context)
  // Someone who has a configuration is no newcomer, even where it cannot be read: the next command will say so.
  if (problem !== undefined || Object.keys(config.profiles).length > 0) return ''
  return `\n${wrapped(PROGRAM.welcome, program)}\n`
}
