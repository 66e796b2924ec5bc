import { setTimeout as pause } from 'node:timers/promises'
import { ParleyError } from '@parley/wire/errors'

interface Patience {
  retryMs: number
  signal: AbortSignal
  log: { warn(fields: object, text: string): void }
}

/** Asks again and again while the storage refuses. Undefined when the signal ends it meanwhile. */
export async function persistently<T>(
  ask: () => Promise<T>,
  { retryMs, signal, log }: Patience,
): Promise<T | undefined> {
  for (let told = false; ; told = true) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ParleyError) || error.error !== 'Unavailable') throw error
      if (signal.aborted) return undefined
      if (!told) log.warn({ err: error }, 'the storage refused what is needed; asking again')
      await pause(retryMs, undefined, { signal }).catch(() => {})
    }
  }
}
