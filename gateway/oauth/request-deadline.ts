import { unavailable } from '@parley/kit/database/errors'
import { ParleyError } from '@parley/wire/errors'
import { Provider } from 'oidc-provider'
import type { OAuthStore } from './oauth-store.ts'

/** Deadline of a request's storage calls, and the first failure. */
interface Deadline {
  until: number
  outage?: ParleyError
}

/** Limit for all storage calls of one request. */
const limitMs = 5000

const deadlines = new WeakMap<object, Deadline>()

/**
 * The store with a deadline per request of oidc-provider: all calls together have 5 s, and after a failure none is
 * made. oidc-provider continues after an error to find the redirect address and would wait again for each call.
 */
export function withRequestDeadline(store: OAuthStore): OAuthStore {
  return new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      return (...args: unknown[]) => within(() => method.apply(target, args))
    },
  })
}

async function within(call: () => Promise<unknown>): Promise<unknown> {
  const deadline = deadlineOf()
  if (deadline.outage !== undefined) throw deadline.outage
  const timeout = Promise.withResolvers<never>()
  const remainingMs = deadline.until - performance.now()
  const timer = setTimeout(
    () => timeout.reject(unavailable('The storage did not respond in time')),
    remainingMs,
  )
  try {
    return await Promise.race([call(), timeout.promise])
  } catch (error) {
    if (error instanceof ParleyError && error.error === 'Unavailable') deadline.outage = error
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Deadline of the current request. Calls outside a request have a separate one. */
function deadlineOf(): Deadline {
  const request: object | undefined = Provider.ctx
  const known = request && deadlines.get(request)
  if (known !== undefined) return known
  const deadline: Deadline = { until: performance.now() + limitMs }
  if (request !== undefined) deadlines.set(request, deadline)
  return deadline
}
