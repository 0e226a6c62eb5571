/**
 * Quotes one word of a command line so that the person's shell passes it on unchanged; a word without special characters
 * stays as it is. On Windows the quoting suits both shells. Control characters stay: whoever prints the command
 * sanitizes it.
 */
export function shellQuote(word: string, platform: NodeJS.Platform): string {
  return platform === 'win32' ? windowsQuote(word) : posixQuote(word)
}

/** The command line of this program with these words, to be pasted into a shell. */
export function commandLine(words: readonly string[], platform: NodeJS.Platform): string {
  return ['mailclaim', ...words].map((word) => shellQuote(word, platform)).join(' ')
}

/**
 * For POSIX shells (section 2.2.2 of the Shell Command Language), in which nothing is special inside '…', and for fish, in
 * which a backslash before a quote or a backslash is: so both are written outside of the quotes.
 */
export function posixQuote(word: string): string {
  // A leading "=" would be a path in zsh; "~" is not among these characters.
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)
    ? word
    : `'${word.replace(/['\\]/g, (character) => `'\\${character}'`)}'`
}

/**
 * For PowerShell, in which typographic quotation marks end a string too and the backtick escapes, and for cmd.exe as far
 * as possible: it always expands a variable between percent signs.
 */
function windowsQuote(word: string): string {
  if (/^[\w+:./\\-][\w+=:./\\-]*$/.test(word)) return word
  return `"${word.replace(/[`$\u201c-\u201e]/g, '`$&').replaceAll('"', '""')}"`
}
