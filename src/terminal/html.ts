import { raw, html as template } from 'hono/html'
import { sanitizeLine } from './sanitize.ts'

/** Markup, which isn't escaped when inserted into an `html` template: a result of `html`, or of `raw` for a constant. */
export type Html = ReturnType<typeof raw>
export { raw }

/** Value to insert into an `html` template: text (to be escaped), a number, markup, a list of these, or undefined for nothing. */
export type InsertedValue = string | number | undefined | readonly InsertedValue[]

/**
 * Tag for template literals of markup. Escapes inserted text for HTML, and shows control, bidi and invisible characters in it as
 * visible escapes. Attributes with inserted text must be quoted: a space would end an unquoted value.
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
