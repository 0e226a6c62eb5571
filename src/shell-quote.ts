/**
 * Quotes an argument for POSIX shells and fish or, on Windows, for PowerShell and as far as possible cmd.exe. Control characters
 * are kept, so code that prints the command must sanitize it.
 */
export function shellQuote(word: string, platform: NodeJS.Platform): string {
  return platform === 'win32' ? windowsQuote(word) : posixQuote(word)
}

/** Returns a `mailclaim` command line with these arguments, quoted for the user to paste into a shell. */
export function mailclaimCommand(words: readonly string[], platform: NodeJS.Platform): string {
  return ['mailclaim', ...words].map((word) => shellQuote(word, platform)).join(' ')
}

/**
 * Quotes an argument for POSIX shells and fish. Single quotes and backslashes in the argument are escaped outside of the quotes:
 * inside single quotes, unlike a POSIX shell, fish treats `\'` and `\\` as escapes.
 */
export function posixQuote(word: string): string {
  // A match needs no quotes. A leading `=` does, which zsh expands to a command's path, and `~`, which means a home directory.
  return /^[\w@%+:,./-][\w@%+=:,./-]*$/.test(word)
    ? word
    : `'${word.replace(/['\\]/g, (character) => `'\\${character}'`)}'`
}

/**
 * Quotes an argument for PowerShell, where typographic quotation marks also end a string and the backtick escapes, and for
 * cmd.exe as far as possible: cmd.exe expands `%NAME%` inside quotes too, and keeps backticks.
 */
function windowsQuote(word: string): string {
  if (/^[\w+:./\\-][\w+=:./\\-]*$/.test(word)) return word
  return `"${word.replace(/[`$\u201c-\u201e]/g, '`$&').replaceAll('"', '""')}"`
}
