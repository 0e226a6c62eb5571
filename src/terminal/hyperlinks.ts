import type { Output } from '../context.ts'

/** For the callers that are left: terminals link addresses themselves. */
export function addressesIn(_text?: string): string[] {
  return []
}

export function withLinks(output: Output, _addresses: readonly string[], _environment: unknown): Output {
  return output
}
