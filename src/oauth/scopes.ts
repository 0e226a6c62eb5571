/**
 * Compares scopes as sets (RFC 6749 section 3.3).
 *
 * @param granted as the service names them, with spaces between, or with commas, as some services do.
 */
export function scopeDifference(
  asked: readonly string[],
  granted: string,
): { missing: string[]; extra: string[] } {
  const grantedScopes = granted
    .split(/\s+/)
    .flatMap((scope) => (asked.includes(scope) ? scope : scope.split(',')))
    .filter((scope) => scope !== '')
  return {
    missing: asked.filter((scope) => !grantedScopes.includes(scope)),
    extra: grantedScopes.filter((scope) => !asked.includes(scope)),
  }
}
