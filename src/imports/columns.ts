import { formatServiceTimestamp } from '../service/timestamps.ts'
import type { Column } from '../terminal/columns.ts'

const COUNTS = ['total', 'created', 'updated', 'skipped', 'failed'] as const

/** Columns of a contact import, as `imports get` and `imports watch` print it. */
export const IMPORT_COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  {
    field: 'status',
    paint: (value, { palette }) =>
      value === 'completed' ? palette.good : value === 'failed' ? palette.bad : palette.accent,
  },
  ...COUNTS.map(
    (count): Column => ({
      field: `counts.${count}`,
      title: count.charAt(0).toUpperCase() + count.slice(1),
      kind: 'number',
    }),
  ),
  { field: 'created_at', title: 'Created at', kind: 'time', text: formatServiceTimestamp },
  { field: 'completed_at', title: 'Completed at', kind: 'time', text: formatServiceTimestamp },
]

/** Fields that the table of `imports list` keeps in a narrow terminal; their columns fit into 80 characters. */
const REQUIRED_FIELDS = ['id', 'status', 'counts.total', 'counts.failed', 'created_at']

/** Columns of `imports list`. In a narrow terminal, columns that aren't in `REQUIRED_FIELDS` may be left out. */
export const IMPORT_LIST_COLUMNS: readonly Column[] = IMPORT_COLUMNS.map((column) =>
  REQUIRED_FIELDS.includes(column.field) ? column : { ...column, optional: true },
)

/** Meanings of the events of `imports watch --format jsonl`, for the documentation. */
export const IMPORT_EVENT_MEANINGS = {
  status: 'the status of the import, at the start and when it changes',
  waiting: 'the counts have changed, or a minute has passed',
  warning: 'a problem that does not stop it, with the error',
  done: 'the import is completed or failed, with the error',
} as const
