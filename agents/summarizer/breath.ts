import { setImmediate as nextTurn } from 'node:timers/promises'

/** Maximum time between two turns of the event loop, in milliseconds. */
const longestStretchMs = 12

/** Yields to the event loop during a long computation; throws when the signal is aborted. */
export function breathOf(signal: AbortSignal): () => Promise<void> | undefined {
  let since = performance.now()
  const takeBreath = async (): Promise<void> => {
    await nextTurn()
    signal.throwIfAborted()
    since = performance.now()
  }
  return () => (performance.now() - since < longestStretchMs ? undefined : takeBreath())
}
