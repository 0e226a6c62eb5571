import { field, file, nullable, object, text } from './schema.ts'

/** A claim as the service sent it; only what finds it again is checked. */
const claim = field('a claim', (value) => {
  const { name, domain_id } = (value ?? {}) as { name?: unknown; domain_id?: unknown }
  return typeof name === 'string' && typeof domain_id === 'string' ? (value as object) : undefined
})

/** `claims/<profile>/….json`: a claim as it was seen last, and whether it is gone since. Both times are ISO 8601. */
export const claimFormat = file(1, object({ issuer: text, seen_at: text, gone_at: nullable(text), claim }))
