import { Command, CommanderError } from 'commander'
import {
  type CommandDefinition,
  type CommandGroup,
  fieldsIn,
  type OutputDefinition,
} from '../commands/definition.ts'
import {
  argumentText,
  GLOBAL_OPTIONS,
  globalOptions,
  PROGRAM,
  shownOptions,
  TOPICS,
} from '../commands/program.ts'
import { tree } from '../commands/tree.ts'
import type { Context } from '../context.ts'
import { type CliError, Exit, type ExitCode, usageError } from '../errors.ts'
import { readUsableConfig } from '../settings/config.ts'
import { DEFAULT_PROFILE } from '../settings/profiles.ts'
import { type GlobalOptions, resolveSettings, type Settings } from '../settings/settings.ts'
import { isShared } from '../settings/shared-store.ts'
import { colorLevel, createPalette, type Palette } from '../terminal/color.ts'
import { untilClosed } from '../terminal/derived-output.ts'
import { noFieldsError, unknownFieldError, unlistedFields } from '../terminal/fields.ts'
import { createIo } from '../terminal/io.ts'
import { warn } from '../terminal/notices.ts'
import {
  GLOBAL_OPTIONS_TITLE,
  globalOptionsLine,
  helpAfter,
  helpLayout,
  helpWidth,
  reflow,
  wrapped,
} from './help.ts'
import { type CommandLine, type CommandNode, isGroup, readLine, topicOf } from './line.ts'
import { addOptions, checkRelations, givenOptions } from './options.ts'
import { asksForJson } from './report.ts'
import { FOR_PROGRAMS, requireArguments, usageErrorOf } from './usage-errors.ts'

/** The columns beside the names of groups and commands, of 80. */
const SUMMARY_WIDTH = 48

/**
 * Parses a command line with commander and runs its command.
 *
 * @param argv the words after the program's name.
 * @throws CliError exit 2 for a command line that can't be understood; whatever the command throws.
 */
