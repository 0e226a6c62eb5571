import fc from 'fast-check'
import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { colorLevel, createPalette, PLAIN_PALETTE } from '../../src/terminal/color.ts'
import type { Column } from '../../src/terminal/columns.ts'
import { widthOf, wrap } from '../../src/terminal/measure.ts'
import { renderBar } from '../../src/terminal/progress-bar.ts'
import { TableRenderer } from '../../src/terminal/table.ts'

const COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  { field: 'name' },
  { field: 'count', kind: 'number' },
]
const id = (index: number) => `6f1c2a4e-0000-4000-8000-${String(index).padStart(12, '0')}`
const render = (items: readonly object[], width: number, columns = COLUMNS) =>
  tableOf(columns, width).render(items)

function tableOf(columns: readonly Column[], width: number, palette = PLAIN_PALETTE): TableRenderer {
  return new TableRenderer(columns, { palette, width, now: undefined })
}

describe('a table', () => {
  it('a table is as wide as necessary', () => {
    const items = [
      { id: id(1), name: 'Newsletter', count: 5 },
      { id: id(2), name: null, count: 12_345 },
    ]
    expect(render(items, 200)).toMatchInlineSnapshot(`
      "Id                                    Name        Count
      6f1c2a4e-0000-4000-8000-000000000001  Newsletter      5
      6f1c2a4e-0000-4000-8000-000000000002  –           12345
      "
    `)
  })

  it('a table wraps the long column, never an id', () => {
    const items = [{ id: id(1), name: 'a rather long name of a client that does not fit', count: 1 }]
    expect(render(items, 62)).toMatchInlineSnapshot(`
      "Id                                    Name               Count
      6f1c2a4e-0000-4000-8000-000000000001  a rather long          1
                                            name of a client
                                            that does not fit
      "
    `)
  })

  it('a table leaves out an optional column rather than break words', () => {
    const columns: readonly Column[] = [...COLUMNS.slice(0, 2), { field: 'created', optional: true }]
    const items = [{ id: id(1), name: 'contacts:write', created: '3 hours ago' }]
    expect(render(items, 60, columns)).toMatchInlineSnapshot(`
      "Id                                    Name
      6f1c2a4e-0000-4000-8000-000000000001  contacts:write
      "
    `)
    expect(render(items, 56, columns)).toMatchInlineSnapshot(`
      "Id                                    Name
      6f1c2a4e-0000-4000-8000-000000000001  contacts:write
      "
    `)
    expect(render(items, 48, columns)).toMatchInlineSnapshot(`
      "Id                                    Name
      6f1c2a4e-0000-4000-8000-000000000001  contacts:w
                                            rite
      "
    `)
  })

  it('a table becomes detail views on 40 columns', () => {
    const items = [
      { id: id(1), name: 'Newsletter', count: 5 },
      { id: id(2), name: 'Shop', count: 6 },
    ]
    expect(render(items, 40)).toMatchInlineSnapshot(`
      "Id
        6f1c2a4e-0000-4000-8000-000000000001
      Name   Newsletter
      Count  5

      Id
        6f1c2a4e-0000-4000-8000-000000000002
      Name   Shop
      Count  6
      "
    `)
  })

  it.each([
    '日本語のクライアント',
    '👩‍💻 dev',
    '🫠 new emoji',
    '❤️ heart',
    'e\u0301clair',
    '🇨🇭 flag',
    'plain',
  ])('a table keeps its columns straight around %s', (name) => {
    const lines = render(
      [
        { id: id(1), name, count: 7 },
        { id: id(2), name: 'x', count: 8 },
      ],
      200,
    )
      .trimEnd()
      .split('\n')
    const widths = lines.map((line) => stringWidth(line))
    expect(new Set(widths).size).toBe(1)
  })

  it('a table fits the terminal and has every id in one piece, whatever the names', () => {
    const name = fc.oneof(fc.string({ unit: 'grapheme' }), fc.lorem({ maxCount: 30 }))
    fc.assert(
      fc.property(
        fc.array(name, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 40, max: 220 }),
        (names, width) => {
          const text = render(
            names.map((name, index) => ({ id: id(index), name, count: index })),
            width,
          )
          for (const line of text.split('\n')) expect(stringWidth(line)).toBeLessThanOrEqual(width)
          names.forEach((_, index) => {
            expect(text).toContain(id(index))
          })
        },
      ),
      { numRuns: 300 },
    )
  })

  it('a table keeps its widths over pages, and shows the heading once', () => {
    const renderer = tableOf(COLUMNS, 100)
    const first = renderer.render([{ id: id(1), name: 'Newsletter', count: 5 }])
    const second = renderer.render([{ id: id(2), name: 'a name that is longer than before', count: 6 }])
    expect(first + second).toMatchInlineSnapshot(`
      "Id                                    Name        Count
      6f1c2a4e-0000-4000-8000-000000000001  Newsletter      5
      6f1c2a4e-0000-4000-8000-000000000002  a name          6
                                            that is
                                            longer
                                            than
                                            before
      "
    `)
  })

  it('a table starts again with new widths rather than cut an id that is longer than those before', () => {
    const renderer = tableOf(COLUMNS, 100)
    renderer.render([{ id: 'short', name: 'n', count: 5 }])
    const second = renderer.render([{ id: id(2), name: 'n', count: 6 }])
    expect(second).toContain(id(2))
    expect(second).toContain('Id  ')
  })

  it('a table whose rows come one by one becomes wider without another heading', () => {
    const renderer = new TableRenderer(COLUMNS, { palette: PLAIN_PALETTE, width: 100, now: undefined }, true)
    expect(renderer.render([{ id: 'short', name: 'n', count: 5 }])).toContain('Id  ')
    const second = renderer.render([{ id: id(2), name: 'n', count: 6 }])
    expect(second).toContain(id(2))
    expect(second).not.toContain('Id  ')
  })

  it('a row that comes later keeps its words whole, in a pipe on one line, and no column becomes narrower again', () => {
    const columns: readonly Column[] = [{ field: 'name' }, { field: 'status' }, { field: 'at', kind: 'time' }]
    const renderer = new TableRenderer(
      columns,
      { palette: PLAIN_PALETTE, width: Number.POSITIVE_INFINITY, now: undefined },
      true,
    )
    const rows = [
      { name: 'example.com', status: 'pending' },
      { name: 'example.net', status: 'completed', at: '2026-11-22 11:47 UTC' },
      { name: 'several words', status: 'in two columns' },
      { name: 'mail.example.com', status: 'pending' },
      { name: 'example.org', status: 'pending', at: '2026-11-22 11:48 UTC' },
    ]
    expect(rows.map((row) => renderer.render([row])).join('')).toMatchInlineSnapshot(`
      "Name         Status   At
      example.com  pending  –
      example.net  completed  2026-11-22 11:47 UTC
      several words  in two columns  –
      mail.example.com  pending         –
      example.org       pending         2026-11-22 11:48 UTC
      "
    `)
  })

  it('a page repeats the heading only if a wider column helps against a broken word', () => {
    const renderer = tableOf(COLUMNS, 55)
    const page = { id: id(1), name: 'contacts:write', count: 1 }
    expect(renderer.render([page])).toContain('Id  ')
    expect(renderer.render([page])).not.toContain('Id  ')
    expect(renderer.render([{ ...page, count: 1234567 }])).toContain('Id  ')
  })

  it('a table starts again with new widths rather than hide a character that is wider than its column', () => {
    const renderer = tableOf([{ field: 'a' }, { field: 'b' }], 100)
    renderer.render([{ a: 'x', b: 'y' }])
    expect(renderer.render([{ a: '日本', b: 'y' }])).toMatchInlineSnapshot(`
      "A     B
      日本  y
      "
    `)
  })

  it('the time for a table grows with the length of a very long cell, not with its square', () => {
    const processorSeconds = (text: string) => {
      const before = process.cpuUsage()
      expect(render([{ id: id(1), name: text, count: 1 }], 80).length).toBeGreaterThan(1000)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1e6
    }
    for (const text of [
      'x'.repeat(200_000),
      'word '.repeat(40_000),
      'e\u0301\u0302'.repeat(300),
      '👩‍👩‍👧'.repeat(120),
    ])
      expect(processorSeconds(text)).toBeLessThan(3)
  })

  it('a table full of emoji and combining marks takes little time', () => {
    const before = process.cpuUsage()
    const name = `${'👩‍👩‍👧'.repeat(30)}${'e\u0301\u0302\u0301\u0302\u0301'.repeat(100)}`
    const items = Array.from({ length: 100 }, (_, index) => ({ id: id(index), name, count: index }))
    expect(render(items, 220)).toContain(id(99))
    expect(process.cpuUsage(before).user / 1e6).toBeLessThan(5)
  })

  it('a colored table keeps its shape', async () => {
    const columns: readonly Column[] = [
      { field: 'name', paint: (_value, palette) => palette.good },
      { field: 'id' },
    ]
    const palette = await createPalette(1)
    const text = tableOf(columns, 30, palette).render([
      { name: 'long enough to be wrapped twice or so', id: 'x' },
    ])
    for (const line of text.split('\n').slice(1, -1))
      expect(line).toMatch(/^\x1b\[32m[^\x1b]+\x1b\[39m( +x)?$/)
  })
})

describe('the measure', () => {
  it('ASCII and the signs of the program are as wide as the library says', () => {
    const signs = [...Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)), ...'–…→✔○⠋⣿']
    for (const sign of signs) expect(stringWidth(sign), sign).toBe(1)
    expect(widthOf(signs.join(''))).toBe(signs.length)
  })

  it('wrapping ASCII loses nothing, and begins a very long word on its own line', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd', ' ', '-'), maxLength: 60 })
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 30 }), (line, width) => {
        const pieces = wrap(line, width)
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(width)
        expect(pieces.join('').replaceAll(' ', '')).toBe(line.replaceAll(' ', ''))
      }),
      { numRuns: 1000 },
    )
    expect(wrap('TXT prefix=0123456789', 12)).toEqual(['TXT', 'prefix=01234', '56789'])
  })
})

