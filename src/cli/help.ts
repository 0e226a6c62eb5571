import { type Command, Help, type Option } from 'commander'
import type { CommandDefinition } from '../commands/definition.ts'
import type { OutputStream } from '../context.ts'
import type { Palette } from '../terminal/color.ts'

/** Width of help text in columns if the output has none, such as a pipe. */
const DEFAULT_WIDTH = 80
/** Maximum width of help text in columns: longer lines are hard to read. */
const MAX_WIDTH = 100
const MIN_WIDTH = 40

/** Heading of the global options in `mailclaim --help`. The help of a command or group refers to `mailclaim --help` for them. */
export const GLOBAL_OPTIONS_TITLE = 'Global options:'

export function computeHelpWidth(output: Pick<OutputStream, 'columns'>): number {
  return Math.max(MIN_WIDTH, Math.min(output.columns ?? DEFAULT_WIDTH, MAX_WIDTH))
}

/** Returns commander's help configuration: only the root's help has all global options, and `--x` and `--no-x` share a line. */
export function createHelpConfiguration(width: number, palette: Palette): Partial<Help> {
  return {
    helpWidth: width,
    minWidthToWrap: 20,
    styleTitle: palette.strong,
    subcommandTerm: (command) => command.name(),
    formatHelp(command, helper) {
      const visible = helper.visibleOptions(command)
      const isRoot = command.parent === null
      const own = visible.filter(
        (option) =>
          (isRoot || option.helpGroupHeading !== GLOBAL_OPTIONS_TITLE) &&
          !(option.negate && visible.some((other) => isOpposite(option, other))),
      )
      // Filter the options in a copy of the helper: commander also looks for suggestions for a mistyped option in
      // `visibleOptions`, so the original must return all.
      const brief = Object.assign(Object.create(helper) as Help, {
        visibleOptions: () => own,
        optionTerm: (option: Option) =>
          visible.some((other) => isOpposite(option, other)) ? `--[no-]${option.name()}` : option.flags,
      })
      return Help.prototype.formatHelp.call(brief, command, brief)
    },
  }
}

/** Returns the text that `mailclaim` without arguments prints. The text fits a terminal of 24 lines and 80 columns. */
export function formatWelcomeScreen(root: Command, { strong }: Palette): string {
  const commands = root.commands.map((command) => `  ${command.name().padEnd(11)} ${command.summary()}`)
  return `${root.description()}

${strong('To begin:')}
  mailclaim login              sign in
  mailclaim claim example.com  claim a domain
  mailclaim sandbox            or try it without an account

${strong('Commands:')}
${commands.join('\n')}

Every option: mailclaim --help. One command: mailclaim help claim
`
}

function isOpposite(one: Option, other: Option): boolean {
  return one.negate !== other.negate && one.attributeName() === other.attributeName()
}

/**
 * Returns the end of a command's help: its examples, and a reference to the global options. An example's description is left out
 * if the line would be wider than `width`.
 */
export function formatHelpFooter(
  examples: CommandDefinition['examples'],
  { strong }: Palette,
  width: number,
): string {
  const lines = Object.entries(examples).map(([line, does]) =>
    line.length + does.length + 6 <= width ? `  ${line}  # ${does}` : `  ${line}`,
  )
  return `\n${strong('Examples:')}\n${lines.join('\n')}\n\n${GLOBAL_OPTIONS_REFERENCE}`
}

export const GLOBAL_OPTIONS_REFERENCE = 'Options of every command: mailclaim --help'
