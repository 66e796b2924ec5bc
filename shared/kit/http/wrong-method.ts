import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/**
 * Tells a wrong HTTP method (405 with `Allow`) from a path that does not exist (404). Learns the routes as they are
 * added; asked only for requests that no route took.
 */
export function watchRoutes(app: FastifyInstance): (request: FastifyRequest) => ParleyError {
  const methodsOf = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    // The catch-all of @fastify/cors answers preflights; it is no path.
    if (route.url === '*') return
    const methods = methodsOf.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) methods.add(method)
    methodsOf.set(route.url, methods)
  })
  return (request) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const allowed = [...methodsOf].find(([pattern]) => matches(pattern, path))?.[1]
    // A route that has this method did not want the path: a parameter is empty, or longer than any name.
    if (allowed === undefined || allowed.has(request.method))
      return new ParleyError('NotFound', { data: { reason: 'route' } })
    return new ParleyError('InvalidRequest', {
      status: 405,
      message: 'HTTP method not allowed here',
      headers: { allow: [...allowed].join(', ') },
    })
  }
}

/** Parameters and `*` stand for one segment, a trailing `*` for the rest. */
function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/')
  const given = path.split('/')
  const open = wanted.at(-1) === '*'
  if (open ? given.length < wanted.length : given.length !== wanted.length) return false
  return wanted.every((part, i) => part.startsWith(':') || part === '*' || part === given[i])
}
