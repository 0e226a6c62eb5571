import { BROKEN } from './broken.ts'
import { forAll, isAlone, Laboratory } from './laboratory.ts'
import type { Run } from './program.ts'
import { namesAskedOfResolvers } from './queries.ts'
import { type Broken, type Grade, type GradedRun, grade } from './truth.ts'

interface Result extends GradedRun {
  readonly setup: Broken
  readonly run: Run
}

/** Checks each broken setup once; true if the program found the cause of every one. */
export async function runBroken({ only, atOnce }: { only: RegExp; atOnce: number }): Promise<boolean> {
  const setups = BROKEN.filter((setup) => only.test(setup.id))
  const lab = await Laboratory.open(BROKEN)
  const results: Result[] = []
  const examine = async (setup: Broken) => {
    const run = await lab.examine(setup)
    results.push({ setup, run, ...grade(setup, run, namesAskedOfResolvers(run)) })
  }
  try {
    await forAll(
      setups.filter((setup) => !isAlone(setup)),
      atOnce,
      examine,
    )
    await forAll(setups.filter(isAlone), 1, examine)
  } finally {
    await lab.close()
  }
  return print(results.toSorted((a, b) => BROKEN.indexOf(a.setup) - BROKEN.indexOf(b.setup)))
}

function print(results: readonly Result[]): boolean {
  for (const { setup, run, grade, why } of results) {
    const mark = grade === 'right' ? '✓' : '✗'
    const cost = `${run.seconds.toFixed(1)} s, ${run.exchanges.length} queries, ${Math.round(run.peakMiB)} MiB`
    console.log(`${mark} ${setup.id.padEnd(18)} ${grade.padEnd(8)} ${cost}: ${why}`)
    if (grade === 'right') continue
    console.log(`    ${setup.what}; ${setup.name}`)
    for (const finding of run.report?.findings ?? [])
      console.log(`    ${finding.severity} ${finding.code}: ${finding.message}\n      → ${finding.fix}`)
  }
  const count = (grade: Grade) => results.filter((result) => result.grade === grade).length
  const slowest = results.toSorted((a, b) => b.run.seconds - a.run.seconds).slice(0, 5)
  console.log(
    `${results.length} broken setups: ${count('right')} right, ${count('wrong')} wrong, ${count('generic')} generic, ${count('harmful')} harmful`,
  )
  console.log(
    `slowest: ${slowest.map(({ setup, run }) => `${setup.id} ${run.seconds.toFixed(1)} s`).join(', ')}`,
  )
  return results.every((result) => result.grade === 'right')
}