describe('color', () => {
  const environment = { noColor: false, ci: false, ssh: false, term: 'xterm' }
  it.each<[string, object, boolean | undefined, boolean, number]>([
    ['a terminal has it', {}, undefined, true, 1],
    ['a pipe has none', {}, undefined, false, 0],
    ['--no-color takes it away', { forceColor: '3' }, false, true, 0],
    ['NO_COLOR takes it away', { noColor: true }, undefined, true, 0],
    ['FORCE_COLOR beats NO_COLOR and a pipe', { forceColor: '1', noColor: true }, undefined, false, 1],
    ['FORCE_COLOR=0 takes it away', { forceColor: '0' }, undefined, true, 0],
    ['TERM=dumb has none', { term: 'dumb' }, undefined, true, 0],
    ['256 colors are seen', { term: 'xterm-256color' }, undefined, true, 2],
    ['all colors are seen', { colorterm: 'truecolor' }, undefined, true, 3],
  ])('%s', (_what, more, option, isTTY, level) => {
    expect(colorLevel({ ...environment, ...more }, option, { isTTY })).toBe(level)
  })
})

describe('a progress bar', () => {
  it('a progress bar fits, and leaves out the least important details first', () => {
    const details = ['1200/5000', '31 s left', '120/s']
    expect(renderBar('in progress', 0.24, details, 77)).toMatchInlineSnapshot(
      `"in progress  ██████░░░░░░░░░░░░░░░░░░░░░░░   24%  1200/5000  31 s left  120/s"`,
    )
    expect(renderBar('in progress', 0.24, details, 50)).toMatchInlineSnapshot(
      `"in progress  ██░░░░░░░   24%  1200/5000  31 s left"`,
    )
    expect(renderBar('in progress', 0.24, details, 37)).toMatchInlineSnapshot(
      `"in progress  ████░░░░░░░░░░░░░░   24%"`,
    )
    for (const columns of [20, 37, 50, 77]) {
      expect(renderBar('in progress', 0.24, details, columns).length).toBeLessThanOrEqual(columns)
    }
  })

  it('a progress bar never exceeds its end', () => {
    expect(renderBar('x', 7, [], 40)).toContain('100%')
    expect(renderBar('x', Number.NaN, [], 40)).toContain('  0%')
  })
})

describe('a very long text', () => {
  it('a very long text loses nothing when it is wrapped in pieces', () => {
    for (const text of ['😀'.repeat(4000), 'ü'.repeat(4001), 'ein Wörtchen '.repeat(900).trim()])
      expect(wrap(text, 40).join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
  })
})
