import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Required state of the session after an answer to a refresh request. `survives`: the next command works. `open`: the session may
 * be lost, since the answer proves nothing. `accepted`: the answer is a refusal, although the service has processed the request, so
 * the client may send the used refresh token again and lose the session.
 */
export type ExpectedSession = 'survives' | 'open' | 'accepted'

/** One way to answer a refresh request. */
export interface AnswerCase {
  readonly group: string
  readonly name: string
  /** Whether the service processes the request, and so rotates the refresh token, before it answers. */
  readonly process: boolean
  readonly expected: ExpectedSession
  /** Additional arguments of the command that refreshes. */
  readonly words?: readonly string[]
  /** Milliseconds for which the client process is stopped (SIGSTOP), from just before the answer is written. */
  readonly stoppedForMs?: number
  /** Whether the state directory is moved away before the answer is written, as if a network file system were unmounted. */
  readonly isStateGone?: true
  /** Writes the answer. @param tokens token response as JSON; empty if the service issued no tokens */
  write(socket: Socket, tokens: string, base: string): Promise<void> | void
}

const STATUSES = [
  200, 201, 204, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 413, 421, 425, 429, 451,
  500, 501, 502, 503, 504, 599,
]

const BODIES = {
  'OAuth error': '{"error":"invalid_request","error_description":"not now"}',
  JSON: '{"statusCode":0,"name":"some_error","message":"not now"}',
  HTML: '<!doctype html><title>Not now</title><p>upstream connect error or disconnect/reset before headers',
  empty: '',
} as const

const answer = (status: number | string, headers: readonly string[], body: string) =>
  [`HTTP/1.1 ${status} Answer`, ...headers, 'connection: close', '', body].join('\r\n')

const sized = (status: number | string, headers: readonly string[], body: string) =>
  answer(status, [...headers, `content-length: ${Buffer.byteLength(body)}`], body)

const JSON_TYPE = 'content-type: application/json'
const whole = (tokens: string) => sized(200, [JSON_TYPE], tokens)
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

/** Returns a case for each combination of status, kind of body, processing, and `Retry-After`; a 204 has no body. */
export function statusCases(): AnswerCase[] {
  return STATUSES.flatMap((status) =>
    [true, false].flatMap((process) =>
      [true, false].flatMap((retryAfter) =>
        Object.entries(BODIES)
          .filter(([kind]) => status !== 204 || kind === 'empty')
          .map(([kind, body]): AnswerCase => {
            const refusal =
              (retryAfter && (status === 429 || (status === 503 && kind !== 'HTML'))) ||
              // Don't count 408, 421 and 425 as refusals: a server or proxy may send them for a problem of the connection after the
              // service has processed the request.
              (kind === 'OAuth error' &&
                status >= 400 &&
                status <= 499 &&
                ![408, 421, 425].includes(status) &&
                (status !== 429 || retryAfter))
            return {
              group: String(status),
              name: `${status}, ${kind}${retryAfter ? ', Retry-After' : ''}`,
              process,
              expected: !refusal ? 'open' : process ? 'accepted' : 'survives',
              write(socket, _tokens, base) {
                const headers = [kind === 'HTML' ? 'content-type: text/html' : JSON_TYPE]
                if (retryAfter) headers.push('retry-after: 1')
                if (status >= 300 && status <= 399) headers.push(`location: ${base}/elsewhere`)
                socket.end(status === 204 ? answer(status, headers, '') : sized(status, headers, body))
              },
            }
          }),
      ),
    ),
  )
}

/** Returns the cases beyond statuses and bodies, such as complete tokens in unusual forms, and truncated or delayed answers. */
export function otherCases(): AnswerCase[] {
  return [...refusals(), ...wholeTokens(), ...cuts(), ...oddities(), ...delays()]
}

