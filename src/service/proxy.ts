import type { Dispatcher } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import DispatcherClass from 'undici/lib/dispatcher/dispatcher.js'
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js'

/**
 * A dispatcher that goes through a proxy, except to the hosts in `noProxy`.
 *
 * @param noProxy as in NO_PROXY: hosts, suffixes and ports, separated by commas
 * @throws Error where `proxy` is no address.
 */
export function createProxyDispatcher(proxy: string, noProxy: string, keepAliveTimeout: number): Dispatcher {
  // The package's entry point, which is not loaded, would have added the method with which tunnels are opened.
  Object.assign(DispatcherClass.prototype, { connect })
  return new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy, keepAliveTimeout })
}
