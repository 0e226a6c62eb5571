import { Command, CommanderError } from 'commander'
import { type CommandDefinition, type CommandTree, collectSelectableFields } from '../commands/definition.ts'
import { createGlobalOptions, formatArgumentHelp, getOptionsInHelp, ROOT_HELP } from '../commands/options.ts'
import { commandTree } from '../commands/tree.ts'
import type { Context } from '../context.ts'
import { Exit, type ExitCode, usageError } from '../errors.ts'
import { type GivenOptions, resolveSettings, type Settings, usesEtcdStore } from '../settings/settings.ts'
import { createPalette, type Palette, usesColor } from '../terminal/color.ts'
import { createIo, ignoreClosedStdout } from '../terminal/io.ts'
import {
  computeHelpWidth,
  createHelpConfiguration,
  formatHelpFooter,
  formatWelcomeScreen,
  GLOBAL_OPTIONS_REFERENCE,
  GLOBAL_OPTIONS_TITLE,
} from './help.ts'
import { isCommandGroup, loadCommand, type SplitArgv, splitArgv } from './line.ts'
import { addOptions, checkOptionRelations, readGivenOptions } from './options.ts'
import { asksForJson, convertCommanderError } from './print-error.ts'

/**
 * Parses a command line with commander, and runs its command.
 *
 * @param argv the arguments after `mailclaim`
 * @returns 0; or 2 after the help of a group that was given without a command
 * @throws CliError for a command line that can't be parsed, usually exit 2; the error of the command
 */
export async function runCommandLine(argv: readonly string[], context: Context): Promise<ExitCode> {
  const line = splitArgv(argv)
  const definition = await loadCommand(line)
  const printed = { out: '', err: '' }
  const palette = await createPalette(
    usesColor(context.environment, argv.includes('--no-color') ? false : undefined, context.stdout),
  )
  const root = buildRootCommand(line, definition, argv, context, printed, palette)
  try {
    await root.parseAsync(commanderArguments(line), { from: 'user' })
    return Exit.done
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && !asksForJson(argv)) {
      const isRoot = line.node === undefined
      if (isRoot) await context.stdout.write(formatWelcomeScreen(root, palette))
      else await context.stderr.write(printed.err)
      // `mailclaim` without arguments exits 0, because new users type it first; a group without a command is a usage error.
      return isRoot ? Exit.done : Exit.usage
    }
    if (error.exitCode !== 0) throw convertCommanderError(error, line, definition)
    await context.stdout.write(printed.out)
    return Exit.done
  }
}

/**
 * Returns the arguments for commander, which expects the command's path in front of other arguments. `help login` becomes `login
 * --help`.
 */
function commanderArguments(line: SplitArgv): string[] {
  // Leave out all arguments after the unknown word: commander then fails with an error that suggests similar commands.
  if (line.unknownWord !== undefined) return [...line.path, line.unknownWord]
  if (line.isHelp) return [...line.path, '--help']
  return [...line.path, ...line.rest]
}

/**
 * Builds commander's root command: with only the typed command and its options, or, if the command isn't known, with the names
 * of commands, for help and suggestions.
 */