export async function runCommandLine(argv: readonly string[], context: Context): Promise<ExitCode> {
  const line = readLine(argv)
  const definition =
    line.node === undefined || isGroup(line.node) || line.unknownWord !== undefined
      ? undefined
      : await line.node.load()
  const printed = { out: '', err: '' }
  const palette = await createPalette(
    colorLevel(context.environment, argv.includes('--no-color') ? false : undefined, context.stdout),
  )
  const program = buildProgram(line, definition, argv, context, printed, palette)
  const topic = topicOf(line)
  if (topic !== undefined) {
    if (asksForJson(argv)) throw helpIsForPeople()
    const { topicText } = await import('./topics.ts')
    await context.stdout.write(topicText(topic, program))
    return Exit.done
  }
  try {
    await program.parseAsync(wordsFor(line), { from: 'user' })
    return Exit.done
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.helpDisplayed' && asksForJson(argv)) {
      await describeForPrograms(line, context)
      return Exit.done
    }
    if (error.code === 'commander.help' && line.node === undefined && !asksForJson(argv)) {
      // The program's name alone is not a mistake, but the first thing that people type.
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

/** What programs get as the help of a command: its entry of `commands --json`. @throws CliError exit 2 if it isn't one */
async function describeForPrograms({ words, node }: CommandLine, context: Context): Promise<void> {
  if (node === undefined || isGroup(node)) throw helpIsForPeople()
  const [{ describeCommand }, { writeJson }] = await Promise.all([
    import('../commands/commands.ts'),
    import('../terminal/output.ts'),
  ])
  await writeJson(context, await describeCommand(words.join(' '), node))
}

function helpIsForPeople(): CliError {
  return usageError('only the help of a command has JSON', FOR_PROGRAMS)
}

/** The words in the order that commander understands: the command's name first. */
function wordsFor(line: CommandLine): string[] {
  // Commander then reports an unknown command, and similar ones.
  if (line.unknownWord !== undefined) return [...line.words, line.unknownWord]
  if (line.helpWord) return [...line.words, '--help']
  return [...line.words, ...line.rest]
}

/** The program for commander: the command that was typed with its options, or if there is none, all the names. */
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
    .version(context.program.version, '-V, --version', PROGRAM.version)
    .configureHelp(helpLayout(helpWidth(context.stdout), palette))
    .exitOverride()
    .showSuggestionAfterError(true)
    .helpOption('-h, --help', PROGRAM.help)
    .helpCommand(false)
    // Commander's output is collected and written through the context, which handles back pressure and EPIPE.
    .configureOutput({
      writeOut: (text) => {
        printed.out += text
      },
      writeErr: (text) => {
        printed.err += text
      },
      outputError: () => {},
      // The palette has decided; commander must not remove its colors.
      getOutHasColors: () => true,
      // Without these, commander opens the standard streams to ask them, even if help isn't requested.
      getOutHelpWidth: () => helpWidth(context.stdout),
      getErrHelpWidth: () => helpWidth(context.stdout),
      getErrHasColors: () => true,
    })
  program.addHelpText('after', () =>
    [
      '',
      wrapped('`mailclaim help <command>` shows what a command does, with examples.', program),
      wrapped(`Topics (\`mailclaim help <topic>\`): ${Object.keys(TOPICS).join(', ')}`, program),
    ].join('\n'),
  )
  if (definition === undefined) addOptions(program, GLOBAL_OPTIONS, GLOBAL_OPTIONS_TITLE)
  addLevel(program, tree, [])
  // Commander then suggests the similar ones.
  if (line.helpWord && line.unknownWord !== undefined)
    for (const topic of Object.keys(TOPICS)) program.command(topic)
  return program

  function addLevel(
    parent: Command,
    level: Readonly<Record<string, CommandNode>>,
    above: readonly string[],
  ): void {
    for (const [word, node] of Object.entries(level)) {
      const typed = word === line.words[above.length]
      // If the command is known, no other one is needed.
      if (definition !== undefined && !typed) continue
      const words = [...above, word]
      const command = parent.command(word).copyInheritedSettings(parent).helpCommand(false)
      command
        .summary(node.summary)
        .description(`${node.summary.charAt(0).toUpperCase()}${node.summary.slice(1)}.`)
      if (node.heading !== undefined) command.helpGroup(`${node.heading}:`)
      if (isGroup(node)) {
        command.summary(summaryOf(node))
        command.addHelpText('after', () => globalOptionsLine(command))
        command.usage('<command> [options]')
        // Commander itself looks for a command after `--`.
        if (typed || line.rest.includes('--')) {
          if (definition === undefined) addOptions(command, GLOBAL_OPTIONS, GLOBAL_OPTIONS_TITLE)
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
    const own = shownOptions(definition)
    const globals = globalOptions(definition).filter(({ flags }) =>
      own.every((option) => option.flags !== flags),
    )
    for (const argument of definition.arguments ?? [])
      command.argument(argument.syntax.replace(/^<(.*)>$/, '[$1]'), argumentText(argument))
    addOptions(command, own, 'Options:')
    addOptions(command, globals, GLOBAL_OPTIONS_TITLE)
    command.addHelpText('after', () => helpAfter(definition, command))
    command.action(() => {
      const options: GlobalOptions & Record<string, unknown> = givenOptions(command)
      checkRelations([...own, ...globals], options)
      return runCommand(definition, command.args, options, line, argv, context)
    })
  }
}

/** Runs a command with what was typed, after checking everything that can be checked before it does anything. */
async function runCommand(
  definition: CommandDefinition,
  words: readonly string[],
  options: GlobalOptions & Record<string, unknown>,
  line: CommandLine,
  argv: readonly string[],
  context: Context,
): Promise<void> {
  const { output, toleratesDamagedConfig: tolerates } = definition
  const tolerance = typeof tolerates === 'function' ? tolerates(options) : tolerates
  const settings = await resolveSettings(options, argv, context, tolerance !== undefined, {
    ...output,
    fieldsIn: (format) => fieldsIn(output, format),
  })
  if (options.fields === true) return listFields(settings, output, context)
  requireArguments(words, line, definition)
  checkFields(settings, output)
  if (settings.configProblem !== undefined && tolerance === 'with a warning') {
    await warn(`${settings.configProblem.message}; going on without it`, context, settings)
  }
  if (definition.account === 'sometimes') await warnOfUnknownProfile(settings, context)
  const run = (...where: [Context, Settings]) =>
    definition.run({ arguments: words, options }, createIo(...where))
  if (definition.changes) return run({ ...context, stdout: untilClosed(context, settings) }, settings)
  if (!output.paged || !context.stdout.isTTY) return run(context, settings)
  const { withPager } = await import('../terminal/pager.ts')
  await withPager(run, context, settings)
}

/**
 * Without an account a command would find nothing in a mistyped profile, and say nothing. With an API key, or a session in etcd,
 * this machine needn't know the profile.
 */
async function warnOfUnknownProfile(settings: Settings, context: Context): Promise<void> {
  const { profile, config } = settings
  const needsProfile = context.environment.apiKey === undefined && !isShared(settings)
  if (!needsProfile || profile.value === DEFAULT_PROFILE || Object.hasOwn(config.profiles, profile.value))
    return
  const { unknownProfile } = await import('../session/profiles.ts')
  const unknown = unknownProfile(profile.value, context, settings)
  if (unknown !== undefined) await warn(unknown, context, settings)
}

/** What a group holds, in one line of the program's help: its commands, and what they are for if there is space. */
function summaryOf({ summary, commands }: CommandGroup): string {
  const words = Object.keys(commands).join(', ')
  const whole = `${summary}: ${words}`
  return whole.length <= SUMMARY_WIDTH ? whole : words
}

/** Prints the fields that `--fields` can name, one a line. */
async function listFields(
  { format }: Settings,
  output: OutputDefinition,
  { stdout }: Pick<Context, 'stdout'>,
): Promise<void> {
  const fields = fieldsIn(output, format) ?? output.fields
  await stdout.write(format === 'json' ? `${JSON.stringify(fields)}\n` : `${fields.join('\n')}\n`)
}

/** @throws CliError exit 2 for a field that can't be in what the command prints, before it does anything. */
function checkFields(settings: Settings, output: OutputDefinition): void {
  if (settings.fields === undefined) return
  if (fieldsIn(output, settings.format) === undefined) throw noFieldsError(settings.format)
  const [unlisted] = unlistedFields(settings)
  if (unlisted !== undefined && !output.open) throw unknownFieldError(unlisted, settings)
}

/** What a newcomer reads below the help: that nothing is configured yet, and where to start. */
async function welcome(
  program: Command,
  context: Pick<Context, 'environment' | 'directories'>,
): Promise<string> {
  const { environment } = context
  if (environment.settings['base_url'] !== undefined || environment.apiKey !== undefined) return ''
  const { config, problem } = await readUsableConfig(context)
  // Someone with a configuration is not a newcomer, even if it can't be read: the next command will say so.
  if (problem !== undefined || Object.keys(config.profiles).length > 0) return ''
  return `\n${wrapped(PROGRAM.welcome, program)}\n`
}
