import { sanitizeLine } from './sanitize.ts'

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Escapes a text for HTML content, SVG content, and quoted attributes. Control, bidi and invisible characters become visible
 * escapes, as on a terminal.
 */
function escapeHtml(text: string): string {
  return sanitizeLine(text).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}

/** Markup of our own, in which everything that may come from others is escaped. Only `html` and `trusted` make it. */
export class Html {
  readonly #markup: string
  private constructor(markup: string) {
    this.#markup = markup
  }
  /** Markup that is a constant of this program. */
  static trusted(markup: string): Html {
    return new Html(markup)
  }
  toString(): string {
    return this.#markup
  }
}

/** What a template takes: texts, which it escapes; markup; lists of both; nothing. */
export type Inserted = Html | string | number | undefined | readonly Inserted[]

/** A template literal for markup. It escapes every text that is inserted, so attributes with insertions need quotes. */
export function html(strings: TemplateStringsArray, ...inserted: readonly Inserted[]): Html {
  return Html.trusted(strings.map((string, index) => string + markupOf(inserted[index])).join(''))
}

function markupOf(part: Inserted): string {
  if (part === undefined) return ''
  if (part instanceof Html) return part.toString()
  return typeof part === 'object' ? part.map(markupOf).join('') : escapeHtml(String(part))
}
