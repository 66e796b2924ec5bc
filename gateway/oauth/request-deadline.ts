import { unavailable } from '@parley/kit/database/errors'
import { ParleyError } from '@parley/wire/errors'
import { Provider } from 'oidc-provider'
import type { OAuthStore } from './oauth-store.ts'

/** The deadline for a request's storage calls, and their first failure. */
interface Deadline {
  until: number
  outage?: ParleyError
}

/** Time limit for all storage calls of one request together. */
const limitMs = 5000

const deadlines = new WeakMap<object, Deadline>()

/**
 * Adds a deadline for each of oidc-provider's requests to the store. All calls during a request share 5 s, and no call is
 * made after a failure. oidc-provider continues after an error to find the redirect address, and would otherwise wait
 * again for each call.
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

/** Returns the deadline of the current request. Each call outside a request has a deadline of its own. */
function deadlineOf(): Deadline {
  const request: object | undefined = Provider.ctx
  const known = request && deadlines.get(request)
  if (known !== undefined) return known
  const deadline: Deadline = { until: performance.now() + limitMs }
  if (request !== undefined) deadlines.set(request, deadline)
  return deadline
}
