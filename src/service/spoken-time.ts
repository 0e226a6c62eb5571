import type { RenderContext } from '../terminal/columns.ts'
import { relativeTime } from '../terminal/relative-time.ts'
import { parseTimestamp } from './timestamps.ts'

/** A timestamp of the service as people read it on a terminal; undefined where it is shown as it is. */
export function spokenTime(value: unknown, { now }: Pick<RenderContext, 'now'>): string | undefined {
  const at = parseTimestamp(value)
  return at === undefined || now === undefined ? undefined : relativeTime(at, now)
}