function refusals(): AnswerCase[] {
  const codes = [
    'invalid_client',
    'unauthorized_client',
    'invalid_scope',
    'unsupported_grant_type',
    'invalid_target',
    'temporarily_unavailable',
    'made_up',
  ]
  return codes.map((code) => ({
    group: 'refusals',
    name: code,
    process: false,
    expected: 'survives',
    write: (socket) => void socket.end(sized(400, [JSON_TYPE], JSON.stringify({ error: code }))),
  }))
}

function wholeTokens(): AnswerCase[] {
  const changed = (tokens: string, change: object) =>
    JSON.stringify({ ...(JSON.parse(tokens) as object), ...change })
  const forms: Record<string, (tokens: string) => string> = {
    'as usual': whole,
    'status 201': (tokens) => sized(201, [JSON_TYPE], tokens),
    'status 203': (tokens) => sized(203, [JSON_TYPE], tokens),
    'as HTML': (tokens) => sized(200, ['content-type: text/html'], tokens),
    'ended by the connection': (tokens) => answer(200, [JSON_TYPE], tokens),
    chunked: (tokens) => answer(200, ['transfer-encoding: chunked'], `${chunk(tokens)}0\r\n\r\n`),
    'chunked, last chunk missing': (tokens) => answer(200, ['transfer-encoding: chunked'], chunk(tokens)),
    'chunked, last chunk broken': (tokens) =>
      answer(200, ['transfer-encoding: chunked'], `${chunk(tokens)}zz\r\n`),
    'Content-Length too long': (tokens) =>
      answer(200, [`content-length: ${Buffer.byteLength(tokens) + 40}`], tokens),
    'twice on one connection': (tokens) => whole(tokens) + whole(tokens),
    'junk after it': (tokens) => `${whole(tokens)}junk\r\n\r\n`,
    'no access token': (tokens) => sized(200, [JSON_TYPE], changed(tokens, { access_token: undefined })),
    'access token is null': (tokens) => sized(200, [JSON_TYPE], changed(tokens, { access_token: null })),
    'access token cannot be sent': (tokens) =>
      sized(200, [JSON_TYPE], changed(tokens, { access_token: 'a\nb' })),
    'no lifetime': (tokens) => sized(200, [JSON_TYPE], changed(tokens, { expires_in: undefined })),
    'no token type': (tokens) => sized(200, [JSON_TYPE], changed(tokens, { token_type: undefined })),
    'after 102 and 103': (tokens) =>
      `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${whole(tokens)}`,
    'after twenty 103': (tokens) => `HTTP/1.1 103 Early Hints\r\n\r\n`.repeat(20) + whole(tokens),
  }
  return Object.entries(forms).map(([name, form]) => ({
    group: 'whole tokens',
    name,
    process: true,
    expected: 'survives',
    write: (socket, tokens) => void socket.end(form(tokens)),
  }))
}

function cuts(): AnswerCase[] {
  const half = (tokens: string) => {
    const text = whole(tokens || BODIES.JSON)
    return text.slice(0, text.length - 40)
  }
  const forms: Record<string, (socket: Socket, tokens: string) => void> = {
    'closed without an answer': (socket) => void socket.end(),
    'reset without an answer': (socket) => void socket.resetAndDestroy(),
    'half a status line': (socket) => void socket.end('HTTP/1.1 2'),
    'headers alone': (socket) => void socket.end(answer(200, ['content-length: 200'], '')),
    'half a body': (socket, tokens) => void socket.end(half(tokens)),
    'half a body, then reset': (socket, tokens) =>
      void socket.write(half(tokens), () => setTimeout(() => socket.resetAndDestroy(), 50)),
    'half a chunk': (socket, tokens) =>
      void socket.end(answer(200, ['transfer-encoding: chunked'], `ff\r\n${tokens.slice(0, 40)}`)),
    'Content-Length too short': (socket, tokens) =>
      void socket.end(answer(200, ['content-length: 20'], tokens)),
  }
  return bothWays('cut', forms)
}

