import { unavailable } from '../errors.ts'
import { forCallers } from './database.ts'

export interface GuardOptions {
  /** Whether the store is closed. */
  closed: () => boolean
  /** How long one question or change may take. */
  timeoutMs: number
  /** Names of methods whose work grows with the store: each step of theirs is bounded by the driver. */
  unbounded?: ReadonlySet<string>
}

/** No text of the driver reaches a caller, and a closed store says so. */
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

/** The driver has no deadline for a whole operation. What comes later is not waited for, and its failure not heard. */
async function within<T>(timeoutMs: number, answer: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(unavailable('The storage does not answer in time')), timeoutMs)
  try {
    return await Promise.race([answer, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
