import { usageError } from '../errors.ts'

/**
 * Splits the values of `--scope`, which can be repeated and can contain several scopes with spaces or commas between.
 *
 * @throws CliError exit 2 if one is not a scope-token (RFC 6749 section 3.3).
 */
export function splitScopes(scopes: readonly string[]): string[] {
  const split = scopes.flatMap((scope) => scope.split(/[\s,]+/)).filter((scope) => scope !== '')
  const wrong = split.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw usageError(`--scope: ${JSON.stringify(wrong)} is not a scope (RFC 6749 section 3.3)`)
  return split
}

/**
 * Compares the requested scopes with the granted ones (RFC 6749 section 3.3), in any order, with spaces or commas between.
 */
export function scopeDifference(
  asked: readonly string[],
  granted: string,
): { missing: string[]; extra: string[] } {
  const grantedScopes = granted.split(/[\s,]+/).filter((scope) => scope !== '')
  return {
    missing: asked.filter((scope) => !grantedScopes.includes(scope)),
    extra: grantedScopes.filter((scope) => !asked.includes(scope)),
  }
}
