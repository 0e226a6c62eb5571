import { type Command, Help } from 'commander'
import { type CommandDefinition, exitCodesOf, fieldLists } from '../commands/definition.ts'
import { ENVIRONMENT, EVENTS_TITLE, EXIT_MEANINGS } from '../commands/program.ts'
import type { Output } from '../context.ts'
import type { ExitCode } from '../errors.ts'
import type { Palette } from '../terminal/color.ts'

/** The width if nothing says it, and for documentation and pipes. */
const USUAL_WIDTH = 80
/** Longer lines are hard to read, however wide the window is. */
const WIDEST = 100
/** In a narrower window a description stands under its term, not beside it. */
const NARROW = 60
const NARROWEST = 20

/** The width of help in columns. */
export function helpWidth(output: Pick<Output, 'columns'>): number {
  return Math.max(NARROWEST, Math.min(output.columns ?? USUAL_WIDTH, WIDEST))
}

/** How commander formats help: at any width, with nothing cut, and commands before options. */
export function helpLayout(width: number, palette: Palette): Partial<Help> {
  const narrow = width < NARROW
  return {
    helpWidth: width,
    minWidthToWrap: NARROWEST - 4,
    styleTitle: palette.heading,
    subcommandTerm: (command) => command.name(),
    formatHelp(command, helper) {
      const text =
        command.commands.length === 0
          ? Help.prototype.formatHelp.call(helper, command, helper)
          : commandsFirst(command, helper)
      return breakUsage(text, command, helper, width)
    },
    ...(narrow
      ? {
          formatItem(term, _termWidth, description, helper) {
            if (description === '') return `  ${term}`
            return `  ${term}\n${indent(helper.boxWrap(description, width - 6), 6)}`
          },
        }
      : {}),
  }
}

function commandsFirst(command: Command, helper: Help): string {
  const withoutOptions = Object.assign(Object.create(helper) as Help, { visibleOptions: () => [] })
  const termWidth = helper.longestOptionTermLength(command, helper)
  const options = helper
    .visibleOptions(command)
    .map((option) =>
      helper.formatItem(helper.optionTerm(option), termWidth, helper.optionDescription(option), helper),
    )
  return [
    Help.prototype.formatHelp.call(withoutOptions, command, withoutOptions).trimEnd(),
    '',
    helper.styleTitle('Global options:'),
    ...options,
    '',
  ].join('\n')
}

/** Commander never wraps the usage line: if it is too long, it moves below its title. */
function breakUsage(text: string, command: Command, helper: Help, width: number): string {
  const usage = helper.commandUsage(command)
  if (`Usage: ${usage}`.length <= width) return text
  const wrappedUsage = indent(helper.boxWrap(usage, width - 2), 2)
  return `${helper.styleTitle('Usage:')}\n${wrappedUsage}${text.slice(text.indexOf('\n'))}`
}

/** Joins the lines of each paragraph, to be wrapped later. */
export function reflow(text: string): string {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replace(/\s*\n\s*/g, ' '))
    .join('\n\n')
}

/** What follows the options in a command's help: examples and exit codes. */
export function helpAfter(definition: CommandDefinition, command: Command): string {
  const { helper, width } = layoutOf(command)
  const examples = Object.entries(definition.examples).map(
    ([line, description]) =>
      `${comment(reflow(description), width, helper)}\n${wrapCommandLine(line, width)}`,
  )
  return [
    '',
    helper.styleTitle('Examples:'),
    examples.join('\n\n'),
    '',
    ...fieldLists(definition.output).map(([title, names]) => fieldNames(`${title}:`, names, command)),
    ...(definition.events === undefined ? [] : [events(definition.events, command), '']),
    exitCodes('Exit codes:', exitCodesOf(definition), command),
  ].join('\n')
}

/** The events of a command whose JSON lines are events. */
function events(meanings: Readonly<Record<string, string>>, command: Command): string {
  const { helper, width } = layoutOf(command)
  const termWidth = Math.max(...Object.keys(meanings).map((name) => name.length))
  const items = Object.entries(meanings).map(([name, meaning]) =>
    helper.formatItem(name, termWidth, meaning, helper),
  )
  return [helper.styleTitle(helper.boxWrap(EVENTS_TITLE, width)), ...items].join('\n')
}

/** The fields that `--fields` can name. */
function fieldNames(title: string, fields: readonly string[], command: Command): string {
  const { helper, width } = layoutOf(command)
  return `${helper.styleTitle(title)}\n${indent(helper.boxWrap(fields.join(', '), width - 2), 2)}\n`
}

/** A list of exit codes with what they mean. */
export function exitCodes(title: string, codes: readonly ExitCode[], command: Command): string {
  const { helper, width } = layoutOf(command)
  const items = codes.map((code) => helper.formatItem(String(code), 3, EXIT_MEANINGS[code], helper))
  return [helper.styleTitle(helper.boxWrap(title, width)), ...items].join('\n')
}

/** The variables that the program reads. */
export function environmentVariables(command: Command): string {
  const { helper } = layoutOf(command)
  const termWidth = Math.max(...ENVIRONMENT.map(({ name }) => name.length))
  const items = ENVIRONMENT.map(({ name, description }) =>
    helper.formatItem(name, termWidth, description, helper),
  )
  return [helper.styleTitle('Environment (an option overrides it):'), ...items].join('\n')
}

/** Wraps text to the width of help. */
export function wrapped(text: string, command: Command): string {
  const { helper, width } = layoutOf(command)
  return helper.boxWrap(reflow(text), width)
}

function layoutOf(command: Command): { helper: Help; width: number } {
  const helper = command.createHelp()
  return { helper, width: helper.helpWidth ?? USUAL_WIDTH }
}

function comment(text: string, width: number, helper: Help): string {
  return helper.boxWrap(text, width - 4).replace(/^/gm, '  # ')
}

/** A command line as it can be pasted: if it is too long, it continues after a backslash. */
function wrapCommandLine(line: string, width: number): string {
  const lines: string[] = []
  let current = '  $'
  // Words with their quotes: a line break inside quotes would change the command.
  for (const word of line.match(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g) ?? []) {
    if (current.length + 1 + word.length > width - 2 && current.trim() !== '$' && current.trim() !== '') {
      lines.push(`${current} \\`)
      current = `     `
    }
    current += ` ${word}`
  }
  return [...lines, current].join('\n')
}

function indent(text: string, by: number): string {
  return text.replace(/^(?=.)/gm, ' '.repeat(by))
}
