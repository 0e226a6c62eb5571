import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Fault } from './faults.ts'

/** A response that was not sent yet. */
export interface ComputedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

const PIECE = 64 * 1024
const DEFAULT_FLOOD = 1024 ** 3
const NOISE = Buffer.from([
  0x00, 0xff, 0xfe, 0x7b, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0xc3, 0x28, 0x22, 0x80, 0x0a,
])

/**
 * Makes one exchange go wrong.
 *
 * @param work processes the request and returns the response; called at most once, and only by faults that process the
 *   request first.
 */
export async function applyFault(
  fault: Fault,
  request: IncomingMessage,
  response: ServerResponse,
  work: () => Promise<ComputedResponse>,
): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  await pause(fault.beforeMs, gone.signal)
  const worked = fault.processesFirst ? await work() : undefined
  if (worked === undefined) request.resume()
  await pause(fault.afterMs, gone.signal)
  if (gone.signal.aborted) return
  const json = { 'content-type': 'application/json; charset=utf-8' }

  switch (fault.kind) {
    case 'status':
      respond(response, fault.status ?? 500, fault.headers, Buffer.from(fault.body))
      return
    case 'delay':
      if (worked !== undefined) respond(response, worked.status, worked.headers, worked.body)
      return
    case 'hang':
      return
    case 'reset':
      request.socket.resetAndDestroy()
      return
    case 'drop':
      request.socket.destroy()
      return
    case 'truncate':
      if (worked !== undefined) truncate(response, worked, fault.bytes)
      return
    case 'garbage':
      respond(response, fault.status ?? 200, json, NOISE)
      return
    case 'not_http':
      request.socket.end(NOISE)
      return
    case 'content_type':
      if (worked === undefined) return
      respond(response, worked.status, { ...worked.headers, 'content-type': fault.contentType }, worked.body)
      return
    case 'drip':
      if (worked !== undefined) await drip(response, worked, fault.intervalMs, gone.signal)
      return
    case 'flood':
      response.writeHead(fault.status ?? 200, json)
      await pour(response, fault.bytes ?? DEFAULT_FLOOD, Buffer.from('{"object":"'), Buffer.alloc(PIECE, 'a'))
      return
    case 'redirect':
      respond(response, fault.status ?? 307, { location: fault.url, ...fault.headers }, Buffer.alloc(0))
      return
    case 'gzip_bomb':
      await gzipBomb(response, fault.bytes ?? DEFAULT_FLOOD, json)
      return
    case 'empty':
      respond(response, fault.status ?? 200, json, Buffer.alloc(0))
      return
    case 'not_json':
      respond(
        response,
        fault.status ?? 200,
        json,
        Buffer.from(fault.body || '<html><body>Welcome</body></html>'),
      )
      return
    case 'merge':
      if (worked !== undefined) respond(response, worked.status, worked.headers, merge(worked.body, fault))
      return
  }
}

/** Ends early, and without an error, when the reader goes away. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => {})
}

function respond(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): void {
  const { 'content-length': _, ...others } = headers
  response.writeHead(status, { ...others, 'content-length': body.length })
  response.end(body)
}

function truncate(
  response: ServerResponse,
  { status, headers, body }: ComputedResponse,
  bytes: number | undefined,
): void {
  response.writeHead(status, { ...headers, 'content-length': body.length })
  const kept = Math.min(bytes ?? Math.floor(body.length / 2), Math.max(body.length - 1, 0))
  response.write(body.subarray(0, kept), () => response.socket?.destroy())
}

async function drip(
  response: ServerResponse,
  { status, headers, body }: ComputedResponse,
  intervalMs: number,
  signal: AbortSignal,
): Promise<void> {
  response.writeHead(status, { ...headers, 'content-length': body.length })
  for (const byte of body) {
    if (signal.aborted) return
    response.write(Buffer.from([byte]))
    await pause(intervalMs, signal)
  }
  response.end()
}

/** Sends pieces until `bytes` are out or the reader goes away, no faster than the reader takes them. */
async function pour(response: ServerResponse, bytes: number, first: Buffer, piece: Buffer): Promise<void> {
  response.write(first)
  for (let sent = first.length; sent < bytes && !response.destroyed; sent += piece.length) {
    if (response.write(piece)) continue
    await new Promise<void>((done) => {
      const resume = () => {
        response.off('drain', resume)
        response.off('close', resume)
        done()
      }
      response.on('drain', resume)
      response.on('close', resume)
    })
  }
  response.end()
}

/** Members of a gzip file may follow each other (RFC 1952, section 2.2): one packed megabyte is sent again and again. */
async function gzipBomb(
  response: ServerResponse,
  bytes: number,
  headers: Record<string, string>,
): Promise<void> {
  const unpacked = 1024 ** 2
  const member = gzipSync(Buffer.alloc(unpacked, ' '), { level: 9 })
  response.writeHead(200, { ...headers, 'content-encoding': 'gzip' })
  await pour(response, Math.ceil(bytes / unpacked) * member.length, member, member)
}

function merge(body: Buffer, { fields, itemFields }: Fault): Buffer {
  let answer: unknown
  try {
    answer = JSON.parse(body.toString('utf8'))
  } catch {
    return body
  }
  if (typeof answer !== 'object' || answer === null) return body
  const merged: Record<string, unknown> = { ...answer, ...fields }
  const data: unknown = merged['data']
  if (Array.isArray(data)) merged['data'] = data.map((item: object) => ({ ...item, ...itemFields }))
  return Buffer.from(JSON.stringify(merged))
}
