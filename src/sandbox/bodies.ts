import type { Context } from 'hono'
import { Problem, validationError } from './problems.ts'

const LARGEST_BODY = 256 * 1024

/** The body as text. @throws Problem 413 for one of more than 256 KiB. */
export async function readText(c: Context): Promise<string> {
  const length = c.req.header('content-length')
  if (length !== undefined) {
    if (Number(length) > LARGEST_BODY) throw tooLarge()
    return c.req.text()
  }
  // Sent in chunks, its size shows only as it comes.
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of c.req.raw.body ?? []) {
    size += piece.length
    if (size > LARGEST_BODY) throw tooLarge()
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** The body as JSON. @throws Problem 413 or 422. */
export async function readJson(c: Context): Promise<unknown> {
  const text = await readText(c)
  try {
    return JSON.parse(text)
  } catch {
    throw validationError('The body is not JSON.')
  }
}

/** The body as a JSON object; an empty body counts as an empty one. @throws Problem 413 or 422. */
export async function readObject(c: Context): Promise<Record<string, unknown>> {
  const text = await readText(c)
  try {
    const parsed: unknown = text.trim() === '' ? {} : JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return { ...parsed }
  } catch {
    // Said below.
  }
  throw validationError('The body must be a JSON object.')
}

function tooLarge(): Problem {
  return new Problem(413, 'payload_too_large', 'The body is too large.', { Connection: 'close' })
}
