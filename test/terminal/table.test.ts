import fc from 'fast-check'
import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { renderBar } from '../../src/terminal/bar.ts'
import { colorLevel, createPalette, PLAIN_PALETTE } from '../../src/terminal/color.ts'
import type { Column } from '../../src/terminal/columns.ts'
import { simpleRuler } from '../../src/terminal/ruler.ts'
import { TableRenderer } from '../../src/terminal/table.ts'
import * as everyRuler from '../../src/terminal/width.ts'

const COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  { field: 'name' },
  { field: 'count', kind: 'number' },
]
const id = (index: number) => `6f1c2a4e-0000-4000-8000-${String(index).padStart(12, '0')}`
const render = (items: readonly object[], width: number, columns = COLUMNS) =>
  draw(new TableRenderer(columns, PLAIN_PALETTE, { now: undefined }, width), items)

function draw(renderer: TableRenderer, items: readonly object[]): string {
  return renderer.render(renderer.read(items), everyRuler)
}

describe('a table', () => {
  it('is as wide as it needs to be', () => {
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

  it('wraps the long column, never an id', () => {
    const items = [{ id: id(1), name: 'a rather long name of a client that does not fit', count: 1 }]
    expect(render(items, 62)).toMatchInlineSnapshot(`
      "Id                                    Name               Count
      6f1c2a4e-0000-4000-8000-000000000001  a rather long          1
                                            name of a client
                                            that does not fit
      "
    `)
  })

  it('leaves out an optional column rather than break words', () => {
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

  it('becomes cards on 40 columns', () => {
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
  ])('keeps its columns straight around %s', (name) => {
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

  it('fits the terminal and holds every id whole, whatever the names', () => {
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

  it('keeps its widths over pages, and says the heading once', () => {
    const renderer = new TableRenderer(COLUMNS, PLAIN_PALETTE, { now: undefined }, 100)
    const first = draw(renderer, [{ id: id(1), name: 'Newsletter', count: 5 }])
    const second = draw(renderer, [{ id: id(2), name: 'a name that is longer than before', count: 6 }])
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

  it('starts anew rather than cut an id that is longer than those before', () => {
    const renderer = new TableRenderer(COLUMNS, PLAIN_PALETTE, { now: undefined }, 100)
    draw(renderer, [{ id: 'short', name: 'n', count: 5 }])
    const second = draw(renderer, [{ id: id(2), name: 'n', count: 6 }])
    expect(second).toContain(id(2))
    expect(second).toContain('Id  ')
  })

  it('is coloured without losing its shape', async () => {
    const columns: readonly Column[] = [
      { field: 'name', paint: (_value, palette) => palette.good },
      { field: 'id' },
    ]
    const palette = await createPalette(1)
    const text = draw(new TableRenderer(columns, palette, { now: undefined }, 30), [
      { name: 'long enough to be wrapped twice or so', id: 'x' },
    ])
    for (const line of text.split('\n').slice(1, -1))
      expect(line).toMatch(/^\x1b\[32m[^\x1b]+\x1b\[39m( +x)?$/)
  })
})

describe('the quick ruler', () => {
  it('measures and breaks ASCII as the thorough one does', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd', ' ', '-'), maxLength: 60 })
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 30 }), (line, width) => {
        expect(simpleRuler.widthOf(line)).toBe(everyRuler.widthOf(line))
        const pieces = simpleRuler.wrap(line, width)
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(width)
        expect(pieces.join('').replaceAll(' ', '')).toBe(line.replaceAll(' ', ''))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('colour', () => {
  const environment = { noColor: false, ci: false, ssh: false, term: 'xterm' }
  it.each<[string, object, boolean | undefined, boolean, number]>([
    ['a terminal has it', {}, undefined, true, 1],
    ['a pipe has none', {}, undefined, false, 0],
    ['--no-color takes it away', { forceColor: '3' }, false, true, 0],
    ['NO_COLOR takes it away', { noColor: true }, undefined, true, 0],
    ['FORCE_COLOR beats NO_COLOR and a pipe', { forceColor: '1', noColor: true }, undefined, false, 1],
    ['FORCE_COLOR=0 takes it away', { forceColor: '0' }, undefined, true, 0],
    ['TERM=dumb has none', { term: 'dumb' }, undefined, true, 0],
    ['256 colours are seen', { term: 'xterm-256color' }, undefined, true, 2],
    ['all colours are seen', { colorterm: 'truecolor' }, undefined, true, 3],
  ])('%s', (_what, more, option, isTTY, level) => {
    expect(colorLevel({ ...environment, ...more }, option, { isTTY })).toBe(level)
  })
})

describe('a bar', () => {
  it('fits, and leaves out what is worth least first', () => {
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

  it('never goes over its end', () => {
    expect(renderBar('x', 7, [], 40)).toContain('100%')
    expect(renderBar('x', Number.NaN, [], 40)).toContain('  0%')
  })
})

describe('a very long text', () => {
  it('loses nothing when it is wrapped in pieces', async () => {
    const { wrap } = await import('../../src/terminal/width.ts')
    for (const text of ['😀'.repeat(4000), 'ü'.repeat(4001), 'ein Wörtchen '.repeat(900).trim()])
      expect(wrap(text, 40).join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
  })
})
