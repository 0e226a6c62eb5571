/** Prints rows under a heading, columns aligned; the first row names them. A 0 is a dot, so that the rest is seen. */
export function printTable(heading: string, rows: readonly (readonly (string | number)[])[]): void {
  const cells = rows.map((row) => row.map((cell) => (cell === 0 ? '.' : String(cell))))
  const widths = (cells[0] ?? []).map((_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  )
  const lines = cells.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  '),
  )
  process.stdout.write(`\n${heading}\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

/** A promise that was not kept, and where. */
export interface Breach {
  readonly what: string
  readonly where: string
}

/** Prints broken promises, the same ones together, each with some of its places. */
export function printBreaches(breaches: readonly Breach[]): void {
  for (const [what, places] of grouped(breaches)) {
    const shown = places.slice(0, 12).map((place) => `        ${place}\n`)
    const more = places.length > shown.length ? `        and ${places.length - shown.length} more\n` : ''
    process.stdout.write(`  ${String(places.length).padStart(4)} x ${what}\n${shown.join('')}${more}`)
  }
}

/** How often each promise was broken. */
export function countBreaches(breaches: readonly Breach[]): Record<string, number> {
  return Object.fromEntries([...grouped(breaches)].map(([what, places]) => [what, places.length]))
}

function grouped(breaches: readonly Breach[]): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const { what, where } of breaches) groups.set(what, [...(groups.get(what) ?? []), where])
  return groups
}
