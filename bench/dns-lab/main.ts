import { parseArgs } from 'node:util'
import { runBroken } from './run-broken.ts'
import { runHealthy } from './run-healthy.ts'

const USAGE = `Usage: npm run dns-lab -- <command> [options]

  healthy   set-ups that work: ready, and nothing above info
  broken    set-ups that do not: the cause that was written down before
  fuzz      zones that answer at random: bounds of time, memory and questions
  chain     the longest chain of questions of a healthy check

  --only <pattern>   set-ups whose id matches (a regular expression)
  --runs <n>         runs of each healthy set-up, each with cold caches (3)
  --at-once <n>      checks at the same time (3)
`

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: 'string', default: '' },
      runs: { type: 'string', default: '3' },
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
