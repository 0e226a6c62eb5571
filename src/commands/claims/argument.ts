import type { ArgumentDefinition } from '../definition.ts'

/** `<claim>` as every claim command takes it; on a terminal it may be left out and picked. */
export const CLAIM_ARGUMENT: ArgumentDefinition = {
  syntax: '[claim]',
  says: 'a domain name known on this machine, or a placeholder domain id',
  completion: 'domains',
}
