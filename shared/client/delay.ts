import { setTimeout as sleep } from 'node:timers/promises'

/** Waits; an abort ends it with the signal's own reason, as it does a request. */
export async function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((thrown: unknown) => {
    signal?.throwIfAborted()
    throw thrown
  })
}
