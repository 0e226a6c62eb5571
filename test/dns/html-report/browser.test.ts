import fc from 'fast-check'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { CheckReport } from '../../../src/dns/diagnosis/report.ts'
import { renderHtml } from '../../../src/dns/html-report/report-body.ts'
import { sanitizeLine } from '../../../src/terminal/sanitize.ts'
import { axeViolations, launchChromium } from '../../chromium.ts'
import { needs } from '../../requirements.ts'
import { timedCheck } from '../timed-check.ts'
import { EXPECTED, FAULTS, HEALTHY } from './faults.ts'
import { hostileReport, hostileText } from './hostile-reports.ts'

const html = (report: CheckReport, command = 'mailclaim claims check example.com --format html') =>
  renderHtml(report, { at: 0, version: '1.2.3', resolvers: ['192.0.2.53'], command })

const HEALTHY_CASE = { title: 'nothing is wrong', code: undefined, respond: HEALTHY }
const CASES = [...FAULTS, HEALTHY_CASE]

async function pageOf(fault: (typeof CASES)[number]): Promise<string> {
  const named = 'name' in fault && fault.name !== undefined ? { name: fault.name } : {}
  const { report } = await timedCheck(fault.respond, { expected: EXPECTED, ...named })
  return html(report)
}

interface Parsed {
  readonly elements: readonly string[]
  readonly classes: readonly string[]
  readonly comments: number
  readonly text: string
}

/** The elements of a document with the names of their attributes, as the browser's own parser sees them. */
function parse(page: Page, document: string): Promise<Parsed> {
  return page.evaluate(`(() => {
    const parsed = new DOMParser().parseFromString(${JSON.stringify(document)}, 'text/html')
    const all = [...parsed.querySelectorAll('*')]
    const comments = parsed.createNodeIterator(parsed, NodeFilter.SHOW_COMMENT)
    let count = 0
    while (comments.nextNode() !== null) count += 1
    return {
      elements: all.map((one) => one.nodeName + ' ' + one.getAttributeNames().join(' ')),
      classes: all.map((one) => one.getAttribute('class') ?? ''),
      comments: count,
      text: parsed.body.textContent,
    }
  })()`)
}

/** Which of the two pictures are shown, the wide one first. */
const displays = (page: Page) =>
  page.evaluate<string[]>(
    `[...document.querySelectorAll('svg.picture')].map((one) => getComputedStyle(one).display)`,
  )

/** The lines of the picture that reach beyond the box that they are in. */
const overflowing = (page: Page, size: 'wide' | 'narrow') =>
  page.evaluate<string[]>(`[...document.querySelectorAll('svg.${size} g')].flatMap((group) => {
    const box = (group.querySelector(':scope > rect') ?? group.closest('svg')).getBoundingClientRect()
    return [...group.querySelectorAll(':scope > text')]
      .filter((text) => text.getBoundingClientRect().right > box.right || text.getBoundingClientRect().bottom > box.bottom)
      .map((text) => text.textContent)
  })`)

