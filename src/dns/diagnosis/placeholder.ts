/**
 * Whether a text is a placeholder from instructions: `YOUR_TOKEN`, `<token>`, `xxxx`.
 *
 * @param hasPrefix whether it follows the right prefix. If not, the test is stricter: other records hold short words too.
 */
export function isPlaceholder(text: string, hasPrefix: boolean): boolean {
  // Placeholders are short.
  if (text.length > 100) return false
  const word = text.replace(/^\W+|\W+$/g, '')
  if (isMasked(text) && (hasPrefix || !/\w/.test(text))) return true
  if (hasPrefix) return BRACKETED.test(text) || ASKS.test(text) || STANDS_IN.test(text)
  return (
    ASKS.test(text) ||
    (BRACKETED.test(text) && (ASKS.test(word) || STANDS_IN.test(word))) ||
    /^prefix=token$/i.test(text)
  )
}

/** Whether a token, perhaps after its prefix, looks as in a field that hides it: `••••••••`, `********`, `••••4506`. */
export function isMasked(text: string): boolean {
  return /^(?:[^=]+=)?\w{0,6}[•●∙·⬤*]{4,}\w{0,6}$/.test(text)
}

const BRACKETED = /^(?:<.+>|\[.+\]|\{.+\}|\(.+\)|\$\{?\w+\}?|%\w+%)$/s
const ASKS =
  /^(?:your|my|insert|paste|enter|replace|copy|put|the|some)[\w-]*(?:token|value|code|key|here|string)/i
const STANDS_IN =
  /^(?:(?:verification|unique|random)?[_-]?(?:token|value|code|key|string)|placeholder|example|sample|dummy|todo|tbd|changeme|x{3,}|\*{3,}|\.{3,}|…|\?+)$/i
