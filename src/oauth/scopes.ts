import { usageError } from '../errors.ts'

/**
 * The scopes that `--scope` names, which may be repeated or hold several, separated by spaces or commas.
 *
 * @throws CliError exit 2 where one is no scope-token (RFC 6749 §3.3).
 */
export function splitScopes(scopes: readonly string[]): string[] {
  const split = scopes.flatMap((scope) => scope.split(/[\s,]+/)).filter((scope) => scope !== '')
  const wrong = split.find((scope) => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw usageError(`--scope: ${JSON.stringify(wrong)} is not a scope (RFC 6749 §3.3)`)
  return split
}

/**
 * Compares what was asked for with what a service says that it granted (RFC 6749 section 3.3), in whatever order, with
 * spaces or commas between.
 */
export function scopeDifference(
  asked: readonly string[],
  granted: string,
): { missing: string[]; extra: string[] } {
  const given = granted.split(/[\s,]+/).filter((scope) => scope !== '')
  return {
    missing: asked.filter((scope) => !given.includes(scope)),
    extra: given.filter((scope) => !asked.includes(scope)),
  }
}
