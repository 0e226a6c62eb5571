import { isIP } from 'node:net'
import { CliError, Exit, usageError } from '../errors.ts'

/** A pattern, because `node:net` has much to load and every command asks. */
const LOOPBACK_V4 = /^127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/

/** Whether a host names this machine itself: 127.0.0.0/8, ::1 or `localhost` (RFC 8252 §8.3, RFC 6761 §6.3). */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (host === 'localhost' || host.endsWith('.localhost') || host === '::1') return true
  return LOOPBACK_V4.test(host)
}

/**
 * Reads the address of the service. HTTPS is required except on loopback; a path is kept (`{base_url}/oauth/token`
 * goes below it), a trailing slash is not.
 *
 * @throws CliError `base_url_unusable`, exit 3.
 */
export function parseBaseUrl(text: string): URL {
  return parseServiceUrl(
    text,
    (problem, hint = 'give it as https://api.example.com') =>
      new CliError('base_url_unusable', Exit.notConfigured, `the base URL ${problem}`, { hint }),
  )
}

/**
 * Reads the identifier of an authorization server (RFC 8414 section 2), which has to be what a base URL has to be.
 *
 * @returns its text form, by which issuers are compared.
 * @throws CliError `usage`, exit 2.
 */
export function parseIssuer(text: string): string {
  return issuerOf(
    parseServiceUrl(text, (problem, hint = 'give it as https://auth.example.com') =>
      usageError(`the issuer ${problem}`, hint),
    ),
  )
}

function parseServiceUrl(text: string, fail: (problem: string, hint?: string) => CliError): URL {
  // A password in it is nobody's business.
  const shown = JSON.stringify(text.replace(/\/\/[^/?#]*@/, '//…@'))
  const unusable = (why: string, hint?: string) => fail(`${shown} ${why}`, hint)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) throw unusable('is not a URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw unusable('is not an https address')
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw unusable(
      'is not encrypted',
      'use https; plain http is allowed only for this machine itself (127.0.0.1, [::1], localhost)',
    )
  }
  if (url.username !== '' || url.password !== '') throw unusable('contains a user name or a password')
  if (url.search !== '' || url.hash !== '') throw unusable('contains a query or a fragment')
  url.pathname = url.pathname.replace(/\/+$/, '')
  // A bare "?" or "#" at the end stays otherwise.
  url.search = url.hash = ''
  return url
}

/** `{base_url}{path}`: an operation's address below the base URL, whose own path is kept. */
export function below(base: URL, path: string): URL {
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`
  return url
}

/** The text form of a base URL by which sessions are bound: no trailing slash, default port left out. */
export function issuerOf(base: URL): string {
  return base.href.replace(/\/+$/, '')
}

const ADDRESS_HINT = 'write it as 9.9.9.9, 9.9.9.9:5353 or [2620:fe::fe]:53'

export interface ServerAddress {
  readonly address: string
  readonly port: number
}

/**
 * Reads `IP`, `IP:PORT`, `[IPv6]:PORT` of a DNS server. Checked here because Node aborts the process on port 0 and
 * wraps ports above 65535.
 *
 * @throws CliError `usage`, exit 2.
 */
export function parseServerAddress(text: string, option: string): ServerAddress {
  const match =
    /^(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^:]+|[^[\]]*:[^[\]]*:[^[\]]*))(?::(?<port>\d+))?$/.exec(
      text.trim(),
    )
  const groups = match?.groups ?? {}
  const bareV6 = isIP(text.trim()) === 6
  const address = bareV6 ? text.trim() : (groups['bracketed'] ?? groups['plain'] ?? '')
  const port = bareV6 || groups['port'] === undefined ? 53 : Number(groups['port'])
  if (isIP(address) === 0) {
    throw usageError(`${option}: ${JSON.stringify(text)} is not an IP address`, ADDRESS_HINT)
  }
  if (port < 1 || port > 65535) throw usageError(`${option}: port ${port} is not between 1 and 65535`)
  return { address, port }
}

/**
 * The addresses in a text, with blanks or commas between. One that holds none is refused: to go on without would ask
 * nobody, or servers that were not meant.
 *
 * @throws CliError `usage`, exit 2.
 */
export function splitServerAddresses(text: string, option: string): string[] {
  const found = text.split(/[\s,]+/).filter((part) => part !== '')
  if (found.length === 0)
    throw usageError(`${option}: ${JSON.stringify(text)} names no resolver`, ADDRESS_HINT)
  return found
}

/** @throws CliError `usage`, exit 2, where the text is no port between `lowest` and 65535. */
export function parsePort(text: string, option: string, lowest = 1): number {
  const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : Number.NaN
  if (!(port >= lowest && port <= 65535)) {
    throw usageError(`${option}: ${JSON.stringify(text)} is not a port between ${lowest} and 65535`)
  }
  return port
}
