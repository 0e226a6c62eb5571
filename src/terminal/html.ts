import { raw, html as template } from 'hono/html'
import { sanitizeLine } from './sanitize.ts'

/** Markup that isn't escaped when inserted: from `html`, which escapes inserted text, or from `raw`, which is for constants only. */
export type Html = ReturnType<typeof raw>
export { raw }

/** A value to insert into an `html` template: text (to be escaped), a number, markup, a list of these, or undefined for nothing. */
export type InsertedValue = string | number | undefined | readonly InsertedValue[]

/**
 * Tag for template literals of markup. Inserted text is HTML-escaped, so attributes with insertions must be quoted. Control, bidi
 * and invisible characters in inserted text become visible escapes, as on a terminal.
 */
export function html(strings: TemplateStringsArray, ...inserted: readonly InsertedValue[]): Html {
  // Hono returns a promise only if an inserted value is a promise, which `InsertedValue` excludes.
  return template(strings, ...inserted.map(sanitizeInserted)) as Html
}

/** Escapes control and invisible characters in inserted text. Returns markup, which is a `String` object at run time, unchanged. */
function sanitizeInserted(part: InsertedValue): InsertedValue {
  if (typeof part === 'string') return sanitizeLine(part)
  return Array.isArray(part) ? part.map(sanitizeInserted) : part
}
