import type { Context, Output } from '../context.ts'
import type { Settings } from '../settings/settings.ts'
import { untilClosed as closed } from './io.ts'

export { withWrite } from './progress.ts'

export function untilClosed(context: Context, settings: Settings): Output {
  return closed(context, settings).stdout
}
