import { examine } from '../doctor/examine.ts'
import { type Diagnosis, problemsError, type Result, type Status } from '../doctor/report.ts'
import { Exit } from '../errors.ts'
import { withGivenOptions } from '../settings/suggested-commands.ts'
import type { Palette } from '../terminal/color.ts'
import type { Column } from '../terminal/columns.ts'
import { stdoutPalette } from '../terminal/output.ts'
import { sanitizeLine } from '../terminal/sanitize.ts'
import { defineCommand, ownOutput } from './definition.ts'
import { printItems } from './lists.ts'

const COLUMNS: readonly Column[] = [
  { field: 'check' },
  { field: 'status' },
  { field: 'message' },
  { field: 'remedy' },
]

export const command = defineCommand({
  description: `Checks everything that a command needs: configuration, directories and their permissions, the credential
store (a real round trip), the lock, the session, the network and any proxy, the clock, and DNS. It takes at most ten
seconds, changes nothing and sends no credential. Each problem comes with a remedy; the first one decides the exit code. As
long as nothing is set up, what only an account needs isn't a problem: "mailclaim claims check" works without it.`,
  examples: {
    'mailclaim doctor': 'when something does not work',
    'mailclaim doctor --profile staging': 'with the settings of another profile',
    'mailclaim doctor --json': 'for a support ticket, without secrets',
  },
  output: ownOutput(COLUMNS, { schema: 'list', lineSchema: 'doctor' }),
  exits: [Exit.notConfigured, Exit.notSignedIn, Exit.unavailable],
  toleratesDamagedConfig: 'silently',
  async run(_input, io) {
    const [context, settings] = [io, io.settings]
    const diagnoses = (await examine(context, settings)).map((diagnosis) => ({
      ...diagnosis,
      remedy: diagnosis.remedy && withGivenOptions(diagnosis.remedy, settings.argv),
    }))
    const items: Result[] = diagnoses.map(({ exit: _exit, ...result }) => result)
    const isForPeople = settings.format === 'table' && settings.fields === undefined
    if (isForPeople) {
      const palette = await stdoutPalette(context, settings)
      await context.stdout.write(await renderPeople(diagnoses, context.stdout.columns ?? 80, palette))
    } else {
      await printItems(items, COLUMNS, 'nothing to check', context, settings)
    }
    const failure = problemsError(diagnoses, isForPeople)
    if (failure !== undefined) throw failure
  },
})

const MARKS: Readonly<Record<Status, { mark: string; paint: keyof Palette }>> = {
  ok: { mark: '✔', paint: 'good' },
  warning: { mark: '!', paint: 'warning' },
  problem: { mark: '✗', paint: 'bad' },
  skipped: { mark: '-', paint: 'faint' },
}

/** One line for each check, with the remedy below it. */
async function renderPeople(
  diagnoses: readonly Diagnosis[],
  width: number,
  palette: Palette,
): Promise<string> {
  const { wrap } = await import('../terminal/measure.ts')
  const label = Math.max(...diagnoses.map(({ check }) => check.length)) + 2
  const beside = width >= label + 34
  const indent = beside ? ' '.repeat(label + 2) : '  '
  const textWidth = Math.max(16, width - indent.length)
  return diagnoses
    .map(({ check, status, message, remedy }) => {
      const { mark, paint } = MARKS[status]
      const lines = wrap(sanitizeLine(message), textWidth)
      const head = `${palette[paint](mark)} ${palette.strong(check)}`
      const first = beside ? `${head}${' '.repeat(label - check.length)}${lines.shift() ?? ''}` : head
      const rest = [...lines, ...(remedy === null ? [] : wrap(`→ ${sanitizeLine(remedy)}`, textWidth))]
      return [first, ...rest.map((line) => `${indent}${line}`)].map((line) => `${line}\n`).join('')
    })
    .join('')
}
