import { type Agent, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { TransportError } from '../context.ts'
import { classify } from './transport-errors.ts'

/**
 * Makes every connection of an agent a tunnel through a proxy (CONNECT, RFC 9110 section 9.3.6). A tunnel that is refused
 * is a failure before anything was sent, and never looks like an answer of the service.
 *
 * @param target where the agent is to connect to
 * @param proxy an http or https address; its user name and password are shown to the proxy alone
 * @param patienceMs how long the proxy may stay silent
 * @throws TransportError where `proxy` is no such address.
 */
export function goThrough(proxy: string, agent: Agent, target: URL, patienceMs: number): void {
  const address = parseProxy(proxy)
  const secure = target.protocol === 'https:'
  const authority = `${target.hostname}:${portOf(target)}`
  agent.createConnection = (options, connected) => {
    openTunnel(address, authority, patienceMs)
      .then((socket) => (secure ? connectTls({ ...(options as object), socket }) : socket))
      .then(
        (socket) => connected?.(null, socket),
        // Node's types ask for a socket beside the error, where there is none.
        (error) => (connected as ((error: Error) => void) | undefined)?.(error),
      )
    return undefined
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

function parseProxy(text: string): URL {
  const address = URL.canParse(text) ? new URL(text) : undefined
  if (address === undefined || !['http:', 'https:'].includes(address.protocol)) {
    throw failure('its address in HTTPS_PROXY or HTTP_PROXY is not an http or https address')
  }
  return address
}

/** A connection through the proxy to `authority`, "host:port". Rejects with a `TransportError`. */
function openTunnel(proxy: URL, authority: string, patienceMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const asking = (proxy.protocol === 'https:' ? requestSecure : requestPlain)(proxy, {
      agent: false,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...credentials(proxy) },
    })
    asking.once('connect', (answer, socket, head) => {
      const status = answer.statusCode ?? 0
      if (status < 200 || status > 299) {
        socket.destroy()
        return reject(failure(`it answered ${status} ${answer.statusMessage}`))
      }
      if (head.length > 0) socket.unshift(head)
      asking.setTimeout(0)
      resolve(socket.ref())
    })
    // Who waits for the tunnel keeps the program alive; one that nobody waits for any more must not.
    asking.once('socket', (socket) => socket.unref())
    asking.setTimeout(patienceMs, () => asking.destroy(failure('it did not answer in time')))
    asking.once('error', (error) => {
      reject(error instanceof TransportError ? error : failure(classify(error, false).message, error))
    })
    asking.end()
  })
}

function credentials({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}

function failure(why: string, cause?: unknown): TransportError {
  return new TransportError('proxy', 'no', `the proxy did not let the request through: ${why}`, cause)
}
