import { HttpTransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { formatUserAgent } from '../service/client.ts'
import { noResponseError } from '../service/problems.ts'
import { proxyUrlFor } from '../service/proxy.ts'
import { maskUserInfo } from '../settings/addresses.ts'
import { getBaseUrl } from '../settings/settings.ts'
import type { Io } from '../terminal/io.ts'
import { formatDuration } from '../terminal/time.ts'
import { type CheckResult, okResult, problemResult, skippedResult, warningResult } from './check-result.ts'

const RESPONSE_TIMEOUT_MS = 7000
/**
 * Maximum difference in milliseconds between the clocks of this machine and the service that is still ok: the Date header has
 * whole seconds, and access tokens are valid for minutes.
 */
const MAX_SKEW_MS = 30_000

/**
 * Sends one request without a credential to the base URL. Any response shows that the service can be reached, through the proxy
 * if there is one; its Date header shows whether the clocks of this machine and the service agree. Without a valid base URL,
 * both checks are skipped.
 */
export async function examineNetwork(io: Io): Promise<{ network: CheckResult; clock: CheckResult }> {
  const { clock, environment } = io
  let base: URL
  try {
    base = getBaseUrl(io.settings)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const nothing = skippedResult('there is no valid base URL')
    return { network: nothing, clock: nothing }
  }
  const proxy = proxyUrlFor(base, environment)
  const started = { wall: clock.now(), at: clock.monotonic() }
  try {
    const response = await io.http.send({
      method: 'GET',
      url: base,
      headers: { 'user-agent': formatUserAgent(io), accept: '*/*' },
      timeoutMs: Math.min(RESPONSE_TIMEOUT_MS, io.settings.httpTimeoutMs),
      signal: io.interrupts.signal,
    })
    const ms = clock.monotonic() - started.at
    const via = proxy === undefined ? '' : `, through the proxy ${maskUserInfo(proxy)}`
    // Mention only a 5xx status: 401 and 404 are normal at the base URL of an API.
    const status = response.status >= 500 ? `, but with HTTP ${response.status}` : ''
    const responds = `${base.origin} responds in ${Math.round(ms)} ms${status}${via}`
    const unchecked = 'its certificate is not checked (NODE_TLS_REJECT_UNAUTHORIZED=0)'
    const network = environment.tlsUnchecked
      ? warningResult(`${responds}; ${unchecked}`, 'unset NODE_TLS_REJECT_UNAUTHORIZED')
      : okResult(responds)
    return { network, clock: compareClocks(response.headers['date'], started.wall + ms / 2) }
  } catch (error) {
    if (!(error instanceof HttpTransportError)) throw error
    return {
      network: problemResult(noResponseError(error, base, 'GET')),
      clock: skippedResult('the service did not answer'),
    }
  }
}

function compareClocks(date: string | undefined, localTime: number): CheckResult {
  const skew = localTime - Date.parse(date ?? '')
  if (Number.isNaN(skew)) return skippedResult('the service sent no valid Date header')
  if (Math.abs(skew) <= MAX_SKEW_MS) return okResult('this machine and the service agree on the time')
  const by = formatDuration(Math.abs(skew) / 1000)
  return warningResult(
    `this machine is ${by} ${skew > 0 ? 'ahead of' : 'behind'} the service`,
    'set the clock, preferably with NTP: otherwise tokens seem to expire too early or too late',
  )
}
