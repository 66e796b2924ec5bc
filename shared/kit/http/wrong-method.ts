import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/**
 * Records the routes as they are added. For requests that match no route, the returned function distinguishes a wrong
 * HTTP method (405 with `Allow`) from an unknown path (404).
 */
export function watchRoutes(app: FastifyInstance): (request: FastifyRequest) => ParleyError {
  const methodsOf = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    // The catch-all route of @fastify/cors handles preflights.
    if (route.url === '*') return
    const methods = methodsOf.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) methods.add(method)
    methodsOf.set(route.url, methods)
  })
  return (request) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const allowed = [...methodsOf].find(([pattern]) => matches(pattern, path))?.[1]
    // The route has this method but rejected the path: a parameter is empty or too long.
    if (allowed === undefined || allowed.has(request.method))
      return new ParleyError('NotFound', { data: { reason: 'route' } })
    return new ParleyError('InvalidRequest', {
      status: 405,
      message: 'HTTP method not allowed here',
      headers: { allow: [...allowed].join(', ') },
    })
  }
}

/** A parameter or `*` matches one segment, and a trailing `*` matches all remaining segments. */
function matches(pattern: string, path: string): boolean {
  const parts = pattern.split('/')
  const segments = path.split('/')
  const open = parts.at(-1) === '*'
  if (open ? segments.length < parts.length : segments.length !== parts.length) return false
  return parts.every((part, i) => part.startsWith(':') || part === '*' || part === segments[i])
}
