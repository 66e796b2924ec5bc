import { setTimeout as pause } from 'node:timers/promises'
import { ParleyError } from '@parley/wire/errors'
import { unavailable } from './errors.ts'

const attemptsMax = 100

/**
 * Repeats a change that a concurrent change may prevent, with growing random pauses, until `attempt` returns a value.
 * @throws ParleyError Unavailable after 100 attempts
 */
export async function untilDone<T>(attempt: (number: number) => Promise<T | undefined>): Promise<T> {
  for (let number = 0; number < attemptsMax; number += 1) {
    const done = await attempt(number)
    if (done !== undefined) return done
    await pause(Math.min(2 ** number, 50) * Math.random())
  }
  throw unavailable('Too many concurrent changes in the storage')
}

interface PersistenceOptions {
  retryMs: number
  signal: AbortSignal
  log: { warn(fields: object, text: string): void }
}

/** Repeats `attempt` while the storage is unavailable. Returns undefined when the signal aborts the wait. */
export async function persistently<T>(
  attempt: () => Promise<T>,
  { retryMs, signal, log }: PersistenceOptions,
): Promise<T | undefined> {
  for (let logged = false; ; logged = true) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof ParleyError) || error.error !== 'Unavailable') throw error
      if (signal.aborted) return undefined
      if (!logged) log.warn({ err: error }, 'the storage is not available; retrying')
      await pause(retryMs, undefined, { signal }).catch(() => {})
    }
  }
}
