import { countEach } from '../../test/session/processes.ts'

/** Result of one run of a command with a fault or a scripted answer. */
export interface Outcome {
  /** Name of the table row in which the run is counted. */
  readonly group: string
  /** Place of the fault, such as a system call; printed with the fault itself (`how`) if a promise was broken. */
  readonly where: string
  readonly how: string
  /** Mistakes in this run (malfunctions, untrue messages, lost sessions …), one text each; empty for a good run. */
  readonly wrong: readonly string[]
}

/** Columns of the table: each counts the runs for which its predicate holds. */
export type Columns<R extends Outcome> = Readonly<Record<string, (result: R) => boolean>>

/**
 * Prints a table of the runs by group and in total, then the broken promises with their places.
 *
 * @returns the number of violations by promise
 */
export function report<R extends Outcome>(
  heading: string,
  results: readonly R[],
  columns: Columns<R>,
): Record<string, number> {
  const tests: Columns<R> = {
    runs: () => true,
    ...columns,
    untrue: ({ wrong }) => wrong.some((one) => one.startsWith('untrue')),
    bug: ({ wrong }) => wrong.some((one) => /bug|stack trace|crashed/.test(one)),
    hung: ({ wrong }) => wrong.includes('hung'),
    wrong: ({ wrong }) => wrong.length > 0,
  }
  const groups = grouped(results, ({ group }) => group)
  const lines = [...groups, ['all', results] as const].map(([name, some]) => [
    name,
    ...Object.values(tests).map((test) => some.filter(test).length),
  ])
  printTable(heading, [['', ...Object.keys(tests)], ...lines])
  const breaches = results.flatMap(({ wrong, ...place }) => wrong.map((what) => ({ what, ...place })))
  for (const [what, those] of grouped(breaches, (breach) => breach.what)) {
    process.stdout.write(`  ${String(those.length).padStart(4)} x ${what}\n`)
    for (const [where, here] of grouped(those, (breach) => breach.where))
      process.stdout.write(`         ${where} (${here.map(({ how }) => how).join(', ')})\n`)
  }
  return countEach(breaches.map(({ what }) => what))
}

/**
 * Prints rows under a heading with aligned columns; the first row has the column names. Prints 0 as a dot, so that other counts
 * stand out.
 */
function printTable(heading: string, rows: readonly (readonly (string | number)[])[]): void {
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

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    groups.set(key, [...(groups.get(key) ?? []), item])
  }
  return groups
}
