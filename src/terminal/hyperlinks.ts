import type { Context, Output } from '../context.ts'
import { withWrite } from './derived-output.ts'

/** Values of `TERM_PROGRAM` and `TERM` of terminals that have hyperlinks in every version that is still in use. */
const PROGRAMS = /^(?:iTerm\.app|WezTerm|vscode|ghostty|zed|WarpTerminal|Tabby|rio)$/
const TERMS = /^(?:xterm-kitty|xterm-ghostty|alacritty|foot|contour|wezterm)/

/** The first VTE (GNOME Terminal and others) that has them without crashing, as in `VTE_VERSION`. */
const FIRST_VTE = 5001

/**
 * Whether the terminal is known to show hyperlinks (OSC 8). `FORCE_HYPERLINK` decides for those that aren't; what is between,
 * such as tmux or screen, may not pass them on.
 */
export function supportsHyperlinks(variables: Readonly<Record<string, string | undefined>>): boolean {
  const { FORCE_HYPERLINK, TERM = '', TERM_PROGRAM = '', VTE_VERSION, WT_SESSION, TMUX, STY } = variables
  if (TERM === 'dumb') return false
  if (FORCE_HYPERLINK) return !/^(?:0|false)$/i.test(FORCE_HYPERLINK)
  if (TMUX || STY || /^(?:screen|tmux)/.test(TERM)) return false
  return (
    PROGRAMS.test(TERM_PROGRAM) || TERMS.test(TERM) || Boolean(WT_SESSION) || Number(VTE_VERSION) >= FIRST_VTE
  )
}

/** The web addresses in a text of the program itself, such as where a DNS host's customers edit records. */
export function addressesIn(text = ''): string[] {
  return text.match(/https?:\/\/[^\s()]+/g) ?? []
}

/**
 * An output on which these addresses are hyperlinks, even where they are wrapped: a click opens all of it. The text itself
 * doesn't change. Links don't depend on color; they are only for a terminal, and not for CI.
 *
 * @param addresses only what the program itself writes, nothing from outside; the array may grow. One that isn't http or
 *   https stays as it is.
 */
export function withLinks(
  output: Output,
  addresses: readonly string[],
  { hyperlinks, ci }: Pick<Context['environment'], 'hyperlinks' | 'ci'>,
): Output {
  if (!hyperlinks || ci || !output.isTTY) return output
  return withWrite(output, (text) => output.write(linked(text, addresses)))
}

function linked(text: string, addresses: readonly string[]): string {
  const targets = addresses.flatMap((address) => {
    const target = targetOf(address)
    return target === undefined ? [] : [{ target, wrapped: wrappedPattern(address) }]
  })
  if (targets.length === 0) return text
  // In one pass, so that nothing is searched for in a target.
  const any = new RegExp(targets.map(({ wrapped }) => `(${wrapped})`).join('|'), 'g')
  return text.replace(any, (found, ...groups) => {
    const { target } = targets[groups.findIndex((group) => group !== undefined)] ?? { target: '' }
    return found.replace(/\S+/g, (piece) => `\x1b]8;id=mailclaim;${target}\x1b\\${piece}\x1b]8;;\x1b\\`)
  })
}

/** Matches the address, with line breaks and indents in it. */
function wrappedPattern(address: string): string {
  return Array.from(address, (character) => character.replace(/[^\w]/, '\\$&')).join('(?:\\n *)?')
}

/**
 * What the terminal opens: the address as URLs are serialized, without any character that could end the sequence. The pieces
 * of a wrapped address have one identifier, so that they are one link.
 */
function targetOf(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined
  return url?.protocol === 'https:' || url?.protocol === 'http:' ? url.href : undefined
}
