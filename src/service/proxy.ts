import { type Agent, request as requestPlain } from 'node:http'
import { request as requestSecure } from 'node:https'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { TransportError } from '../context.ts'
import { excerpt } from '../terminal/sanitize.ts'
import { classify } from './transport-errors.ts'

/** Where a proxy is, and the headers that say to it who asks. */
interface Proxy {
  readonly address: URL
  readonly credentials: Readonly<Record<string, string>>
}

/**
 * Makes every connection of an agent a tunnel through a proxy (CONNECT, RFC 9110 section 9.3.6). A tunnel that is refused
 * is a failure before anything was sent, and never looks like an answer of the service.
 *
 * @param address of the proxy, http or https; its user name and password are shown to the proxy alone
 * @param target where the agent is to connect to
 * @param patienceMs how long a tunnel may take
 * @param closing ends those on their way: the agent itself knows a tunnel only when it is there
 * @throws TransportError where `address` is none.
 */
export function goThrough(
  address: string,
  agent: Agent,
  target: URL,
  patienceMs: number,
  closing: AbortSignal,
): void {
  const proxy = parseProxy(address)
  const secure = target.protocol === 'https:'
  const authority = `${target.hostname}:${portOf(target)}`
  agent.createConnection = (options, connected) => {
    openTunnel(proxy, authority, patienceMs, closing)
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

function parseProxy(text: string): Proxy {
  const address = URL.canParse(text) ? new URL(text) : undefined
  if (address === undefined || !['http:', 'https:'].includes(address.protocol)) {
    throw failure('its address in HTTPS_PROXY or HTTP_PROXY is not an http or https address')
  }
  const { username, password } = address
  // Node would show them once more, as a credential for the service.
  address.username = ''
  address.password = ''
  if (username === '' && password === '') return { address, credentials: {} }
  const pair = Buffer.from(`${unescaped(username)}:${unescaped(password)}`)
  return { address, credentials: { 'proxy-authorization': `Basic ${pair.toString('base64')}` } }
}

/** Without its percent-encoding, or as it is where a percent sign stands for itself. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * A connection through the proxy to `authority`, "host:port".
 *
 * @throws TransportError
 */
function openTunnel(
  proxy: Proxy,
  authority: string,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const asking = (proxy.address.protocol === 'https:' ? requestSecure : requestPlain)(proxy.address, {
      agent: false,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...proxy.credentials },
      signal,
    })
    asking.once('connect', (answer, socket, head) => {
      const status = answer.statusCode ?? 0
      if (status < 200 || status > 299) {
        socket.destroy()
        return reject(failure(excerpt(`it answered ${status} ${answer.statusMessage}`, 120)))
      }
      if (head.length > 0) socket.unshift(head)
      resolve(socket.ref())
    })
    // Who waits for the tunnel keeps the program alive; one that nobody waits for any more must not.
    asking.once('socket', (socket) => socket.unref())
    // Of the whole, not of each silence: a proxy can drip its answer for ever.
    const timer = setTimeout(() => asking.destroy(failure('it did not answer in time')), patienceMs).unref()
    asking.once('close', () => clearTimeout(timer))
    asking.on('error', (error) => {
      reject(
        error instanceof TransportError ? error : failure(classify(error, false, 'proxy').message, error),
      )
    })
    asking.end()
  })
}

function failure(why: string, cause?: unknown): TransportError {
  return new TransportError('proxy', 'no', `the proxy did not let the request through: ${why}`, cause)
}
