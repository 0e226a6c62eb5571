import { isIP } from 'node:net'
import type { DnsAddress } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { parseList } from './parse-value.ts'

/** A scheme, two slashes, and a host without anything that the URL class decodes or drops; no blank, backslash or quotation mark. */
const PLAIN_URL =
  /^[a-z]+:\/\/(?:[^/?#\\]*@)?(?:\[[\da-f:.]+\]|[\w.\u0080-\uffff-]+)(?::\d+)?(?:[/?#][^\s\\"\x00-\x1f\x7f]*)?$/i
/** Beyond ASCII, characters that are invisible, or no letter of a name. */
const INVISIBLE_OR_SYMBOL = /(?![\x00-\x7f])[\p{C}\p{DI}\p{Z}\p{P}\p{S}]/u
/** A pattern, because `node:net` takes long to load and every command asks. */
const LOOPBACK_V4 = /^127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/

/**
 * Whether a host names this machine itself: 127.0.0.0/8, ::1 or `localhost` (RFC 8252 section 8.3). Names below
 * `localhost` don't count: RFC 6761 section 6.3 keeps them out of DNS, but many systems query it anyway, and whoever
 * answers chooses the host.
 */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return host === 'localhost' || host === '::1' || LOOPBACK_V4.test(host)
}

/**
 * Reads the address of the service. The rules are those of every server's.
 *
 * @param name the option, variable or setting that the text belongs to, as everywhere here.
 * @throws CliError `base_url_unusable`, exit 3.
 */
export function parseBaseUrl(text: string, name: string): URL {
  return parseServiceUrl(text, name, (message, hint) => new CliError('base_url_unusable', message, { hint }))
}

/**
 * Checks the addresses of servers, separated by spaces or commas.
 *
 * @returns the addresses without a slash at the end.
 * @throws CliError `usage`, exit 2.
 */
export function parseServiceUrls(text: string, name: string): string[] {
  return parseList(text, name).map((address) => issuerOf(parseServiceUrl(address, name)))
}

/**
 * Reads the address of a server. HTTPS is required except on loopback; a path is kept (as in `{base_url}/oauth/token`), a
 * trailing slash is not.
 *
 * @throws CliError what `fail` makes: `usage`, exit 2.
 */
export function parseServiceUrl(
  text: string,
  name: string,
  fail = usageError,
  example = 'https://api.example.com',
): URL {
  const unusable = (why: string, hint = `write it as ${example}`) =>
    fail(`${name}: ${JSON.stringify(maskUrl(text))} ${why}`, hint)
  const typed = text.trim()
  const url = URL.canParse(typed) ? new URL(typed) : undefined
  // The URL class drops control and invisible characters, adds slashes, and decodes `%61` in a host. Most addresses are ASCII, for
  // which the Unicode pattern would only delay the start.
  const hasInvisible = /[^\x00-\x7f]/.test(typed) && INVISIBLE_OR_SYMBOL.test(typed)
  if (url === undefined || hasInvisible || !PLAIN_URL.test(typed)) throw unusable('is not a URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw unusable('is not an https address')
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw unusable(
      'is not encrypted',
      'use https; plain http is allowed only on this machine (127.0.0.1, [::1], localhost)',
    )
  }
  if (url.username !== '' || url.password !== '') throw unusable('contains a user name or a password')
  if (url.search !== '' || url.hash !== '') throw unusable('contains a query or a fragment')
  url.pathname = url.pathname.replace(/\/+$/, '')
  // Otherwise a bare "?" or "#" at the end stays.
  url.search = url.hash = ''
  return url
}

/** An address as it may be printed, however it is mistyped: without a password, a query or a fragment, which may be secret. */
export function maskUrl(text: string): string {
  return text.replace(/^([a-z][\w+.-]*:\/\/)?.*@/is, '$1…@').replace(/([?#]).+$/s, '$1…')
}

/** A text without the user names and passwords of the addresses in it, with a scheme or without. */
export function maskUserInfo(text: string): string {
  if (!text.includes('@')) return text
  return text.replace(/([a-z][\w+.-]*:\/\/)[^\s/?#"]*@|[^\s/?#"':@]+:[^\s/?#"]+@(?=[\w[])/gi, '$1…@')
}

/** The URL of an operation: `{base_url}{path}`, with the path of the base URL kept. */
export function operationUrl(base: URL, path: string): URL {
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`
  return url
}

/**
 * The text form of a server's address, by which sessions are bound and issuers are compared (RFC 8414 section 2): no trailing
 * slash, default port left out.
 */
export function issuerOf(base: URL): string {
  return base.href.replace(/\/+$/, '')
}

const RESOLVER_URL = 'https://dns.example/dns-query'
const ADDRESS_HINT = `write it as 9.9.9.9, 9.9.9.9:5353, [2620:fe::fe]:53 or ${RESOLVER_URL}`

/**
 * Reads the address of a DNS server: `IP`, `IP:PORT` or `[IPv6]:PORT`. Node aborts the process on port 0 and wraps
 * ports above 65535, so both are refused here.
 *
 * @throws CliError `usage`, exit 2.
 */
export function parseDnsAddress(text: string, name: string): DnsAddress {
  const typed = text.trim()
  const [, v6, v4, number = '53'] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(typed) ?? []
  const address = isIP(typed) === 0 ? (v6 ?? v4 ?? '') : typed
  const port = Number(number)
  if (isIP(address) === 0)
    throw usageError(`${name}: ${JSON.stringify(text)} is not an IP address`, ADDRESS_HINT)
  if (port < 1 || port > 65535) throw usageError(`${name}: port ${port} is not between 1 and 65535`)
  return { address, port }
}

/** Reads a resolver: the address of a DNS server, or one of DNS over HTTPS (RFC 8484). @throws CliError `usage`, exit 2. */
export function parseResolver(text: string, name: string): DnsAddress | URL {
  return text.includes('/')
    ? parseServiceUrl(text, name, usageError, RESOLVER_URL)
    : parseDnsAddress(text, name)
}

/**
 * Checks resolvers, separated by spaces or commas.
 *
 * @returns them as they were typed.
 * @throws CliError `usage`, exit 2.
 */
export function parseResolvers(text: string, name: string): string[] {
  const resolvers = parseList(text, name)
  for (const resolver of resolvers) parseResolver(resolver, name)
  return resolvers
}