function oddities(): AnswerCase[] {
  const forms: Record<string, (socket: Socket, tokens: string, base: string) => void> = {
    '100 alone': (socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n'),
    '101': (socket) =>
      void socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: chaos\r\nconnection: upgrade\r\n\r\n'),
    '199': (socket) => void socket.end(sized(199, [], '')),
    '304': (socket) => void socket.end(answer(304, [], '')),
    'not HTTP': (socket) => void socket.end('220 mail.example.com ESMTP\r\n'),
    '307 to itself': (socket, _tokens, base) =>
      void socket.end(sized(307, [`location: ${base}/oauth/token`], '')),
    '308 to itself': (socket, _tokens, base) =>
      void socket.end(sized(308, [`location: ${base}/oauth/token`], '')),
    '200 without tokens': (socket) => void socket.end(sized(200, [JSON_TYPE], '{}')),
    '200 with an array': (socket) => void socket.end(sized(200, [JSON_TYPE], '[]')),
    '401 with a challenge': (socket) =>
      void socket.end(sized(401, ['www-authenticate: Bearer error="invalid_token"'], '')),
    '503, Retry-After is junk': (socket) => void socket.end(sized(503, ['retry-after: soon'], '')),
    '400, error is no string': (socket) => void socket.end(sized(400, [JSON_TYPE], '{"error":{"code":1}}')),
    '500, OAuth error': (socket) => void socket.end(sized(500, [JSON_TYPE], '{"error":"server_error"}')),
  }
  return bothWays('odd', forms)
}

/**
 * Returns cases of answers that come late, that wait in the socket of a stopped process (a frozen container, a sleeping laptop), or
 * that find the state directory gone.
 */
function delays(): AnswerCase[] {
  const close = (socket: Socket, tokens: string) => void socket.end(whole(tokens))
  const keepOpen = async (socket: Socket, tokens: string) => {
    socket.write(whole(tokens).replace('connection: close\r\n', ''))
    // Keep the connection open for 40 s, longer than the client process is stopped in any of these cases.
    await Promise.race([sleep(40_000, undefined, { ref: false }), closed(socket)])
    socket.destroy()
  }
  const timeout = (seconds: number) => ['--http-timeout', String(seconds)]
  const forms: Record<string, Pick<AnswerCase, 'write' | 'words' | 'stoppedForMs' | 'isStateGone'>> = {
    'state directory gone': { isStateGone: true, write: close },
    'answer after 1.3 s, timeout 1 s': {
      words: timeout(1),
      write: async (socket, tokens) => {
        await sleep(1_300)
        socket.end(whole(tokens))
      },
    },
    'body 1.3 s after the headers, timeout 1 s': {
      words: timeout(1),
      write: async (socket, tokens) => {
        const text = whole(tokens)
        socket.write(text.slice(0, -tokens.length))
        await sleep(1_300)
        socket.end(tokens)
      },
    },
    'answer after 3 s': {
      write: async (socket, tokens) => {
        await sleep(3_000)
        socket.end(whole(tokens))
      },
    },
    'byte by byte': {
      write: async (socket, tokens) => {
        socket.setNoDelay(true)
        for (const byte of whole(tokens)) {
          socket.write(byte)
          await sleep(2)
        }
        socket.end()
      },
    },
    'stopped for 4 s, timeout 2 s': { stoppedForMs: 4_000, words: timeout(2), write: close },
    'stopped for 4 s, timeout 2 s, connection stays': {
      stoppedForMs: 4_000,
      words: timeout(2),
      write: keepOpen,
    },
    'stopped for 33 s': { stoppedForMs: 33_000, write: close },
    'stopped for 33 s, connection stays': { stoppedForMs: 33_000, write: keepOpen },
  }
  return Object.entries(forms).map(([name, form]) => ({
    group: 'delayed',
    name,
    process: true,
    expected: 'survives',
    ...form,
  }))
}

const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

function bothWays(
  group: string,
  forms: Readonly<Record<string, (socket: Socket, tokens: string, base: string) => void>>,
): AnswerCase[] {
  return [true, false].flatMap((process) =>
    Object.entries(forms).map(
      ([name, write]): AnswerCase => ({ group, name, process, expected: 'open', write }),
    ),
  )
}
