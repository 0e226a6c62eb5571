import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { renderRedirectPage } from '../../src/oauth/redirect-page.ts'

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}
const readEntities = (text: string) => text.replace(/&[^;]+;/g, (entity) => ENTITIES[entity] ?? entity)

describe('the page that redirects a browser to an address', () => {
  it('the redirect page has the address only in attributes, and runs and loads nothing', () => {
    const part = fc.array(
      fc.oneof(
        fc.string({ maxLength: 8 }),
        fc.constantFrom('"><script>', "'", '&quot;', '</a>', '&', '#', '; url='),
      ),
      { maxLength: 5 },
    )
    fc.assert(
      fc.property(part, part, (path, query) => {
        const url = new URL('https://service.example')
        url.pathname = path.join('')
        url.search = query.join('')
        const page = renderRedirectPage(url.href)
        const [, refresh = ''] = /<meta http-equiv="refresh" content="0; url=([^"<>]*)">/.exec(page) ?? []
        const [, link = ''] = /<a href="([^"<>]*)">/.exec(page) ?? []
        expect([readEntities(refresh), readEntities(link)]).toEqual([url.href, url.href])
        expect(page.replaceAll(refresh, '')).toBe(
          renderRedirectPage('https://x.example/').replaceAll('https://x.example/', ''),
        )
      }),
    )
  })
})
