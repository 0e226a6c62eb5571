import { nameOfType, unexpectedAnswer } from './answers.ts'
import type { ServiceClient } from './client.ts'
import type { ListEnvelope } from './types.ts'

/** One page of a list (section 2.3), checked as far as the program goes by it. @throws CliError exit 7. */
export async function listPage<T>(
  client: ServiceClient,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal | undefined,
): Promise<ListEnvelope<T>> {
  const { body } = await client.get(path, query, {
    ...(signal === undefined ? {} : { signal }),
    // A cursor is the id of an item.
    namesItem: (query['after'] ?? query['before']) !== undefined,
  })
  const { data } = body
  if (!Array.isArray(data)) {
    throw unexpectedAnswer(`"data" of the list should be an array, but is ${nameOfType(data)}`)
  }
  const odd = data.find((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== undefined)
    throw unexpectedAnswer(`an item of the list should be an object, but is ${nameOfType(odd)}`)
  // Where it is left out, a page that is full may not be the last: asking once too often loses nothing.
  const more = body['has_more'] ?? data.length === query['limit']
  if (typeof more !== 'boolean') {
    throw unexpectedAnswer(`"has_more" of the list should be a boolean, but is ${nameOfType(more)}`)
  }
  return { ...body, has_more: more, data: data as T[] }
}
