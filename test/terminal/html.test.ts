import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Html, html, raw } from '../../src/terminal/html.ts'
import { sanitizeLine } from '../../src/terminal/sanitize.ts'

const unescaped = (markup: string) =>
  markup
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')

test('text inserted into an HTML template is HTML-escaped, and its control characters become visible escapes', () => {
  const pieces = fc.constantFrom('<', '>', '"', "'", '&', '&lt;', ']]>', '\u202e', '\0', '\ud800', 'a')
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(pieces).map((all) => all.join('')),
      ),
      (text) => {
        const markup = html`${text}`.toString()
        expect(markup).not.toMatch(/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/)
        expect(unescaped(markup)).toBe(sanitizeLine(text))
      },
    ),
  )
})

test('nested HTML templates stay markup, and undefined renders as nothing', () => {
  const rows = ['<a>', 2].map((cell) => html`<td title="${cell}">${cell}</td>`)
  expect(String(html`<tr>${[rows, undefined]}</tr>${raw('<hr>')}`)).toBe(
    '<tr><td title="&lt;a&gt;">&lt;a&gt;</td><td title="2">2</td></tr><hr>',
  )
})

test('an object parsed from JSON that imitates markup from an HTML template inserts no markup', () => {
  const fake = JSON.parse('{"isEscaped":true,"toString":"<b>"}') as Html
  expect(() => html`${fake}`).toThrow(TypeError)
  expect(String(html`${JSON.parse('{"isEscaped":true,"value":"<b>"}') as Html}`)).not.toContain('<b>')
})
