import { HEALTHY } from './healthy.ts'
import { forAll, Laboratory } from './laboratory.ts'
import type { Run } from './program.ts'

/** What is wrong with a report about a healthy setup, or undefined. */
function complaint({ report, exit }: Run): string | undefined {
  if (report === undefined) return `no report, exit ${exit}`
  const loud = report.findings.filter((finding) => finding.severity !== 'info')
  if (loud.length > 0)
    return `${report.verdict}: ${loud.map((finding) => `${finding.code} (${finding.message})`).join('; ')}`
  return report.verdict === 'ready' && exit === 0 ? undefined : `${report.verdict}, exit ${exit}`
}

/** Checks each healthy setup with cold caches; true if every run was ready without findings. */
export async function runHealthy({
  only,
  runs,
  atOnce,
}: {
  only: RegExp
  runs: number
  atOnce: number
}): Promise<boolean> {
  const setups = HEALTHY.filter((setup) => only.test(setup.id))
  const lab = await Laboratory.open(HEALTHY)
  let clean = 0
  const results: { id: string; seconds: number; queries: number }[] = []
  try {
    await forAll(setups, atOnce, async (setup) => {
      const complaints: string[] = []
      const throughResolver = (setup.resolvers ?? ['unbound']).every(
        (resolver) => typeof resolver === 'string',
      )
      for (let count = 0; count < runs; count += 1) {
        const run = await lab.examine(setup)
        results.push({ id: setup.id, seconds: run.seconds, queries: run.exchanges.length })
        const said = complaint(run)
        if (throughResolver && !run.resolves)
          complaints.push("the laboratory is wrong: its resolver doesn't have the record")
        if (said !== undefined) complaints.push(`run ${count + 1}: ${said}`)
      }
      if (complaints.length === 0) clean += 1
      else console.log(`✗ ${setup.id} (${setup.what}; ${setup.name})\n  ${complaints.join('\n  ')}`)
    })
  } finally {
    await lab.close()
  }
  const by = (key: 'seconds' | 'queries') => results.toSorted((a, b) => b[key] - a[key])
  const sum = results.reduce((total, result) => total + result.queries, 0)
  console.log(`${setups.length} healthy setups, ${runs} runs each: ${clean} without any finding above info`)
  console.log(
    `slowest: ${by('seconds')
      .slice(0, 5)
      .map(({ id, seconds }) => `${id} ${seconds.toFixed(1)} s`)
      .join(', ')}`,
  )
  console.log(
    `queries: ${(sum / results.length).toFixed(1)} on average; most: ${by('queries')
      .slice(0, 5)
      .map(({ id, queries }) => `${id} ${queries}`)
      .join(', ')}`,
  )
  return clean === setups.length
}
