import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { escaped, segmentsOf } from './path-pattern.ts'

/**
 * Records the routes as they are added. For requests that match no route, the returned function distinguishes a wrong
 * HTTP method (405 with `Allow`) from an unknown path (404).
 */
export function watchRoutes(app: FastifyInstance): (request: FastifyRequest) => ParleyError {
  const routes = new Map<string, { path: RegExp; methods: Set<string> }>()
  app.addHook('onRoute', (route) => {
    // The catch-all route of @fastify/cors handles preflights.
    if (route.url === '*') return
    const known = routes.get(route.url) ?? { path: pathOf(route.url), methods: new Set<string>() }
    for (const method of [route.method].flat()) known.methods.add(method)
    routes.set(route.url, known)
  })
  return (request) => {
    const path = request.url.split('?', 1)[0] ?? ''
    const matching = [...routes.values()].filter((route) => route.path.test(path))
    const allowed = new Set(matching.flatMap(({ methods }) => [...methods]))
    // If a route has this method, it rejected the path: a parameter is empty or too long.
    if (allowed.size === 0 || allowed.has(request.method))
      return new ParleyError('NotFound', { data: { reason: 'route' } })
    return new ParleyError('InvalidRequest', {
      status: 405,
      message: 'HTTP method not allowed here',
      headers: { allow: [...allowed].join(', ') },
    })
  }
}

/** A parameter or `*` matches one segment, and a trailing `*` all remaining segments. */
function pathOf(pattern: string): RegExp {
  const segments = segmentsOf(pattern)
  const parts = segments.map(({ isWildcard, parameter, literal }, index) => {
    if (isWildcard) return index === segments.length - 1 ? '.*' : '[^/]*'
    return (parameter === undefined ? '' : '[^/]*') + escaped(literal)
  })
  return new RegExp(`^${parts.join('/')}$`)
}
