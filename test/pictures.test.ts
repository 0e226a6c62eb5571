import { stripVTControlCharacters } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { needs } from './requirements.ts'
import { createServedWorld, install, type ServedWorld } from './stories/built-program.ts'

/**
 * These tests compare the README's pictures with the program's output; `npm run pictures` draws them again. The pictures are SVG, so
 * that their text is in the file, and their colors follow the reader's color scheme.
 */

const COMMAND = 'mailclaim claims check example.com --value example-verification=Vghu9MHxlkwIjslD'
const COLUMNS = 100

/** Runs `COMMAND` with more words in a sandbox where DNS has half of the value; returns stdout, of a terminal or a pipe. */
async function check(world: ServedWorld, words: string, terminal: boolean): Promise<string> {
  const { stdout } = await world.script(`stty cols ${COLUMNS} 2>/dev/null; ${COMMAND}${words}`, { terminal })
  return stdout.replaceAll('\r', '')
}

const markup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** CSS classes of the SGR codes that the program uses; ENDS has the codes that end each class. */
const CLASSES: Readonly<Record<string, string>> = { 1: 'b', 2: 's', 31: 'bad', 32: 'good', 36: 'n' }
const ENDS: Readonly<Record<string, readonly string[]>> = { 22: ['b', 's'], 39: ['bad', 'good', 'n'] }

/** Converts a line of terminal output to SVG markup. */
function line(text: string): string {
  const open = new Set<string>()
  const parts = text.split(/\x1b\[(\d+)m/)
  return parts
    .map((part, index) => {
      if (index % 2 === 0)
        return open.size === 0 || part === ''
          ? markup(part)
          : `<tspan class="${[...open].join(' ')}">${markup(part)}</tspan>`
      for (const ended of ENDS[part] ?? []) open.delete(ended)
      const begun = CLASSES[part]
      if (begun !== undefined) open.add(begun)
      return ''
    })
    .join('')
}

const STYLE = `:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--card:#f6f8fa;--edge:#d1d9e0;--accent:#0969da;--good:#1a7f37;--bad:#c21c2c}
@media (prefers-color-scheme:dark){:root{--ink:#f0f6fc;--soft:#9198a1;--card:#151b23;--edge:#3d444d;--accent:#4493f8;--good:#3fb950;--bad:#ff7b72}}
text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:var(--ink);white-space:pre}
.b{font-weight:600}.s{fill:var(--soft)}.n{fill:var(--accent)}.good{fill:var(--good)}.bad{fill:var(--bad)}.card{fill:var(--card);stroke:var(--edge)}`

function terminalPicture(lines: readonly string[]): string {
  const height = 52 + 19 * lines.length
  const rows = lines.flatMap((text, index) =>
    text === '' ? [] : [`<text x="18" y="${54 + 19 * index}" xml:space="preserve">${line(text)}</text>`],
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 ${height}" role="img" aria-labelledby="t">
<title id="t">A check in a terminal: the value in DNS is cut off</title>
<style>
${STYLE}
</style>
<rect class="card" x="1" y="1" width="828" height="${height - 2}" rx="8"/>
<circle cx="20" cy="19" r="5" fill="var(--edge)"/><circle cx="38" cy="19" r="5" fill="var(--edge)"/><circle cx="56" cy="19" r="5" fill="var(--edge)"/>
${rows.join('\n')}
</svg>
`
}

/** Matches the evidence of a finding, which a browser shows only after a click. */
const CLOSED = /(?<=<\/summary>).*(?=<\/details>)/g

/** Creates the picture of the first two panels of a report, in the report's markup and style. */
function reportPicture(html: string): string {
  const style = /<style>(.*)<\/style>/s.exec(html)?.[1] ?? ''
  const [, panels = ''] = /<main>\n(.*?)(?=<section class="panel" aria-labelledby="path">)/s.exec(html) ?? []
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 606" role="img" aria-labelledby="t">
<title id="t">The same check as a page for a ticket</title>
<style>
${style.replaceAll('<', '&lt;').replace(/@media \(max-width:40rem\)\{.*\}\}\n/, '')}
body{padding-top:1rem;border-radius:12px}
</style>
<foreignObject width="1000" height="606"><body xmlns="http://www.w3.org/1999/xhtml">
<main>
${panels.replace(CLOSED, '')}</main>
</body></foreignObject>
</svg>
`
}

describe.runIf(needs('script'))("the README's pictures", () => {
  let world: ServedWorld
  beforeAll(async () => {
    const ends: (() => void)[] = []
    world = await createServedWorld([], (end) => ends.push(end))
    install(world)
    await world.control('PUT', 'dns/example.com/TXT', { values: ['example-verification=Vghu9MHx'] })
    return () => {
      for (const end of ends) end()
    }
  })

  test('docs/check.svg shows what mailclaim claims check prints on a terminal', async () => {
    const seen = (await check(world, '', true))
      // Remove the spinner, which mailclaim erases at the end, and make spaces and times the same in every run.
      .replace(/\x1b\[\?25l.*?\x1b\[K\x1b\[\?25h/s, '')
      .replace(/\x1b\[\?\d+[hl]/g, '')
      .replace(/ +(\x1b\[1mms)/, '  $1')
      .replace(/^(ns\d.*?) +\d+$/gm, '$1   1')
    expect(stripVTControlCharacters(seen)).toContain('[truncated]')
    const picture = terminalPicture([`\x1b[36m$\x1b[39m ${COMMAND}`, ...seen.trimEnd().split('\n')])
    await expect(picture).toMatchFileSnapshot('../docs/check.svg')
  })

  test('docs/report.svg shows the page that mailclaim claims check --format html writes', async () => {
    const picture = reportPicture(await check(world, ' --format html', false))
    await expect(picture).toMatchFileSnapshot('../docs/report.svg')
  })
})
