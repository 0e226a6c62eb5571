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

/** A promise that was not kept: where, and under which circumstances. */
export interface Breach {
  readonly what: string
  readonly where: string
  readonly how: string
}

/** Prints broken promises, the same ones together, each with its places. */
export function printBreaches(breaches: readonly Breach[]): void {
  for (const [what, those] of grouped(breaches, ({ what }) => what)) {
    process.stdout.write(`  ${String(those.length).padStart(4)} x ${what}\n`)
    for (const [where, here] of grouped(those, ({ where }) => where))
      process.stdout.write(`         ${where} (${here.map(({ how }) => how).join(', ')})\n`)
  }
}

/** How often each promise was broken. */
export function countBreaches(breaches: readonly Breach[]): Record<string, number> {
  return Object.fromEntries(
    [...grouped(breaches, ({ what }) => what)].map(([what, { length }]) => [what, length]),
  )
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}
