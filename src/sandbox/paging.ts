import { validationError } from './problems.ts'

/** A list that can be entered at any place without walking to it. Position 0 is the newest item. */
export interface Sequence<T> {
  readonly length: number
  at(position: number): T
  /** The position of the item with this id, or -1. */
  positionOf(id: string): number
  /** The first position at or after (or, going back, at or before) `position` that passes the filter, or -1. */
  seek?(position: number, step: 1 | -1): number
}

export interface PageRequest {
  /** Undefined: everything. */
  readonly limit: number | undefined
  readonly after: string | undefined
  readonly before: string | undefined
}

/** The list envelope (interface, section 2.3). */
export interface ListPage<T> {
  readonly object: 'list'
  readonly has_more: boolean
  readonly data: readonly T[]
}

/**
 * Reads `limit`, `after` and `before` (interface, sections 4.2, 4.3 and 8).
 * @throws Problem 422 for anything outside the limits, repeated parameters, and both cursors at once.
 */
export function readPageRequest(query: URLSearchParams, defaultLimit: number | undefined): PageRequest {
  const limitText = single(query, 'limit')
  const after = single(query, 'after')
  const before = single(query, 'before')
  if (after !== undefined && before !== undefined) {
    throw validationError('The `after` and `before` parameters cannot be used together.')
  }
  if (limitText !== undefined && !(/^[1-9][0-9]{0,2}$/.test(limitText) && +limitText <= 100)) {
    throw validationError('The `limit` parameter must be a whole number from 1 to 100.')
  }
  return { limit: limitText === undefined ? defaultLimit : Number(limitText), after, before }
}

/** The one value of a query parameter. @throws Problem 422 when it is repeated. */
export function single(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name)
  if (values.length > 1) throw validationError(`The \`${name}\` parameter may be given once.`)
  return values[0]
}

/** One page; its cost is the page's size, wherever in the list it lies. @throws Problem 422 for an unknown cursor. */
export function takePage<T>(items: Sequence<T>, { limit, after, before }: PageRequest): ListPage<T> {
  const cursor = after ?? before
  const start = cursor === undefined ? -1 : items.positionOf(cursor)
  if (cursor !== undefined && start < 0) {
    throw validationError(
      `The \`${after === undefined ? 'before' : 'after'}\` parameter names no item of this list.`,
    )
  }
  const step = before === undefined ? 1 : -1
  const seek = (position: number): number => {
    if (position < 0 || position >= items.length) return -1
    return items.seek === undefined ? position : items.seek(position, step)
  }
  const data: T[] = []
  let position = seek(start + step)
  while (position >= 0 && data.length < (limit ?? Number.POSITIVE_INFINITY)) {
    data.push(items.at(position))
    position = seek(position + step)
  }
  return { object: 'list', has_more: position >= 0, data: step === 1 ? data : data.reverse() }
}
