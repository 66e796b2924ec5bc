import { setImmediate as nextTurn } from 'node:timers/promises'

/** Longest stretch of work between two turns of the event loop, in milliseconds. */
const longestStretchMs = 12

/** Lets other tasks of the process work during a long computation, and ends it when the signal is aborted. */
export function breathOf(signal: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now()
  const takeBreath = async (): Promise<void> => {
    await nextTurn()
    signal.throwIfAborted()
    since = performance.now()
  }
  return () => (performance.now() - since < longestStretchMs ? undefined : takeBreath())
}
