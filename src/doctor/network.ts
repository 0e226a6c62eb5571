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
 * Maximum difference in milliseconds between this machine's clock and the service's for the status `ok`; small compared with the
 * minutes for which access tokens are valid.
 */
const MAX_SKEW_MS = 30_000

/**
 * Checks with one request, sent without a credential to the base URL, whether the service can be reached, and with the response's
 * Date header whether this machine's clock agrees with the service's.
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
    // Mention a 5xx status but no lower one: 401 and 404 are normal at the base URL of an API.
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