describe.runIf(needs('chromium'))('in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser.close())

  async function newPage(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await browser.newPage(options)
    onTestFinished(() => page.close())
    return page
  }

  test.each(['light', 'dark'] as const)('axe finds no violation: %s', async (colorScheme) => {
    const page = await newPage({ colorScheme, viewport: { width: 1040, height: 800 }, bypassCSP: true })
    for (const code of ['quoted', 'partial_propagation', 'dnssec_bogus', 'resolver_broken', undefined]) {
      await page.setContent(await pageOf(CASES.find((fault) => fault.code === code) ?? HEALTHY_CASE))
      expect(await axeViolations(page), code).toEqual([])
    }
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await axeViolations(page)).toEqual([])
    const [red] =
      (await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')).match(/\d+/g) ?? []
    expect(Number(red) < 128).toBe(colorScheme === 'dark')
  })

  test('it fits 360 pixels, and no line of its picture leaves its box, there or on a wide screen', async () => {
    const page = await newPage()
    for (const fault of CASES) {
      await page.setViewportSize({ width: 360, height: 740 })
      await page.setContent(await pageOf(fault))
      expect(await page.evaluate<number>('document.documentElement.scrollWidth'), fault.title).toBe(360)
      expect(await displays(page)).toEqual(['none', 'block'])
      expect(await overflowing(page, 'narrow'), fault.title).toEqual([])
      await page.setViewportSize({ width: 1200, height: 800 })
      expect(await displays(page)).toEqual(['block', 'none'])
      expect(await overflowing(page, 'wide'), fault.title).toEqual([])
    }
  })

  test('it prints in dark colors on white, with the wide picture', async () => {
    const page = await newPage({ colorScheme: 'dark', viewport: { width: 718, height: 1000 } })
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    await page.setContent(await pageOf(HEALTHY_CASE))
    expect(await displays(page)).toEqual(['block', 'none'])
    expect(await page.evaluate<string>('getComputedStyle(document.body).color')).toBe('rgb(27, 34, 40)')
  })

  test('the keyboard reaches each table, and leaves it', async () => {
    const page = await newPage({ viewport: { width: 360, height: 740 } })
    await page.setContent(await pageOf(HEALTHY_CASE))
    const stops: string[] = []
    for (let press = 0; press < 3; press += 1) {
      await page.keyboard.press('Tab')
      stops.push(
        await page.evaluate<string>('document.activeElement.querySelector("caption")?.textContent ?? ""'),
      )
    }
    expect(stops).toEqual(['Delegation', 'Authoritative name servers', 'Recursive resolvers'])
    await page.keyboard.press('Tab')
    expect(
      await page.evaluate<boolean>(
        'document.activeElement === document.body || document.activeElement === null',
      ),
    ).toBe(true)
  })

  test('text that others wrote never becomes an element, an attribute, a class or a comment', async () => {
    const page = await newPage()
    const own = { elements: new Set<string>(), classes: new Set<string>() }
    const learn = (seen: Parsed) => {
      for (const one of seen.elements) own.elements.add(one)
      for (const one of seen.classes) own.classes.add(one)
    }
    for (const fault of CASES) learn(await parse(page, await pageOf(fault)))
    learn(await parse(page, html(hostileReport('a.example', ['prefix=token', 'other']))))
    learn(await parse(page, html(hostileReport('', ['prefix=token']))))
    learn(await parse(page, html(hostileReport('a.example', Array(30).fill('prefix=token')))))
    await fc.assert(
      fc.asyncProperty(
        hostileText,
        fc.array(hostileText, { minLength: 1, maxLength: 4 }),
        async (name, values) => {
          const seen = await parse(page, html(hostileReport(name, values), name))
          expect(seen.elements.filter((one) => !own.elements.has(one))).toEqual([])
          expect(seen.classes.filter((one) => !own.classes.has(one))).toEqual([])
          expect(seen.comments).toBe(0)
          for (const value of values) expect(seen.text).toContain(sanitizeLine(value))
        },
      ),
      { numRuns: 120 },
    )
  })

  test('hostile text runs nothing and requests nothing, even without the content security policy', async () => {
    const reports = fc.sample(
      fc.tuple(hostileText, fc.array(hostileText, { minLength: 1, maxLength: 4 })),
      30,
    )
    const long = '<script>window.ran=true</script>'.repeat(2048)
    for (const bypassCSP of [true, false]) {
      const page = await newPage({ bypassCSP })
      const requests: string[] = []
      page.on('request', (request) => requests.push(request.url()))
      const complaints: string[] = []
      page.on('console', (message) => complaints.push(message.text()))
      for (const [name, values] of [...reports, [long, [long, long]] as const]) {
        await page.setContent(html(hostileReport(name, values), name))
        expect(await page.evaluate('window.ran')).toBeUndefined()
        await page.keyboard.press('Tab')
        expect(await page.evaluate('window.ran')).toBeUndefined()
        expect(await page.title()).toContain('mailclaim')
      }
      expect(requests).toEqual([])
      expect(complaints).toEqual([])
    }
  })
})
