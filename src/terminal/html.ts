import { raw, html as template } from 'hono/html'
import { sanitizeLine } from './sanitize.ts'

/** Markup of our own, in which everything that may come from others is escaped: of `html`, or of `raw`, which takes constants. */
export type Html = ReturnType<typeof raw>
export { raw }

/** What a template takes: texts, which it escapes; markup; lists of both; nothing. */
export type Inserted = string | number | undefined | readonly Inserted[]

/**
 * A template literal for markup. It escapes every text that is inserted, so attributes with insertions need quotes. Control, bidi
 * and invisible characters become visible escapes, as on a terminal.
 */
export function html(strings: TemplateStringsArray, ...inserted: readonly Inserted[]): Html {
  // Only a promise among them would make it one.
  return template(strings, ...inserted.map(sanitizeInserted)) as Html
}

/** Markup is an object, although its type is that of a text. */
function sanitizeInserted(part: Inserted): Inserted {
  if (typeof part === 'string') return sanitizeLine(part)
  return Array.isArray(part) ? part.map(sanitizeInserted) : part
}
