import type { Dispatcher } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js'
import { type Environment, TransportError } from '../context.ts'
import { isLoopback } from '../settings/addresses.ts'
import { classify } from './transport-errors.ts'

/** The proxies to go through, from the environment. */
export type ProxySettings = Pick<Environment, 'httpProxy' | 'httpsProxy' | 'noProxy'>

/** The address of the proxy that a request goes through. It may be none that can be used: see `tunnelThrough`. */
export function proxyFor(url: URL, { httpProxy, httpsProxy, noProxy }: ProxySettings): string | undefined {
  const proxy = url.protocol === 'https:' ? httpsProxy : httpProxy
  if (proxy === undefined || isException(url, noProxy ?? '')) return undefined
  if (url.protocol === 'https:' || !URL.canParse(proxy)) return proxy
  // Plain HTTP is spoken with this machine only, so that no credential crosses a network in the clear. A proxy on
  // another machine would carry it there: it is bypassed.
  return isLoopback(new URL(proxy).hostname) ? proxy : undefined
}

/**
 * Sends every request through a tunnel (CONNECT, RFC 9110 section 9.3.6), plain HTTP too: asked to forward, a proxy
 * answers in the service's place. A tunnel that is refused is a failure before anything was sent, and never looks like an
 * answer of the service.
 *
 * @param text the proxy's address, http or https; its user name and password are shown to the proxy alone
 * @param connection how connections are made, to the proxy and through it
 * @param tunnelMs how long a tunnel may take to be opened
 * @throws TransportError where `text` is not such an address.
 */
export function tunnelThrough(
  text: string,
  connection: object,
  tunnelMs: number,
  options: Omit<ProxyAgent.Options, 'uri'>,
): Dispatcher {
  const { uri, token } = parseProxy(text)
  return new ProxyAgent({
    ...options,
    uri,
    ...(token === undefined ? {} : { token }),
    proxyTls: connection,
    requestTls: connection,
    clientFactory: (origin, settings) => new TunnelPool(origin, { ...settings, headersTimeout: tunnelMs }),
  })
}

/** The connections to the proxy. Whatever goes wrong with them is told as the proxy's. */
class TunnelPool extends Pool {
  override async connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
    let tunnel: Dispatcher.ConnectData
    try {
      tunnel = await connect.call(this, options)
    } catch (error) {
      throw failure(classify(error, false, 'proxy').message, error)
    }
    if (tunnel.statusCode >= 200 && tunnel.statusCode <= 299) return { ...tunnel, statusCode: 200 }
    tunnel.socket.on('error', () => {}).destroy()
    throw failure(`it answered ${tunnel.statusCode}`)
  }
}

/**
 * Whether a host is reached without the proxy.
 *
 * @param noProxy as in NO_PROXY: hosts, each with all below it, with or without a port; or `*`; separated by commas or blanks
 */
export function isException(target: URL, noProxy: string): boolean {
  return noProxy.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true
    const [, name, port] = /^(\[.*\]|[^:]*)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    // What has more colons is an IPv6 address, which an address of the web has in brackets.
    const host = name?.replace(/^\*?\./, '') ?? `[${entry.toLowerCase()}]`
    if (host === '' || (port !== undefined && Number(port) !== portOf(target))) return false
    return target.hostname === host || target.hostname.endsWith(`.${host}`)
  })
}

function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80)
}

function parseProxy(text: string): { uri: string; token?: string } {
  const address = URL.canParse(text) ? new URL(text) : undefined
  if (address === undefined || !['http:', 'https:'].includes(address.protocol)) {
    throw failure('its address in HTTPS_PROXY or HTTP_PROXY is not an http or https address')
  }
  const { username, password } = address
  if (username === '' && password === '') return { uri: address.href }
  address.username = ''
  address.password = ''
  const pair = Buffer.from(`${unescaped(username)}:${unescaped(password)}`)
  return { uri: address.href, token: `Basic ${pair.toString('base64')}` }
}

/** Without its percent-encoding, or as it is where a percent sign stands for itself. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function failure(why: string, cause?: unknown): TransportError {
  return new TransportError('proxy', 'no', `the proxy did not let the request through: ${why}`, cause)
}
