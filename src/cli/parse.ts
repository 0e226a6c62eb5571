import { Command, CommanderError } from 'commander'
import { type CommandDefinition, knownFields } from '../commands/definition.ts'
import { argumentText, globalOptions, PROGRAM, shownOptions } from '../commands/program.ts'
import { tree } from '../commands/tree.ts'
import type { Context } from '../context.ts'
import { Exit, type ExitCode, usageError } from '../errors.ts'
import { type GlobalOptions, isShared, resolveSettings, type Settings } from '../settings/settings.ts'
import { createPalette, hasColor, type Palette } from '../terminal/color.ts'
import { createIo, type Io, untilClosed } from '../terminal/io.ts'
import {
  formatExamples,
  formatFirstScreen,
  GLOBAL_OPTIONS_LINE,
  GLOBAL_OPTIONS_TITLE,
  helpConfiguration,
  helpWidth,
} from './help.ts'
import { type CommandLine, type CommandNode, isGroup, loadDefinition, parseLine } from './line.ts'
import { addOptions, checkRelations, readGivenOptions } from './options.ts'
import { asksForJson, toUsageError } from './print-error.ts'

/**
 * Parses a command line with commander and runs its command.
 *
 * @param argv the words after the program's name.
 * @throws CliError exit 2 for a command line that can't be understood; whatever the command throws.
 */
export async function runCommandLine(argv: readonly string[], context: Context): Promise<ExitCode> {
  const line = parseLine(argv)
  const definition = await loadDefinition(line)
  const printed = { out: '', err: '' }
  const palette = await createPalette(
    hasColor(context.environment, argv.includes('--no-color') ? false : undefined, context.stdout),
  )
  const program = buildProgram(line, definition, argv, context, printed, palette)
  try {
    await program.parseAsync(commanderArguments(line), { from: 'user' })
    return Exit.done
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && !asksForJson(argv)) {
      // The program's name alone is not a mistake, but the first thing that people type.
      const isProgram = line.node === undefined
      if (isProgram) await context.stdout.write(formatFirstScreen(program, palette))
      else await context.stderr.write(printed.err)
      return isProgram ? Exit.done : Exit.usage
    }
    if (error.exitCode !== 0) throw toUsageError(error, line, definition)
    await context.stdout.write(printed.out)
    return Exit.done
  }
}

/** The words in the order that commander understands: the command's name first. */
function commanderArguments(line: CommandLine): string[] {
  // Commander then reports an unknown command, and similar ones.
  if (line.unknownWord !== undefined) return [...line.words, line.unknownWord]
  if (line.isHelp) return [...line.words, '--help']
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
  const width = helpWidth(context.stdout)
  program
    .description(PROGRAM.description)
    .usage('<command> [options]')
    .version(context.program.version, '-V, --version', PROGRAM.version)
    .configureHelp(helpConfiguration(width, palette))
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
      getOutHelpWidth: () => width,
      getErrHelpWidth: () => width,
      getErrHasColors: () => true,
    })
  program.addHelpText('after', `\nStart with: mailclaim login\nWithout an account: mailclaim sandbox`)
  if (definition === undefined) addOptions(program, globalOptions(), GLOBAL_OPTIONS_TITLE)
  addLevel(program, tree, [])
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
      const command = parent.command(word).copyInheritedSettings(parent).helpCommand(false)
      command
        .summary(node.summary)
        .description(`${node.summary.charAt(0).toUpperCase()}${node.summary.slice(1)}.`)
      if (node.heading !== undefined) command.helpGroup(`${node.heading}:`)
      if (!isGroup(node)) {
        if (definition !== undefined) addDefinition(command, definition)
        continue
      }
      command.usage('<command> [options]').addHelpText('after', `\n${GLOBAL_OPTIONS_LINE}`)
      // Commander itself looks for a command after `--`.
      if (typed || line.rest.includes('--')) {
        if (definition === undefined) addOptions(command, globalOptions(), GLOBAL_OPTIONS_TITLE)
        addLevel(command, node.commands, [...above, word])
      }
    }
  }

  function addDefinition(command: Command, definition: CommandDefinition): void {
    command.description(definition.description)
    command.usage([...(definition.arguments ?? []).map(({ syntax }) => syntax), '[options]'].join(' '))
    const own = shownOptions(definition)
    const globals = globalOptions(definition).filter(({ flags }) =>
      own.every((option) => option.flags !== flags),
    )
    for (const argument of definition.arguments ?? [])
      command.argument(argument.syntax, argumentText(argument))
    addOptions(command, own, 'Options:')
    addOptions(command, globals, GLOBAL_OPTIONS_TITLE)
    command.addHelpText('after', () => formatExamples(definition.examples, palette, width))
    command.action(() => {
      const options: GlobalOptions & Record<string, unknown> = readGivenOptions(command)
      checkRelations([...own, ...globals], options)
      return runCommand(definition, command.args, options, argv, context)
    })
  }
}

/** Runs a command with what was typed, after checking everything that can be checked before it does anything. */
async function runCommand(
  definition: CommandDefinition,
  words: readonly string[],
  options: GlobalOptions & Record<string, unknown>,
  argv: readonly string[],
  context: Context,
): Promise<void> {
  const { output, toleratesDamagedConfig = false, changes, run } = definition
  const settings = await resolveSettings(options, argv, context, output.usualFormat)
  if (settings.configProblem !== undefined && !toleratesDamagedConfig) throw settings.configProblem
  checkFieldsOption(settings, definition)
  if (definition.account === 'signed_in') await checkProfile(settings, context)
  const io = createIo(changes ? untilClosed(context, settings) : context, settings)
  if (io.environment.tlsUnchecked)
    await io.warn(
      'whoever answers gets the credential: certificates are not checked (NODE_TLS_REJECT_UNAUTHORIZED=0)',
    )
  try {
    await run({ arguments: words, options }, settings.verbose ? await addRequestLog(io) : io)
  } finally {
    await io.progress.end()
  }
}

async function addRequestLog(io: Io): Promise<Io> {
  const { logExchanges } = await import('../service/log.ts')
  return { ...io, http: logExchanges(io) }
}

/**
 * A mistyped profile is named as such, before anything says that it lacks a base URL or a session. With an API key, or a
 * session in etcd, this machine needn't know the profile.
 *
 * @throws CliError exit 2 for a profile that has no setting, session or remembered claim
 */
async function checkProfile(settings: Settings, context: Context): Promise<void> {
  const { profile, config } = settings
  if (context.environment.apiKey !== undefined || isShared(settings)) return
  if (profile.source === 'default' || Object.hasOwn(config.profiles, profile.value)) return
  const { requireKnownProfile } = await import('../session/profiles.ts')
  requireKnownProfile(profile.value, context, settings)
}

/** @throws CliError exit 2 for a field that can't be in what the command prints, before it does anything. */
function checkFieldsOption({ fields, format }: Settings, { output }: CommandDefinition): void {
  if (fields === undefined) return
  if (format !== 'table' && format !== 'tsv')
    throw usageError(`--fields can't be used with --format ${format}`, 'choose fields of JSON with jq')
  const known = knownFields(output)
  const unknown = fields.find((field) => {
    const path = field.replaceAll(/\.\d+(?=\.|$)/g, '')
    return !known.some((one) => one === path || one.startsWith(`${path}.`))
  })
  if (unknown !== undefined)
    throw usageError(
      `--fields: unknown field ${JSON.stringify(unknown)}`,
      `the fields are ${known.join(', ')}`,
    )
}
