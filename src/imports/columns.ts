import { spokenTime } from '../service/spoken-time.ts'
import type { Column } from '../terminal/columns.ts'

const COUNTS = ['total', 'created', 'updated', 'skipped', 'failed'] as const

/** A contact import as tables, detail views, TSV and CSV show it. */
export const IMPORT_COLUMNS: readonly Column[] = [
  { field: 'id', kind: 'id' },
  {
    field: 'status',
    paint: (value, palette) =>
      value === 'completed' ? palette.good : value === 'failed' ? palette.bad : palette.accent,
  },
  ...COUNTS.map(
    (count): Column => ({
      field: `counts.${count}`,
      title: count.charAt(0).toUpperCase() + count.slice(1),
      kind: 'number',
      ...(count === 'failed'
        ? { paint: (value, palette) => (typeof value === 'number' && value > 0 ? palette.bad : undefined) }
        : {}),
    }),
  ),
  { field: 'created_at', title: 'Created at', text: spokenTime },
  { field: 'completed_at', title: 'Completed at', text: spokenTime },
]

/** The same in a list, where people see what fits beside an id on 80 columns. */
export const IMPORT_LIST_COLUMNS: readonly Column[] = IMPORT_COLUMNS.map((column) =>
  ['id', 'status', 'counts.total', 'counts.failed', 'created_at'].includes(column.field)
    ? column
    : { ...column, only: 'programs' },
)
