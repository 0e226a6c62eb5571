import { describeSession } from '../session/describe.ts'
import type { Io } from '../terminal/io.ts'
import { type Diagnosis, ok, problem } from './report.ts'

/** Whether commands have a credential to send, as far as this machine knows. */
export async function examineSession(io: Io): Promise<Diagnosis> {
  const check = 'session'
  const { state, inForce, problem: failure } = await describeSession(io)
  if (failure !== undefined) return problem(check, failure)
  if (inForce === 'MAILCLAIM_API_KEY') return ok(check, 'using MAILCLAIM_API_KEY')
  if (inForce === 'stored API key') return ok(check, 'signed in with a stored API key')
  if (state === 'refreshing') return ok(check, 'signed in; another command is refreshing the access token')
  return ok(check, state === 'fine' ? 'signed in' : 'signed in; the next command refreshes the access token')
}
