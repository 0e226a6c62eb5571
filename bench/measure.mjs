// Runs two commands alternately and compares their times.
import { spawn } from 'node:child_process'

/** Module that makes a process print its peak memory, in KiB, on stderr when it ends. */
const TELL_PEAK =
  'data:text/javascript,process.on("exit",()=>process.stderr.write("\\npeak "+process.resourceUsage().maxRSS))'

/**
 * Runs a command to its end and counts the lines it writes to a pipe.
 *
 * @returns wall-clock milliseconds, exit code, stderr and number of lines; with `keep`, stdout; with `peak`, peak memory in MiB
 */
export function run({ node, words, env, peak = false, keep = false }) {
  return new Promise((resolve, reject) => {
    const options = peak ? ['--import', TELL_PEAK] : []
    const start = performance.now()
    const child = spawn(node, [...options, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    let lines = 0
    child.stdout.on('data', (piece) => {
      for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines++
      if (keep) stdout += piece
    })
    child.stderr.on('data', (piece) => {
      stderr += piece
    })
    child.once('error', reject)
    child.once('exit', () => {
      child.ms = performance.now() - start
    })
    child.once('close', (code) => {
      const told = /\npeak (\d+)/.exec(stderr)
      resolve({
        ms: child.ms,
        code,
        stdout,
        stderr,
        lines,
        peak: told === null ? undefined : Number(told[1]) / 1024,
      })
    })
  })
}

/**
 * Runs both commands alternately, so that a machine whose speed drifts slows both.
 *
 * @returns the times of each and the ratios of each pair, all in the order of the runs
 */
export async function compare(ours, theirs, runs, expected = 0) {
  const pairs = []
  for (let at = -1; at < runs; at++) {
    const both =
      at % 2 === 0 ? [await run(ours), await run(theirs)] : [await run(theirs), await run(ours)].reverse()
    if (both[0].code !== expected) {
      throw new Error(`${ours.words.join(' ')} ended with ${both[0].code}: ${both[0].stderr}`)
    }
    // The first pair isn't counted: it fills the caches of the disk and the compiler.
    if (at >= 0) pairs.push(both)
  }
  return {
    ours: pairs.map(([one]) => one),
    theirs: pairs.map(([, other]) => other),
    ratios: pairs.map(([one, other]) => one.ms / other.ms),
  }
}

export function quantile(values, part) {
  const sorted = [...values].sort((one, other) => one - other)
  const at = (sorted.length - 1) * part
  const low = sorted[Math.floor(at)]
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at))
}

export const median = (values) => quantile(values, 0.5)

/** Returns a row of the table. The verdict is `ok` if the median is within the budget, `in the noise` if only the lower quartile is, else `OVER`. */
export function row(what, node, values, budget, detail, unit = 'x') {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(values, part))
  const verdict =
    budget === undefined ? '' : middle <= budget ? 'ok' : low <= budget ? 'in the noise' : 'OVER'
  const text = (value) => (unit === 'x' ? value.toFixed(2) : value.toFixed(value < 10 ? 2 : 0))
  return {
    what,
    node,
    measured: `${text(middle)} ${unit}`,
    spread: values.length > 1 ? `${text(low)}–${text(high)} (${values.length})` : '',
    budget: budget === undefined ? '' : `${budget} ${unit}`,
    verdict,
    detail,
  }
}

/** Returns the rows as a Markdown table whose columns are aligned. */
export function table(rows) {
  const heads = ['what', 'node', 'measured', 'spread', 'budget', 'verdict', 'detail']
  const cells = [heads, ...rows.map((one) => heads.map((head) => String(one[head] ?? '')))]
  const widths = heads.map((_, at) => Math.max(...cells.map((line) => line[at].length)))
  const lines = cells.map((line) => `| ${line.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`)
  lines.splice(1, 0, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`)
  return lines.join('\n')
}
