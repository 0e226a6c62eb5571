import { parseArgs } from 'node:util'
import { runBroken } from './run-broken.ts'
import { runHealthy } from './run-healthy.ts'
import { runHostile } from './run-hostile.ts'

const USAGE = `Usage: npm run dns-lab -- <command> [options]

  healthy   setups that work: the check must be ready, with no finding above info
  broken    setups that don't: the check must find the known cause
  hostile   random zones that answer anything: the check must end within its limits of time, queries, and memory

  --only <pattern>   only setups whose id (hostile: name) matches this regular expression
  --runs <n>         runs of each healthy setup, each with cold caches (default: 3)
  --at-once <n>      checks at the same time (default: 3)
  --zones <n>        hostile zones (default: 2000)
  --seed <n>         makes the same hostile zones again (default: 1)
`

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      runs: { type: 'string', default: '3' },
      zones: { type: 'string', default: '2000' },
      seed: { type: 'string', default: '1' },
      'at-once': { type: 'string', default: '3' },
    },
  })
  const only = new RegExp(values.only)
  const atOnce = Number(values['at-once'])
  switch (positionals[0]) {
    case 'healthy':
      return (await runHealthy({ only, runs: Number(values.runs), atOnce })) ? 0 : 1
    case 'broken':
      return (await runBroken({ only, atOnce })) ? 0 : 1
    case 'hostile':
      return (await runHostile({ only, zones: Number(values.zones), seed: Number(values.seed), atOnce }))
        ? 0
        : 1
    default:
      process.stderr.write(USAGE)
      return 2
  }
}

main().then(
  (code) => process.exit(code),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
