import { Command, Help } from 'commander'
import { type CommandDefinition, exitCodesOf, fieldLists, objectsOf } from '../commands/definition.ts'
import { EVENTS_TITLE, EXIT_CODES } from '../commands/program.ts'
import type { Output } from '../context.ts'
import type { Palette } from '../terminal/color.ts'

/** The width if nothing says it, and for documentation and pipes. */
const USUAL_WIDTH = 80
/** Longer lines are hard to read, however wide the window is. */
const WIDEST = 100
/** In a narrower window a description stands under its term, not beside it. */
const NARROW = 60
const NARROWEST = 20
/** Stands for a space where no line may break: commander breaks at any other. */
const TIE = '\0'

/** The group of the options of every command, which one topic of help shows for all. */
export const GLOBAL_OPTIONS_TITLE = 'Global options:'

/** The width of help in columns. */
export function helpWidth(output: Pick<Output, 'columns'>): number {
  return Math.max(NARROWEST, Math.min(output.columns ?? USUAL_WIDTH, WIDEST))
}

/** How commander formats help: at any width, with nothing cut, and without the options of every command. */
export function helpLayout(width: number, palette: Palette): Partial<Help> {
  const narrow = width < NARROW
  return {
    helpWidth: width,
    minWidthToWrap: NARROWEST - 4,
    styleTitle: palette.heading,
    subcommandTerm: (command) => (narrow ? command.name() : besideItsGroup(command)),
    formatHelp(command, helper) {
      const options = command.commands.length > 0 ? [] : helper.visibleOptions(command)
      const own = options.filter(({ helpGroupHeading }) => helpGroupHeading !== GLOBAL_OPTIONS_TITLE)
      // Only here: commander also takes what it suggests for a mistyped option from the visible ones.
      const brief = Object.assign(Object.create(helper) as Help, { visibleOptions: () => own })
      return breakUsage(Help.prototype.formatHelp.call(brief, command, brief), command, helper, width)
    },
    ...(narrow
      ? {
          formatItem(term, _termWidth, description, helper) {
            if (description === '') return `  ${term}`
            return `  ${term}\n${indent(helper.boxWrap(description, width - 6), 6)}`
          },
        }
      : {
          groupItems: (_all, visible) =>
            new Map([[visible[0] instanceof Command ? 'Commands:' : 'Options:', visible]]),
        }),
  }
}

/** A command's name in a column beside the names of the groups; a group is named once. */
function besideItsGroup(command: Command): string {
  const groups = command.parent?.commands.map((sibling) => sibling.helpGroup().replace(/:$/, '')) ?? []
  const column = Math.max(...groups.map((group) => group.length))
  if (column === 0) return command.name()
  const at = command.parent?.commands.indexOf(command) ?? 0
  const group = groups[at] === groups[at - 1] ? '' : (groups[at] ?? '')
  return `${group.padEnd(column)}  ${command.name()}`
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

/** Where the options of every command are, instead of them. */
export function globalOptionsLine(command: Command): string {
  return `\n${layoutOf(command).helper.styleTitle(GLOBAL_OPTIONS_TITLE)} mailclaim help options`
}

/** What follows the options in a command's help: examples, fields, events and exit codes. */
export function helpAfter({ examples, output, ...definition }: CommandDefinition, command: Command): string {
  const lists = fieldLists(output).map(([title, names]) => {
    const brief =
      names === output.events
        ? `${objectsOf(names).join(', ')} (--fields --format jsonl lists them all)`
        : names.join(', ')
    return enumeration(`${title}:`, brief, command)
  })
  const meanings = exitCodesOf(definition).map(
    (code) => `${code}${TIE}${EXIT_CODES[code].meaning.split(/[,:]/)[0]}`,
  )
  return [
    globalOptionsLine(command),
    exampleList(examples, command),
    ...lists,
    ...(definition.events === undefined
      ? []
      : [itemList(EVENTS_TITLE, Object.entries(definition.events), command)]),
    enumeration('Exit codes (mailclaim help exit-codes):', meanings.join(', '), command),
  ].join('\n\n')
}

/** Command lines, each below what it does. */
export function exampleList(examples: CommandDefinition['examples'], command: Command): string {
  const { helper, width } = layoutOf(command)
  const items = Object.entries(examples).map(
    ([line, description]) =>
      `${comment(reflow(description), width, helper)}\n${wrapCommandLine(line, width)}`,
  )
  return `${helper.styleTitle('Examples:')}\n${items.join('\n\n')}`
}

/** Terms below a title, each beside its description. */
export function itemList(
  title: string,
  items: readonly (readonly [term: string, description: string])[],
  command: Command,
): string {
  const { helper, width } = layoutOf(command)
  const termWidth = Math.max(...items.map(([term]) => term.length))
  return [
    helper.styleTitle(helper.boxWrap(title, width)),
    ...items.map(([term, description]) => helper.formatItem(term, termWidth, description, helper)),
  ].join('\n')
}

/** Text below a title. */
function enumeration(title: string, text: string, command: Command): string {
  const { helper, width } = layoutOf(command)
  const lines = helper.boxWrap(text, width - 2).replaceAll(TIE, ' ')
  return `${helper.styleTitle(helper.boxWrap(title, width))}\n${indent(lines, 2)}`
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
