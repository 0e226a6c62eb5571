// Fails on words that have a standard equivalent, wherever they stand in source, tests, and documentation.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** What not to write, and what to write instead. */
const WORDS = [
  [/\bwhole road\b/i, 'whole flow'],
  [/\btaken up again\b/i, 'resumed'],
  [/\banew\b/i, 'again'],
  [/\bmend(s|ed|ing)?\b/i, 'fix'],
  [/\bin vain\b/i, 'without success'],
  [/\bexclude (each other|one another)\b/i, "can't be used together"],
  [/\bis no (setting|failure|error|terminal|fault)\b/i, "isn't a …"],
  [/\bmakes? no sense\b/i, 'unexpected, invalid'],
  [/\bnegative end\b/i, 'ended unsuccessfully'],
  [/\bin force\b/i, 'active'],
  [/colour/i, 'color'],
  [/behaviour/i, 'behavior'],
  [/\bneighbour/i, 'neighbor'],
  [/(sanit|normal|serial|organ|recogn)is(e|es|ed|ing|er|ation)\b/i, 'the same with z'],
  [/\btime-outs?\b/i, 'timeout'],
  [/\bset-ups?\b/i, 'setup'],
  [/(?<!['/])\bfolders?\b/i, 'directory'],
  [/(?:^\s*|[{(,] ?)says: /, 'description: '],
  [/\b(standingOf|createRoute|createTally|Station)\b|\btravel\(/, 'stateOf, ResolutionContext, Step, run'],
  [/\bjudg(e|es|ed|ing|ment)(?![a-z])/i, 'classify, validate'],
]

const root = fileURLToPath(new URL('../', import.meta.url))
const files = execFileSync(
  'git',
  [
    'ls-files',
    '--cached',
    '--others',
    '--exclude-standard',
    '*.ts',
    '*.mjs',
    '*.c',
    '*.snap',
    'docs',
    'test/stories/screens',
    ':(glob)*.md',
  ],
  { cwd: root, encoding: 'utf8' },
)
  .trim()
  .split('\n')
  .filter((file) => file !== 'scripts/check-words.mjs')

const complaints = []
for (const file of files) {
  const lines = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').split('\n')
  lines.forEach((line, index) => {
    for (const [word, better] of WORDS) {
      const found = word.exec(line)?.[0]
      if (found !== undefined) complaints.push(`${file}:${index + 1}: "${found}": write ${better}`)
    }
  })
}

for (const complaint of complaints) console.error(complaint)
if (complaints.length > 0) process.exitCode = 1
else console.log(`${files.length} files without a word that has a better one`)
