import type { Context } from '../context.ts'
import { describeSession } from '../session/describe.ts'
import type { Settings } from '../settings/settings.ts'
import { type Diagnosis, ok, problem, warning } from './report.ts'

/** Whether commands can sign their requests, as far as this machine knows. */
export async function examineSession(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'session'
  const { state, problem: failure, apiKeyActive, record } = await describeSession(context, settings)
  if (apiKeyActive) {
    const stored = state === 'none' ? '' : '; the stored session is not used meanwhile'
    if (failure === undefined || state === 'none') return ok(check, `MAILCLAIM_API_KEY is in force${stored}`)
    return warning(
      check,
      `MAILCLAIM_API_KEY is in force, and the stored session could not take its place: ${failure.message}`,
      failure.hint ?? 'mailclaim login',
    )
  }
  if (failure !== undefined) return problem(check, failure)
  if (record?.kind === 'api_key') return ok(check, 'signed in with a stored API key')
  if (state === 'refreshing') return ok(check, 'signed in; another command is renewing the access token')
  return ok(check, state === 'fine' ? 'signed in' : 'signed in; the next command renews the access token')
}
