import { unavailable } from '../errors.ts'
import { forCallers } from './database.ts'

export interface GuardOptions {
  /** Whether the store is closed. */
  closed: () => boolean
  /** Timeout for one call. */
  timeoutMs: number
  /** Methods without a timeout, because their work grows with the store. The driver limits each of their steps. */
  unbounded?: ReadonlySet<string>
}

/** Wraps methods so that driver errors become `Unavailable`, calls time out, and a closed store rejects calls. */
export function guarded<T extends object>(methods: T, options: GuardOptions): T {
  const { closed, timeoutMs, unbounded } = options
  const entries = Object.entries(methods).map(([name, method]) => {
    if (typeof method !== 'function') return [name, method]
    const asked = async (...given: unknown[]) => {
      if (closed()) throw unavailable('The store is closed')
      try {
        const answer = (method as (...given: unknown[]) => Promise<unknown>)(...given)
        return await (unbounded?.has(name) === true ? answer : within(timeoutMs, answer))
      } catch (error) {
        throw forCallers(error)
      }
    }
    return [name, asked]
  })
  return Object.fromEntries(entries) as T
}

/** Adds a timeout, because the driver has none for a whole operation. A late result or failure is ignored. */
async function within<T>(timeoutMs: number, answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(unavailable('The storage does not answer in time')), timeoutMs)
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
