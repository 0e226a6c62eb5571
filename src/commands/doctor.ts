import { examine } from '../doctor/examine.ts'
import { type Diagnosis, failureOf, type Result, type Status } from '../doctor/report.ts'
import { Exit } from '../errors.ts'
import type { Palette } from '../terminal/color.ts'
import type { Column } from '../terminal/columns.ts'
import { createListWriter } from '../terminal/list-writer.ts'
import { stdoutPalette } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { defineCommand } from './definition.ts'

const COLUMNS: readonly Column[] = [
  { field: 'check' },
  { field: 'status' },
  { field: 'message' },
  { field: 'remedy' },
]

export const command = defineCommand({
  description: `Looks at everything that a command needs: configuration, folders and their rights, the credential store
(a real round trip), the lock, the session, the network and any proxy, the clock, and DNS. Takes at most ten seconds,
changes nothing and sends no credential. Each problem comes with a remedy; the first one decides the exit code.`,
  examples: [
    { command: 'mailclaim doctor', says: 'when something does not work' },
    { command: 'mailclaim doctor --profile staging', says: 'with the settings of another profile' },
    { command: 'mailclaim doctor --json', says: 'for a support ticket: there is no secret in it' },
  ],
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.unavailable],
  toleratesDamagedConfig: true,
  async run(_input, context, settings) {
    const diagnoses = await examine(context, settings)
    const items: Result[] = diagnoses.map(({ exit: _exit, ...result }) => result)
    if (settings.format === 'table' && settings.fields === undefined) {
      const palette = await stdoutPalette(context, settings)
      await context.stdout.write(await renderPeople(diagnoses, context.stdout.columns ?? 80, palette))
    } else {
      const writer = createListWriter({ context, settings, columns: COLUMNS, nothing: 'nothing to look at' })
      const envelope = { object: 'list', has_more: false, data: items }
      await writer.page({ items, envelope, finalHasMore: false })
      await writer.end(false)
    }
    const failure = failureOf(diagnoses)
    if (failure !== undefined) throw failure
  },
})

const MARKS: Readonly<Record<Status, { mark: string; paint: keyof Palette }>> = {
  ok: { mark: '✓', paint: 'good' },
  warning: { mark: '!', paint: 'warning' },
  problem: { mark: '✗', paint: 'bad' },
  skipped: { mark: '-', paint: 'faint' },
}

/** A line for each look, what to do below it. */
async function renderPeople(
  diagnoses: readonly Diagnosis[],
  width: number,
  palette: Palette,
): Promise<string> {
  const { wrap } = await import('../terminal/measure.ts')
  const label = Math.max(...diagnoses.map(({ check }) => check.length)) + 2
  const beside = width >= label + 34
  const indent = beside ? ' '.repeat(label + 2) : '  '
  const room = Math.max(16, width - indent.length)
  return diagnoses
    .map(({ check, status, message, remedy }) => {
      const { mark, paint } = MARKS[status]
      const lines = wrap(sanitizeLine(message), room)
      const head = `${palette[paint](mark)} ${palette.strong(check)}`
      const first = beside ? `${head}${' '.repeat(label - check.length)}${lines.shift() ?? ''}` : head
      const below = [...lines, ...(remedy === null ? [] : wrap(`→ ${sanitizeLine(remedy)}`, room))]
      return [first, ...below.map((line) => `${indent}${line}`)].map((line) => `${line}\n`).join('')
    })
    .join('')
}
