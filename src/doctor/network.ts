import { type Context, type HttpResponse, TransportError } from '../context.ts'
import { CliError } from '../errors.ts'
import { unreachable, userAgent } from '../service/client.ts'
import { isLoopback } from '../settings/addresses.ts'
import { requireBaseUrl, type Settings } from '../settings/settings.ts'
import { type Diagnosis, ok, problem, skipped, warning } from './report.ts'

/** How long the service may take to answer. */
const ANSWER_MS = 7000
/** The service's clock comes in whole seconds and over a network; expiry times matter in minutes. */
const TOLERATED_SKEW_MS = 30_000

/**
 * Asks the service's address once, without a credential: any answer at all shows that name, route, TLS and proxy work,
 * and its Date header tells the time.
 */
export async function examineNetwork(context: Context, settings: Settings): Promise<Diagnosis[]> {
  let base: URL
  try {
    base = requireBaseUrl(settings)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const why = 'there is no usable base URL to ask'
    return [skipped('network', why), skipped('clock', why)]
  }
  const started = { wall: context.clock.now(), at: context.clock.monotonic() }
  try {
    const response = await context.http.send({
      method: 'GET',
      url: base,
      headers: { 'user-agent': userAgent(context), accept: '*/*' },
      timeoutMs: Math.min(ANSWER_MS, settings.httpTimeoutMs),
      signal: context.interrupts.signal,
    })
    await drain(response)
    const ms = context.clock.monotonic() - started.at
    const answers = `${base.origin} answers (HTTP ${response.status}, ${Math.round(ms)} ms${proxyFor(base, context)})`
    return [
      context.environment.tlsRejectUnauthorized === '0'
        ? warning(
            'network',
            `${answers}, but NODE_TLS_REJECT_UNAUTHORIZED=0 lets anyone answer in its place: no certificate is checked`,
            'unset NODE_TLS_REJECT_UNAUTHORIZED; for an authority of your own set NODE_EXTRA_CA_CERTS to its certificate',
          )
        : ok('network', answers),
      judgeClock(response.headers['date'], started.wall + ms / 2),
    ]
  } catch (error) {
    if (!(error instanceof TransportError)) throw error
    const failure = unreachable(error, base, 'GET')
    return [
      problem('network', withProxy(failure, base, context)),
      skipped('clock', 'the service did not tell the time'),
    ]
  }
}

/** The answer's text does not matter, but reading its beginning lets the connection end in order. */
async function drain(response: HttpResponse): Promise<void> {
  for await (const _piece of response.body) break
}

function judgeClock(date: string | undefined, ours: number): Diagnosis {
  const theirs = Date.parse(date ?? '')
  if (Number.isNaN(theirs)) return skipped('clock', 'the service did not tell the time')
  const skew = ours - theirs
  if (Math.abs(skew) <= TOLERATED_SKEW_MS)
    return ok('clock', 'this machine and the service agree on the time')
  const seconds = Math.round(Math.abs(skew) / 1000)
  return warning(
    'clock',
    `this machine is ${seconds} seconds ${skew > 0 ? 'ahead of' : 'behind'} the service`,
    'set the clock, best by NTP: times that are shown would be wrong, and tokens seem to end too early or too late',
  )
}

function proxyOf(base: URL, context: Context): string | undefined {
  const { httpProxy, httpsProxy } = context.environment
  const proxy = base.protocol === 'https:' ? httpsProxy : httpProxy
  if (proxy === undefined) return undefined
  // A proxy's address may hold a password: only where it is, is told.
  return URL.canParse(proxy) ? new URL(proxy).host : 'of an address that is none'
}

function proxyFor(base: URL, context: Context): string {
  const proxy = proxyOf(base, context)
  return proxy === undefined ? '' : `; the environment names the proxy ${proxy}`
}

function withProxy(failure: CliError, base: URL, context: Context): CliError {
  const proxy = proxyOf(base, context)
  if (proxy === undefined) return failure
  const exception = isLoopback(base.hostname) ? `; this machine itself belongs in NO_PROXY` : ''
  return new CliError(failure.code, failure.exit, `${failure.message} (proxy ${proxy})`, {
    hint: `${failure.hint ?? 'check the network'}${exception}`,
    cause: failure,
  })
}
