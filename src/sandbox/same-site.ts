import type { MiddlewareHandler } from 'hono'
import { Problem } from './problems.ts'

/**
 * Refuses what a page of another site in somebody's browser sends to change something. To be put in front of routes, so
 * that it is asked for exactly the paths that reach them, however they are written.
 */
export const sameSiteOnly: MiddlewareHandler = async (c, next) => {
  if (c.req.method !== 'GET' && c.req.method !== 'HEAD' && !isSameSite((name) => c.req.header(name))) {
    throw new Problem(403, 'cross_site_request', 'Another site cannot do this.')
  }
  await next()
}

/** A browser that sends Sec-Fetch-Site cannot be talked into a wrong one; others send Origin with every POST. */
function isSameSite(header: (name: string) => string | undefined): boolean {
  const site = header('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const origin = header('origin')
  return origin === undefined || origin === `http://${header('host')?.toLowerCase()}`
}
