import { type Command, Help, type Option } from 'commander'
import type { CommandDefinition } from '../commands/definition.ts'
import type { Output } from '../context.ts'
import type { Palette } from '../terminal/color.ts'

/** The width if nothing says it, and for documentation and pipes. */
const DEFAULT_WIDTH = 80
/** Longer lines are hard to read, however wide the window is. */
const MAX_WIDTH = 100
const MIN_WIDTH = 40

/** The group of the options of every command, which only the help of the program shows. */
export const GLOBAL_OPTIONS_TITLE = 'Global options:'

/** The width of help in columns. */
export function helpWidth(output: Pick<Output, 'columns'>): number {
  return Math.max(MIN_WIDTH, Math.min(output.columns ?? DEFAULT_WIDTH, MAX_WIDTH))
}

/** How commander formats help: without the options of every command, and with one line for `--x` and `--no-x`. */
export function helpConfiguration(width: number, palette: Palette): Partial<Help> {
  return {
    helpWidth: width,
    minWidthToWrap: 20,
    styleTitle: palette.strong,
    subcommandTerm: (command) => command.name(),
    formatHelp(command, helper) {
      const visible = helper.visibleOptions(command)
      const isProgram = command.parent === null
      const own = visible.filter(
        (option) =>
          (isProgram || option.helpGroupHeading !== GLOBAL_OPTIONS_TITLE) &&
          !(option.negate && visible.some((other) => isOpposite(option, other))),
      )
      // Only here: commander also takes what it suggests for a mistyped option from the visible ones.
      const brief = Object.assign(Object.create(helper) as Help, {
        visibleOptions: () => own,
        optionTerm: (option: Option) =>
          visible.some((other) => isOpposite(option, other)) ? `--[no-]${option.name()}` : option.flags,
      })
      return Help.prototype.formatHelp.call(brief, command, brief)
    },
  }
}

/** What the program's name alone prints, on a screen of 24 lines and 80 columns; its help has all the options. */
export function formatFirstScreen(program: Command, { strong }: Palette): string {
  const commands = program.commands.map((command) => `  ${command.name().padEnd(11)} ${command.summary()}`)
  return `${program.description()}

${strong('To begin:')}
  mailclaim login              sign in
  mailclaim claim example.com  claim a domain
  mailclaim sandbox            or try it without an account

${strong('Commands:')}
${commands.join('\n')}

Every option: mailclaim --help. One command: mailclaim help claim
`
}

/** Whether one of the two is `--x` and the other `--no-x`. */
function isOpposite(one: Option, other: Option): boolean {
  return one.negate !== other.negate && one.attributeName() === other.attributeName()
}

/** What follows the options in a command's help: examples, and where the other options are. */
export function formatExamples(
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
