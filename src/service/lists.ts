import { pathSegment, type RequestOptions, type ServiceClient } from './client.ts'
import type { PageFetcher } from './paging.ts'
import { checkFields, nameOfType, OtherAnswerError, unexpectedAnswer } from './problems.ts'
import {
  type ContactImport,
  type Grant,
  IMPORT_FIELDS,
  type ImportStatus,
  type ListEnvelope,
} from './types.ts'

/** Pages of the team's grants, including revoked ones (section 4.2). */
export function grantPages(client: ServiceClient): PageFetcher<Grant> {
  return (cursor, signal) => listPage<Grant>(client, '/oauth/grants', { ...cursor }, signal)
}

/** Sends the cheapest request that needs a credential and changes nothing: it lists one grant. */
export async function tryCredential(client: ServiceClient): Promise<void> {
  await client.get('/oauth/grants', { limit: 1 })
}

/** Pages of the contact imports, filtered by the service if a status is given (section 4.3). */
export function importPages(client: ServiceClient, status?: ImportStatus): PageFetcher<ContactImport> {
  return (cursor, signal) =>
    listPage<ContactImport>(client, '/contacts/imports', { ...cursor, status }, signal)
}

/**
 * One import (section 4.4).
 *
 * @throws CliError exit 5 if there is none with that id; `unexpected_answer`, exit 7, if it is another one
 */
export async function getImport(
  client: ServiceClient,
  id: string,
  options?: RequestOptions,
): Promise<ContactImport> {
  const { body } = await client.get(`/contacts/imports/${pathSegment(id)}`, {}, options)
  checkFields(body, IMPORT_FIELDS, 'the import', ['id', 'status', 'counts'])
  const found = body as ContactImport
  const asked = id.trim()
  if (found.id != null && found.id.toLowerCase() !== asked.toLowerCase())
    throw new OtherAnswerError(`asked for import ${JSON.stringify(asked)}, got ${JSON.stringify(found.id)}`)
  return found
}

/** One page of a list (section 2.3), checked as far as the program goes by it. @throws CliError exit 7. */
async function listPage<T>(
  client: ServiceClient,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal | undefined,
): Promise<ListEnvelope<T>> {
  const { body } = await client.get(path, query, signal === undefined ? {} : { signal })
  const { data } = body
  if (!Array.isArray(data))
    throw unexpectedAnswer(`"data" of the list should be an array, but is ${nameOfType(data)}`)
  const odd = data.find((item) => typeof item !== 'object' || item === null || Array.isArray(item))
  if (odd !== undefined)
    throw unexpectedAnswer(`an item of the list should be an object, but is ${nameOfType(odd)}`)
  // Where it is left out, a page that is full may not be the last: asking once too often loses nothing.
  const more = body['has_more'] ?? data.length === query['limit']
  if (typeof more !== 'boolean')
    throw unexpectedAnswer(`"has_more" of the list should be a boolean, but is ${nameOfType(more)}`)
  return { ...body, has_more: more, data: data as T[] }
}
