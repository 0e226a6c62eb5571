import { describe, expect, it, onTestFinished } from 'vitest'
import type { CallbackPage } from '../../src/oauth/callback-page.ts'
import { startCallbackServer } from '../../src/oauth/callback-server.ts'
import { redirectTarget } from '../../src/oauth/redirect-uri.ts'
import { axeViolations, launchChromium } from '../chromium.ts'
import { needs } from '../requirements.ts'

const PAGES: readonly CallbackPage[] = [
  { status: 200, title: 'You are signed in', text: 'The session is stored.' },
  {
    status: 400,
    title: 'You are not signed in',
    text: `<b>access_denied</b> & a word that no line can hold: ${'x'.repeat(300)}`,
  },
]

describe.runIf(needs('chromium'))('the page at the end of the redirect', () => {
  const cases = PAGES.flatMap((page) =>
    (['light', 'dark'] as const).map((colorScheme) => ({ page, colorScheme, title: page.title })),
  )
  it.each(cases)(
    'the page "$title" in $colorScheme has no violation that axe finds, and fits 360 pixels',
    async (shown) => {
      const target = redirectTarget(undefined, undefined)
      if (target.listen === undefined) throw new Error('not a loopback target')
      const server = await startCallbackServer({
        target: { ...target, listen: target.listen },
        state: 'state-1',
        random: { bytes: (length) => new Uint8Array(length).fill(1), fraction: () => 0 },
        validate: async (parameters) => ({ valid: parameters }),
        received: (_parameters, respond) => void respond(shown.page),
      })
      onTestFinished(() => server.close())
      const browser = await launchChromium()
      onTestFinished(() => browser.close())
      const page = await browser.newPage({
        colorScheme: shown.colorScheme,
        viewport: { width: 360, height: 740 },
        bypassCSP: true,
      })
      await page.goto(`${server.redirectUri}?code=a&state=state-1`)
      expect(await page.getByRole('heading').textContent()).toBe(shown.page.title)
      expect(await page.locator('main').textContent()).toContain(shown.page.text)
      expect(await axeViolations(page)).toEqual([])
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360)
      const [red] =
        (await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).match(/\d+/g) ?? []
      expect(Number(red) < 128).toBe(shown.colorScheme === 'dark')
    },
  )
})
