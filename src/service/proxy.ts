import type { Dispatcher } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js'
import { type Environment, TransportError } from '../context.ts'
import { isLoopback } from '../settings/addresses.ts'
import { classify } from './transport-errors.ts'

/** How long a proxy may take to open a tunnel: less than connecting may take, so that a silent proxy is named as the cause. */
const TUNNEL_TIMEOUT_MS = 9000

/** The proxy settings in the environment. */
export type ProxySettings = Pick<Environment, 'httpsProxy' | 'noProxy'>

/**
 * The URL of the proxy for a request; unchecked: `tunnelThroughProxy` rejects an invalid one. None for this machine itself: a
 * proxy would look for the address on another one. So plain HTTP, which only loopback addresses may have, is never proxied.
 */
export function proxyFor(url: URL, { httpsProxy, noProxy }: ProxySettings): string | undefined {
  return isLoopback(url.hostname) || bypassesProxy(url, noProxy ?? '') ? undefined : httpsProxy
}

/**
 * Sends every request through a tunnel (CONNECT, RFC 9110 section 9.3.6). If the proxy refuses the tunnel, the request fails
 * with nothing sent.
 *
 * @param proxy an http or https URL; its user name and password, if it has both, are sent to the proxy only
 * @param connection options for the connections to the proxy and through it
 * @throws TransportError if it can't be used
 */
export function tunnelThroughProxy(
  proxy: string,
  connection: object,
  options: Omit<ProxyAgent.Options, 'uri'>,
): Dispatcher {
  const isHttp = /^https?:/i.test(proxy)
  try {
    if (isHttp)
      return new ProxyAgent({
        ...options,
        uri: proxy,
        proxyTls: { ...connection, allowH2: false },
        requestTls: connection,
        clientFactory: (origin, settings) =>
          new TunnelPool(origin, { ...settings, headersTimeout: TUNNEL_TIMEOUT_MS }),
      })
  } catch {
    // What is wrong with it may show the password.
  }
  throw proxyError('HTTPS_PROXY is not a usable http or https URL')
}

/** Connections to the proxy, whose errors name the proxy as the cause. */
class TunnelPool extends Pool {
  override async connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
    let tunnel: Dispatcher.ConnectData
    try {
      tunnel = await connect.call(this, options)
    } catch (error) {
      throw proxyError(classify(error, 'no', 'proxy').message, error)
    }
    if (tunnel.statusCode >= 200 && tunnel.statusCode <= 299) return { ...tunnel, statusCode: 200 }
    tunnel.socket.on('error', () => {}).destroy()
    throw proxyError(`it answered ${tunnel.statusCode}`)
  }
}

/**
 * Whether requests to a host bypass the proxy.
 *
 * @param noProxy as in NO_PROXY: hosts (subdomains included), with or without a port, or `*`, separated by commas or spaces
 */
export function bypassesProxy(target: URL, noProxy: string): boolean {
  const targetPort = Number(target.port) || (target.protocol === 'https:' ? 443 : 80)
  return noProxy.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [, name, port] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    // With more colons it is an IPv6 address, which a URL has in brackets.
    const host = name?.replace(/^\*?\./, '') ?? `[${entry.toLowerCase()}]`
    if (host === '' || (port !== undefined && Number(port) !== targetPort)) return false
    return target.hostname === host || target.hostname.endsWith(`.${host}`)
  })
}

function proxyError(reason: string, cause?: unknown): TransportError {
  return new TransportError('proxy', 'no', `the proxy did not let the request through: ${reason}`, cause)
}
