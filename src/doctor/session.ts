import type { Context } from '../context.ts'
import { describeSession } from '../session/describe.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Settings } from '../settings/settings.ts'
import { type Diagnosis, ok, problem, warning } from './report.ts'

/** Whether commands have a credential to send, as far as this machine knows. */
export async function examineSession(context: Context, settings: Settings): Promise<Diagnosis> {
  const check = 'session'
  const {
    state,
    problem: failure,
    doubt,
    apiKeyActive,
    apiKeyProblem,
    record,
  } = await describeSession(context, settings)
  if (apiKeyProblem !== undefined) return problem(check, apiKeyProblem)
  if (apiKeyActive) {
    const stored = state === 'none' ? '' : '; the stored session is not used'
    if (failure === undefined || state === 'none') return ok(check, `using MAILCLAIM_API_KEY${stored}`)
    return warning(
      check,
      `using MAILCLAIM_API_KEY; the stored session doesn't work: ${failure.message}`,
      failure.hint ??
        `sign in again: ${loginCommand({ profile: settings.profile.value, store: record?.store })}`,
    )
  }
  if (failure !== undefined) return problem(check, failure)
  if (doubt !== undefined) return warning(check, doubt, 'renew it to find out: mailclaim auth refresh')
  if (record?.kind === 'api_key') return ok(check, 'signed in with a stored API key')
  if (state === 'refreshing') return ok(check, 'signed in; another command is refreshing the access token')
  return ok(check, state === 'fine' ? 'signed in' : 'signed in; the next command refreshes the access token')
}
