import { isIP } from 'node:net'
import type { DnsServerAddress } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { parseList } from './parse-value.ts'

/** Matches an acceptable URL: one without mistakes, such as a missing slash, that `new URL` would repair silently. */
const PLAIN_URL =
  /^[a-z]+:\/\/(?:[^/?#\\]*@)?(?:\[[\da-f:.]+\]|[\w.\u0080-\uffff-]+)(?::\d+)?(?:[/?#][^\s\\"\x00-\x1f\x7f]*)?$/i
/**
 * Matches a non-ASCII character that a URL must not contain: an invisible one, punctuation or a symbol, which could imitate a part
 * of the host.
 */
const INVISIBLE_OR_SYMBOL = /(?![\x00-\x7f])[\p{C}\p{DI}\p{Z}\p{P}\p{S}]/u
/** Matches an IPv4 address in 127.0.0.0/8. A pattern, since `isIP` would load `node:net`, which the build defers to first use. */
const LOOPBACK_V4 = /^127(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/

/**
 * Whether a host is `localhost`, ::1 or in 127.0.0.0/8 (RFC 8252 section 8.3). False for subdomains of `localhost`: many systems
 * look them up in DNS, despite RFC 6761 section 6.3, and could get any address.
 */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return host === 'localhost' || host === '::1' || LOOPBACK_V4.test(host)
}

/**
 * Parses the base URL of the service as `parseServerUrl` does.
 *
 * @param name name of the option, variable or setting, for the error message
 * @throws CliError `base_url_unusable`, exit 3
 */
export function parseBaseUrl(text: string, name: string): URL {
  return parseServerUrl(text, name, (message, hint) => new CliError('base_url_unusable', message, { hint }))
}

/**
 * Parses a list of server URLs, such as the members of etcd, with spaces or commas between them; returns normalized URLs as texts.
 *
 * @throws CliError `usage`, exit 2
 */
export function parseServerUrls(text: string, name: string): string[] {
  return parseList(text, name).map((address) => normalizeUrl(parseServerUrl(address, name)))
}

/**
 * Parses the URL of a server: https, or http on loopback; rejects user info, a query and a fragment.
 *
 * @param fail creates, from a message and a hint, the error to throw
 * @param example a valid value, for the hint
 * @throws CliError `usage`, exit 2, unless `fail` creates another error
 */
export function parseServerUrl(
  text: string,
  name: string,
  fail = usageError,
  example = 'https://api.example.com',
): URL {
  const unusable = (why: string, hint = `write it as ${example}`) =>
    fail(`${name}: ${JSON.stringify(maskUrlSecrets(text))} ${why}`, hint)
  const typed = text.trim()
  const url = URL.canParse(typed) ? new URL(typed) : undefined
  // Check the typed text: `new URL` drops tabs and soft hyphens, adds slashes, and decodes `%61` in a host. Apply the Unicode
  // pattern to non-ASCII text only, because compiling it slows the program's start.
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
  // Remove a bare `?` or `#` at the end, which `href` would keep.
  url.search = url.hash = ''
  return url
}

/** Replaces whatever may be user info, a query or a fragment of a URL, even a malformed one, with `…`: it may contain secrets. */
export function maskUrlSecrets(url: string): string {
  return url.replace(/^([a-z][\w+.-]*:\/\/)?.*@/is, '$1…@').replace(/([?#]).+$/s, '$1…')
}

/** Replaces the user info of URLs in a text with `…`; without a scheme, only a user name with a password (`user:password@host`). */
export function maskUserInfo(text: string): string {
  if (!text.includes('@')) return text
  return text.replace(/([a-z][\w+.-]*:\/\/)[^\s/?#"]*@|[^\s/?#"':@]+:[^\s/?#"]+@(?=[\w[])/gi, '$1…@')
}

/** Appends a path that starts with a slash to a base URL's own path, which `new URL(path, base)` would replace. */
export function appendPath(base: URL, path: string): URL {
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`
  return url
}

/** Returns a server's URL without trailing slashes and default port, so that different spellings of one address become equal. */
export function normalizeUrl(url: URL): string {
  return url.href.replace(/\/+$/, '')
}

const RESOLVER_URL = 'https://dns.example/dns-query'
const ADDRESS_HINT = `write it as 9.9.9.9, 9.9.9.9:5353, [2620:fe::fe]:53 or ${RESOLVER_URL}`

/**
 * Parses the address of a DNS server: `IP`, `IPv4:PORT`, `[IPv6]` or `[IPv6]:PORT`; the default port is 53.
 *
 * @throws CliError `usage`, exit 2
 */
export function parseIpAndPort(text: string, name: string): DnsServerAddress {
  const typed = text.trim()
  const [, v6, v4, number = '53'] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(typed) ?? []
  const address = isIP(typed) === 0 ? (v6 ?? v4 ?? '') : typed
  const port = Number(number)
  if (isIP(address) === 0)
    throw usageError(`${name}: ${JSON.stringify(text)} is not an IP address`, ADDRESS_HINT)
  if (port < 1 || port > 65535) throw usageError(`${name}: port ${port} is not between 1 and 65535`)
  return { address, port }
}

/**
 * Parses a resolver: text with a slash as a URL for DNS over HTTPS (RFC 8484), else a DNS server's address.
 *
 * @throws CliError exit 2
 */
export function parseResolver(text: string, name: string): DnsServerAddress | URL {
  return text.includes('/')
    ? parseServerUrl(text, name, usageError, RESOLVER_URL)
    : parseIpAndPort(text, name)
}

/** Splits a list of resolvers at spaces and commas; returns their texts unchanged if all are valid. @throws CliError exit 2 */
export function splitResolvers(text: string, name: string): string[] {
  const resolvers = parseList(text, name)
  for (const resolver of resolvers) parseResolver(resolver, name)
  return resolvers
}
