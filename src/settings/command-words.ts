import { usageError } from '../errors.ts'

/** What a shell would act on; a tilde only where a word begins. */
const SHELL_SYNTAX = /[|;&<>$`]/

/**
 * Splits a command into its words, as a POSIX shell does, but without expanding anything: spaces separate words; nothing is
 * special inside '…'; inside "…" a backslash escapes only `"` and `\`, and elsewhere any character. On Windows, whose paths
 * have backslashes, a backslash is a character like any other.
 *
 * @param option where the command comes from, for the message
 * @throws CliError exit 2 if it is empty, a quotation mark isn't closed, or something outside of quotes needs a shell
 */
export function commandWords(
  text: string,
  option: string,
  platform: NodeJS.Platform,
): [file: string, ...args: string[]] {
  const escapes = platform !== 'win32'
  const words: string[] = []
  let word: string | undefined
  let quote: string | undefined
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at)
    const next = text.charAt(at + 1)
    if (character === quote) quote = undefined
    else if (quote === "'") word += character
    else if (character === '\\' && escapes && next !== '' && (quote === undefined || /["\\]/.test(next))) {
      word = (word ?? '') + next
      at++
    } else if (quote !== undefined) word += character
    else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (SHELL_SYNTAX.test(character) || (character === '~' && word === undefined)) {
      throw usageError(
        `${option}: no shell reads the command, so ${JSON.stringify(character)} would have no effect`,
        `put it in quotation marks if it belongs to a word, or name a shell: ${option} "sh -c '…'"`,
      )
    } else word = (word ?? '') + character
  }
  if (quote !== undefined) throw usageError(`${option}: a quotation mark (${quote}) isn't closed`)
  if (word !== undefined) words.push(word)
  const [file, ...args] = words
  if (!file) throw usageError(`${option}: the command is empty`, 'name a program, such as ./publish.sh')
  return [file, ...args]
}
