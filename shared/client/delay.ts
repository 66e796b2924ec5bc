import { setTimeout as sleep } from 'node:timers/promises'

/** Waits for `ms` milliseconds. @throws the signal's reason if it aborts */
export async function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch((thrown: unknown) => {
    signal?.throwIfAborted()
    throw thrown
  })
}
