import { expect, test } from 'vitest'
import { type HttpRequest, type HttpResponse, HttpTransportError } from '../../../src/context.ts'
import { exchangeDnsOverHttps } from '../../../src/dns/wire/https.ts'

const DNS_MESSAGE = 'application/dns-message'
/** A query with bytes that aren't UTF-8. */
const QUERY = Uint8Array.from([0, 0, 0xff, 0x80])

const answer = (more: Partial<HttpResponse> = {}): HttpResponse => ({
  status: 200,
  headers: { 'content-type': DNS_MESSAGE },
  text: 'right \xff\x80',
  ...more,
})
const typed = (type: string) => answer({ headers: { 'content-type': type } })

/** Sends a query to a server that responds by `respond`; only a response that begins with "right" is accepted. */
async function exchange(respond: (request: HttpRequest) => Promise<HttpResponse>, timeoutMs = 5000) {
  const requests: HttpRequest[] = []
  const send = (request: HttpRequest) => {
    requests.push(request)
    return respond(request)
  }
  const accept = (wire: Uint8Array) => Buffer.from(wire).toString('latin1').startsWith('right')
  const server = new URL('https://dns.example/dns-query')
  const brought = exchangeDnsOverHttps({ server, message: QUERY, timeoutMs, accept }, { send })
  return { requests, brought: await brought.catch((error: Error) => error) }
}

test('a DNS query over HTTPS is a POST of the binary message, and returns the binary body of the response', async () => {
  const { requests, brought } = await exchange(async () => typed(`${DNS_MESSAGE}; charset=binary`))
  expect(brought).toEqual(Buffer.from('right \xff\x80', 'latin1'))
  expect(requests).toMatchObject([
    { method: 'POST', body: '\0\0\xff\x80', isBinary: true, headers: { 'content-type': DNS_MESSAGE } },
  ])
})

test.each<[string, Partial<HttpResponse> | HttpTransportError, string]>([
  ['HTTP 404', { status: 404 }, 'HTTP 404'],
  ['a redirect', { status: 307, headers: { location: '/' } }, 'HTTP 307'],
  ['an HTML page', typed('text/html; charset=utf-8'), 'text/html instead of application/dns-message'],
  ['no content type', { headers: {} }, 'something instead of application/dns-message'],
  ['a body that is cut off', { brokenBy: new Error('it is larger than 8 MiB') }, 'it is larger than 8 MiB'],
  ['another DNS message', { text: 'wrong' }, 'no DNS message for this question'],
  ['more than 65,535 bytes', { text: `right${'x'.repeat(65_535)}` }, 'no DNS message for this question'],
  [
    'a bad certificate',
    new HttpTransportError('tls', 'no', 'the certificate has expired'),
    'the certificate has expired',
  ],
])('a DNS query over HTTPS that gets %s fails with a message about it', async (_what, what, message) => {
  const { brought } = await exchange(async () => {
    if (what instanceof Error) throw what
    return answer(what)
  })
  expect(brought).toMatchObject({ kind: 'unreachable', message })
})

test('a DNS query over HTTPS without a response fails at its timeout, and aborts the request', async () => {
  const { requests, brought } = await exchange(() => new Promise(() => {}), 20)
  expect(brought).toMatchObject({ kind: 'timeout', message: 'no answer in time' })
  expect(requests[0]?.signal?.aborted).toBe(true)
})