function buildRootCommand(
  line: SplitArgv,
  definition: CommandDefinition | undefined,
  argv: readonly string[],
  context: Context,
  printed: { out: string; err: string },
  palette: Palette,
): Command {
  const root = new Command('mailclaim')
  const width = computeHelpWidth(context.stdout)
  root
    .description(ROOT_HELP.description)
    .usage('<command> [options]')
    .version(context.installation.version, '-V, --version', ROOT_HELP.version)
    .configureHelp(createHelpConfiguration(width, palette))
    .exitOverride()
    .showSuggestionAfterError(true)
    .helpOption('-h, --help', ROOT_HELP.help)
    .helpCommand(false)
    // Collect commander's output in `printed`: it is written later through the context, which handles backpressure and EPIPE.
    .configureOutput({
      writeOut: (text) => {
        printed.out += text
      },
      writeErr: (text) => {
        printed.err += text
      },
      outputError: () => {},
      // Keep commander from stripping colors: the palette has none if color is off.
      getOutHasColors: () => true,
      // Tell commander width and colors: otherwise it would open the standard streams to read these, even if it prints no help.
      getOutHelpWidth: () => width,
      getErrHelpWidth: () => width,
      getErrHasColors: () => true,
    })
  root.addHelpText('after', `\nStart with: mailclaim login\nWithout an account: mailclaim sandbox`)
  if (definition === undefined) addOptions(root, createGlobalOptions(), GLOBAL_OPTIONS_TITLE)
  addLevel(root, commandTree, [])
  return root

  function addLevel(parent: Command, level: CommandTree, path: readonly string[]): void {
    for (const [word, node] of Object.entries(level)) {
      const isTyped = word === line.path[path.length]
      // If the typed command is known, create commander's object for no other command: the start is faster.
      if (definition !== undefined && !isTyped) continue
      const command = parent.command(word).copyInheritedSettings(parent).helpCommand(false)
      command
        .summary(node.summary)
        .description(`${node.summary.charAt(0).toUpperCase()}${node.summary.slice(1)}.`)
      if (node.heading !== undefined) command.helpGroup(`${node.heading}:`)
      if (!isCommandGroup(node)) {
        if (definition !== undefined) addDefinition(command, definition)
        continue
      }
      command.usage('<command> [options]').addHelpText('after', `\n${GLOBAL_OPTIONS_REFERENCE}`)
      // With `--` in the arguments, add the commands of all groups: unlike `splitArgv`, commander also looks for a command after
      // `--`, as in `mailclaim -- config list`.
      if (isTyped || line.rest.includes('--')) {
        if (definition === undefined) addOptions(command, createGlobalOptions(), GLOBAL_OPTIONS_TITLE)
        addLevel(command, node.commands, [...path, word])
      }
    }
  }

  function addDefinition(command: Command, definition: CommandDefinition): void {
    command.description(definition.description)
    command.usage([...(definition.arguments ?? []).map(({ syntax }) => syntax), '[options]'].join(' '))
    const own = getOptionsInHelp(definition)
    const globals = createGlobalOptions(definition).filter(({ flags }) =>
      own.every((option) => option.flags !== flags),
    )
    for (const argument of definition.arguments ?? [])
      command.argument(argument.syntax, formatArgumentHelp(argument))
    addOptions(command, own, 'Options:')
    addOptions(command, globals, GLOBAL_OPTIONS_TITLE)
    command.addHelpText('after', () => formatHelpFooter(definition.examples, palette, width))
    command.action(() => {
      const options: GivenOptions & Record<string, unknown> = readGivenOptions(command)
      checkOptionRelations([...own, ...globals], options)
      return runCommand(definition, command.args, options, argv, context)
    })
  }
}

/**
 * Resolves the settings, checks `--fields` and, for a command that requires a credential, the profile; then runs the command.
 */
async function runCommand(
  definition: CommandDefinition,
  words: readonly string[],
  options: GivenOptions & Record<string, unknown>,
  argv: readonly string[],
  context: Context,
): Promise<void> {
  const { output, toleratesDamagedConfig = false, toleratesClosedPipe, run } = definition
  const settings = await resolveSettings(options, argv, context, output.usualFormat)
  if (settings.configProblem !== undefined && !toleratesDamagedConfig) throw settings.configProblem
  checkFieldsOption(settings, definition)
  if (definition.account === 'signed_in') await checkProfile(settings, context)
  const io = createIo(toleratesClosedPipe ? ignoreClosedStdout(context, settings) : context, settings)
  if (io.environment.tlsUnchecked)
    await io.warn(
      'whoever answers gets the credential: certificates are not checked (NODE_TLS_REJECT_UNAUTHORIZED=0)',
    )
  // With `--verbose`, log each HTTP exchange on stderr.
  const http = settings.verbose ? (await import('../service/log.ts')).createLoggingTransport(io) : io.http
  try {
    await run({ arguments: words, options }, { ...io, http })
  } finally {
    await io.progress.end()
  }
}

/**
 * Checks that the profile is known: otherwise a mistyped profile would be reported as a missing base URL or session. With
 * MAILCLAIM_API_KEY or the store `etcd`, any profile is accepted, because the profile needs no files on this machine.
 *
 * @throws CliError exit 2, as `requireKnownProfile`
 */
async function checkProfile(settings: Settings, context: Context): Promise<void> {
  const { profile, config } = settings
  if (context.environment.apiKey !== undefined || usesEtcdStore(settings)) return
  if (profile.source === 'default' || Object.hasOwn(config.profiles, profile.value)) return
  const { requireKnownProfile } = await import('../session/profiles.ts')
  requireKnownProfile(profile.value, context, settings)
}

/**
 * Checks that the output has the fields of `--fields`.
 *
 * @throws CliError exit 2 for an unknown field, or with a format other than table and tsv
 */
function checkFieldsOption({ fields, format }: Settings, { output }: CommandDefinition): void {
  if (fields === undefined) return
  if (format !== 'table' && format !== 'tsv')
    throw usageError(`--fields can't be used with --format ${format}`, 'choose fields of JSON with jq')
  const known = collectSelectableFields(output)
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
