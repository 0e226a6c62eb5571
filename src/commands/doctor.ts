import type { CheckStatus, NamedCheckResult } from '../doctor/check-result.ts'
import type { Palette } from '../terminal/color.ts'
import { plainColumns } from '../terminal/columns.ts'
import type { Io } from '../terminal/io.ts'
import { createRenderContext, hasOwnLayout } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { defineCommand } from './definition.ts'
import { printLocalList } from './lists.ts'

const COLUMNS = plainColumns('check', 'status', 'message', 'remedy')

export const command = defineCommand({
  description: 'Checks the setup: configuration, credential store, lock, session, network, clock and DNS.',
  examples: {
    'mailclaim doctor': 'when something does not work',
    'mailclaim doctor --profile staging': 'with the settings of another profile',
    'mailclaim doctor --json': 'for a support ticket, without secrets',
  },
  output: { columns: COLUMNS, schema: 'list', lineSchema: 'doctor' },
  errors: ['session', 'service', 'doctor'],
  toleratesDamagedConfig: true,
  async run(_input, io) {
    const [{ examineSetup }, { createErrorIfProblems }] = await Promise.all([
      import('../doctor/examine.ts'),
      import('../doctor/check-result.ts'),
    ])
    const results = await examineSetup(io)
    const areRemediesShown = hasOwnLayout(io.settings)
    if (areRemediesShown) await writeResults(results, io)
    else {
      const items = results.map(({ exit: _exit, ...result }) => result)
      await printLocalList([items], COLUMNS, 'nothing to check', io)
    }
    const failure = createErrorIfProblems(results, areRemediesShown)
    if (failure !== undefined) throw failure
  },
})

const MARKS: Readonly<Record<CheckStatus, { mark: string; paint: keyof Palette }>> = {
  ok: { mark: '✔', paint: 'good' },
  warning: { mark: '!', paint: 'warning' },
  problem: { mark: '✗', paint: 'bad' },
  skipped: { mark: '-', paint: 'faint' },
}

/** Writes each result to stdout: check, message, and a remedy, if any, below it, wrapped to the width of the output. */
async function writeResults(results: readonly NamedCheckResult[], io: Io): Promise<void> {
  const { indentPiece, wrapMessageKeepingCommand } = await import('../terminal/measure.ts')
  const { palette } = await createRenderContext(io)
  const { columns: width = 80 } = io.stdout
  const label = Math.max(...results.map(({ check }) => check.length)) + 2
  for (const { check, status, message, remedy } of results) {
    const { mark, paint } = MARKS[status]
    const texts = remedy === null ? [message] : [message, `→ ${remedy}`]
    const [first = '', ...rest] = texts.flatMap((text) =>
      wrapMessageKeepingCommand(sanitizeLine(text), Math.max(16, width - label - 2)),
    )
    const head = `${palette[paint](mark)} ${palette.strong(check)}${' '.repeat(label - check.length)}`
    const lines = [head + first, ...rest.map((line) => indentPiece(line, label + 2, width))]
    await io.stdout.write(`${lines.join('\n')}\n`)
  }
}
