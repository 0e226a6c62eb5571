import { checkFields } from './answers.ts'
import { pathSegment, type RequestOptions, type ServiceClient } from './client.ts'
import { listPage } from './lists.ts'
import type { PageFetcher } from './paging.ts'
import type { ContactImport, ImportStatus } from './types.ts'

/** Pages of the contact imports, filtered by the service if a status is given (section 4.3). */
export function importPages(client: ServiceClient, status?: ImportStatus): PageFetcher<ContactImport> {
  return (cursor, signal) =>
    listPage<ContactImport>(client, '/contacts/imports', { ...cursor, status }, signal)
}

/** One import (section 4.4). @throws CliError exit 5 if there is none with that id */
export async function getImport(
  client: ServiceClient,
  id: string,
  options?: RequestOptions,
): Promise<ContactImport> {
  const { body } = await client.get(`/contacts/imports/${pathSegment(id)}`, {}, options)
  checkFields(
    body,
    { id: 'string', status: 'string', created_at: 'string', completed_at: 'string', counts: 'object' },
    'the import',
    ['id', 'status', 'counts'],
  )
  return body as ContactImport
}
