import { type Command, Help, type Option } from 'commander'
import type { CommandDefinition } from '../commands/definition.ts'
import type { Output } from '../context.ts'
import type { Palette } from '../terminal/color.ts'

/** Columns of help text if the output has no width, such as a pipe or the generated documentation. */
const DEFAULT_WIDTH = 80
/** Maximum columns of help text, also in a wider window: longer lines are hard to read. */
const MAX_WIDTH = 100
/** Minimum columns of help text, also in a narrower window. */
const MIN_WIDTH = 40

/** Heading of the global options, which only `mailclaim --help` lists. */
export const GLOBAL_OPTIONS_TITLE = 'Global options:'

/** Returns the width of help text in columns. */
export function computeHelpWidth(output: Pick<Output, 'columns'>): number {
  return Math.max(MIN_WIDTH, Math.min(output.columns ?? DEFAULT_WIDTH, MAX_WIDTH))
}

/** Returns commander's help configuration: a command's help omits global options, and `--[no-]x` is one line. */
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
      // Filter the options in a copy that is used for help only: commander also takes its suggestions for a mistyped option from
      // `visibleOptions`, so the original must list all.
      const brief = Object.assign(Object.create(helper) as Help, {
        visibleOptions: () => own,
        optionTerm: (option: Option) =>
          visible.some((other) => isOpposite(option, other)) ? `--[no-]${option.name()}` : option.flags,
      })
      return Help.prototype.formatHelp.call(brief, command, brief)
    },
  }
}

/** Returns the output of `mailclaim` without arguments, which fits a terminal of 24 lines and 80 columns. */
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

/** Whether the options are a pair of `--x` and `--no-x`. */
function isOpposite(one: Option, other: Option): boolean {
  return one.negate !== other.negate && one.attributeName() === other.attributeName()
}

/** Returns the end of a command's help: its examples, and a line that points to the global options. */
export function formatHelpFooter(
  examples: CommandDefinition['examples'],
  { strong }: Palette,
  width: number,
): string {
  const lines = Object.entries(examples).map(([line, does]) =>
    line.length + does.length + 6 <= width ? `  ${line}  # ${does}` : `  ${line}`,
  )
  return `\n${strong('Examples:')}\n${lines.join('\n')}\n\n${GLOBAL_OPTIONS_LINE}`
}

export const GLOBAL_OPTIONS_LINE = 'Options of every command: mailclaim --help'
