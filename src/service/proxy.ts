import { BlockList, isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js'
import { type EnvironmentValues, HttpTransportError } from '../context.ts'
import { isLoopback } from '../settings/addresses.ts'
import { toHttpTransportError } from './transport-errors.ts'

/**
 * Milliseconds that a proxy may take to open a tunnel; less than the connect timeout, so that the error names a silent proxy as the
 * cause.
 */
const TUNNEL_TIMEOUT_MS = 9000

export type ProxySettings = Pick<EnvironmentValues, 'httpsProxy' | 'noProxy'>

/**
 * Returns the URL of the proxy for a request, unvalidated; undefined for a direct connection. Loopback addresses are never proxied,
 * because a proxy would connect to its own machine.
 */
export function proxyUrlFor(url: URL, { httpsProxy, noProxy }: ProxySettings): string | undefined {
  if (httpsProxy === undefined || isLoopback(url.hostname) || bypassesProxy(url, noProxy ?? ''))
    return undefined
  return httpsProxy.includes('://') ? httpsProxy : `http://${httpsProxy}`
}

/**
 * Creates an undici dispatcher that sends each request through a tunnel (CONNECT, RFC 9110 section 9.3.6). If the proxy refuses the
 * tunnel, the request fails with `sent: 'no'`.
 *
 * @param proxy http or https URL; user name and password in the URL are sent to the proxy only
 * @param connection options for the connections to the proxy and through the tunnel
 * @throws HttpTransportError of kind `proxy` for an unusable URL
 */
export function createProxyAgent(
  proxy: string,
  connection: object,
  options: Omit<ProxyAgent.Options, 'uri'>,
): Dispatcher {
  try {
    const { protocol, username, password } = new URL(proxy)
    // Build the proxy credentials here, because undici sends a user name only together with a password.
    const user = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`)
    if (/^https?:$/.test(protocol))
      return new ProxyAgent({
        ...options,
        ...(username !== '' && { token: `Basic ${user.toString('base64')}` }),
        uri: proxy,
        proxyTls: { ...connection, allowH2: false },
        requestTls: connection,
        clientFactory: (origin, settings) =>
          new TunnelPool(origin, { ...settings, headersTimeout: TUNNEL_TIMEOUT_MS }),
      })
  } catch {
    // Drop the caught error, which may quote the proxy's password, and throw the error below.
  }
  throw new HttpTransportError('proxy', 'no', 'HTTPS_PROXY is not a usable http or https URL')
}

/** Connection pool to the proxy; a failed tunnel becomes an `HttpTransportError` that blames the proxy, not the server. */
class TunnelPool extends Pool {
  override async connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
    const tunnel = await connect.call(this, options).catch((error: unknown) => {
      const { kind, message } = toHttpTransportError(error, 'no', 'proxy')
      throw proxyError(message, error, kind === 'untrusted' || kind === 'dated' ? kind : 'proxy')
    })
    if (tunnel.statusCode >= 200 && tunnel.statusCode <= 299) return { ...tunnel, statusCode: 200 }
    tunnel.socket.on('error', () => {}).destroy()
    throw proxyError(`it answered ${tunnel.statusCode}`)
  }
}

/**
 * Whether NO_PROXY excludes the URL's host from the proxy.
 *
 * @param noProxy value of NO_PROXY, much as curl reads it: hosts (including their subdomains), addresses and networks
 *   (`10.0.0.0/8`), or `*`, separated by commas or spaces
 */
export function bypassesProxy({ hostname }: URL, noProxy: string): boolean {
  const host = hostname.replace(/[[\]]/g, '')
  return noProxy.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [name = '', bits] = entry
      .toLowerCase()
      .replace(/^\*?\.|[[\]]/g, '')
      .split('/')
    const family = isIP(name)
    if (family !== isIP(host)) return false
    if (family === 0) return name !== '' && (host === name || host.endsWith(`.${name}`))
    const most = family === 4 ? 32 : 128
    const prefix = bits === undefined ? most : Number(bits)
    if (!(prefix >= 0 && prefix <= most)) return false
    const network = new BlockList()
    network.addSubnet(name, prefix, `ipv${family as 4 | 6}`)
    return network.check(host, `ipv${family as 4 | 6}`)
  })
}

function proxyError(reason: string, cause?: unknown, kind: HttpTransportError['kind'] = 'proxy') {
  return new HttpTransportError(kind, 'no', `the proxy did not let the request through: ${reason}`, cause)
}
