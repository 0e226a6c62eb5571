/**
 * One word of a command line, quoted so that the person's shell passes it on unchanged: what a shell would not act on
 * stays as it is. Where the platform has two shells, it is quoted for both.
 *
 * Characters that a terminal acts on are not the concern of this function: whoever prints the command sanitizes it.
 */
export function shellQuote(word: string, platform: NodeJS.Platform): string {
  return platform === 'win32' ? windowsQuote(word) : posixQuote(word)
}

/**
 * For POSIX shells (section 2.2.2 of the Shell Command Language), where nothing is special inside '…', and for fish, where
 * a backslash before a quote or another backslash is: both stand outside of the quotes.
 */
export function posixQuote(word: string): string {
  // A leading "=" would be a path in zsh, and a leading "~" is not among these characters.
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)
    ? word
    : `'${word.replace(/['\\]/g, (character) => `'\\${character}'`)}'`
}

/**
 * For PowerShell, where typographic quotation marks end a string as well and the backtick escapes, and for cmd.exe as far
 * as it goes: there a variable between percent signs is always expanded.
 */
function windowsQuote(word: string): string {
  if (/^[\w+:./\\-][\w+=:./\\-]*$/.test(word)) return word
  return `"${word.replace(/[`$\u201c-\u201e]/g, '`$&').replaceAll('"', '""')}"`
}
