import { unavailable } from '@parley/kit/database/errors'
import { ParleyError } from '@parley/wire/errors'
import { Provider } from 'oidc-provider'
import type { OAuthStore } from './oauth-store.ts'

/** What a request has left of its time for the store, and that the store was found away. */
interface Wait {
  until: number
  away?: ParleyError
}

/** What all questions of one request may take together. */
const limitMs = 5000

const waits = new WeakMap<object, Wait>()

/**
 * The store as one request of oidc-provider asks it: all questions together have 5 s, and once it was away it is not
 * asked again. oidc-provider goes on after an error, to find out whom to tell of it, and would wait anew for each question.
 */
export function withRequestDeadline(store: OAuthStore): OAuthStore {
  return new Proxy(store, {
    get: (asked, name) => {
      const method: unknown = Reflect.get(asked, name)
      if (typeof method !== 'function') return method
      return (...given: unknown[]) => within(() => method.apply(asked, given) as Promise<unknown>)
    },
  })
}

async function within(ask: () => Promise<unknown>): Promise<unknown> {
  const wait = waitOf()
  if (wait.away !== undefined) throw wait.away
  const late = Promise.withResolvers<never>()
  const inTime = wait.until - performance.now()
  const timer = setTimeout(() => late.reject(unavailable('The storage does not answer in time')), inTime)
  try {
    return await Promise.race([ask(), late.promise])
  } catch (error) {
    if (error instanceof ParleyError && error.error === 'Unavailable') wait.away = error
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Of the request that is being answered; a question that belongs to none has its own. */
function waitOf(): Wait {
  const request: object | undefined = Provider.ctx
  const known = request && waits.get(request)
  if (known !== undefined) return known
  const wait: Wait = { until: performance.now() + limitMs }
  if (request !== undefined) waits.set(request, wait)
  return wait
}
