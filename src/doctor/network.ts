import { type Context, type HttpResponse, TransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { userAgent } from '../service/client.ts'
import { transportFailure } from '../service/problems.ts'
import { isLoopback } from '../settings/addresses.ts'
import { requireBaseUrl, type Settings } from '../settings/settings.ts'
import { formatDuration } from '../terminal/duration.ts'
import { type Diagnosis, ok, problem, skipped, warning } from './report.ts'

/** How long the service may take to respond. */
const RESPONSE_TIMEOUT_MS = 7000
/** The Date header has whole seconds and arrives late; expiry times matter in minutes. */
const MAX_SKEW_MS = 30_000

/**
 * Sends one request without a credential: any response shows that name resolution, routing, TLS and the proxy work, and its
 * Date header shows whether the clocks agree.
 */
export async function examineNetwork(
  context: Pick<Context, 'clock' | 'http' | 'interrupts' | 'environment' | 'program' | 'platform'>,
  settings: Pick<Settings, 'baseUrl' | 'httpTimeoutMs'>,
): Promise<Diagnosis[]> {
  let base: URL
  try {
    base = requireBaseUrl(settings)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const reason = 'there is no valid base URL'
    return [skipped('network', reason), skipped('clock', reason)]
  }
  const started = { wall: context.clock.now(), at: context.clock.monotonic() }
  try {
    const response = await context.http.send({
      method: 'GET',
      url: base,
      headers: { 'user-agent': userAgent(context), accept: '*/*' },
      timeoutMs: Math.min(RESPONSE_TIMEOUT_MS, settings.httpTimeoutMs),
      signal: context.interrupts.signal,
    })
    await readBeginning(response)
    const ms = context.clock.monotonic() - started.at
    const proxy = proxyOf(base, context.environment)
    const via = proxy === undefined ? '' : `; the environment names the proxy ${proxy}`
    // Any other status is normal for the bare address of an API.
    const failure = response.status >= 500 ? `, but with HTTP ${response.status}` : ''
    const responds = `${base.origin} responds in ${Math.round(ms)} ms${failure}${via}`
    return [
      context.environment.tlsRejectUnauthorized === '0'
        ? warning(
            'network',
            `${responds}, but with NODE_TLS_REJECT_UNAUTHORIZED=0 no certificate is checked, so anyone could impersonate it`,
            'unset NODE_TLS_REJECT_UNAUTHORIZED; for a private certificate authority, set NODE_EXTRA_CA_CERTS to its certificate file',
          )
        : ok('network', responds),
      compareClocks(response.headers['date'], started.wall + ms / 2),
    ]
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    const failure = transportFailure(error, base, 'GET')
    return [
      problem('network', withProxy(failure, base, context.environment)),
      skipped('clock', 'the service sent no valid Date header'),
    ]
  }
}

/** The body doesn't matter, but reading some of it lets the connection close cleanly. */
async function readBeginning(response: HttpResponse): Promise<void> {
  for await (const _piece of response.body) break
}

function compareClocks(date: string | undefined, localTime: number): Diagnosis {
  const serviceTime = Date.parse(date ?? '')
  if (Number.isNaN(serviceTime)) return skipped('clock', 'the service sent no valid Date header')
  const skew = localTime - serviceTime
  if (Math.abs(skew) <= MAX_SKEW_MS) return ok('clock', 'this machine and the service agree on the time')
  return warning(
    'clock',
    `this machine is ${formatDuration(Math.abs(skew) / 1000)} ${skew > 0 ? 'ahead of' : 'behind'} the service`,
    'set the clock, preferably with NTP: otherwise tokens seem to expire too early or too late',
  )
}

function proxyOf(base: URL, { httpProxy, httpsProxy }: Context['environment']): string | undefined {
  const proxy = base.protocol === 'https:' ? httpsProxy : httpProxy
  if (proxy === undefined) return undefined
  // Only the host: a proxy's URL may contain a password.
  return URL.canParse(proxy) ? new URL(proxy).host : 'with an invalid URL'
}

function withProxy(failure: CliError, base: URL, environment: Context['environment']): CliError {
  const proxy = proxyOf(base, environment)
  if (proxy === undefined) return failure
  const noProxy = isLoopback(base.hostname) ? `; add ${base.hostname} to NO_PROXY` : ''
  return new CliError(failure.code, failure.exit, `${failure.message} (proxy ${proxy})`, {
    hint: `${failure.hint ?? 'check the network'}${noProxy}`,
    cause: failure,
  })
}
