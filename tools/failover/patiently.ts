import { setTimeout as wait } from 'node:timers/promises'

const pauseMs = 500
/** Time limit, generous for a machine under load. */
const withinMs = 120_000

/** Retries the call until it succeeds. @throws the last error after two minutes */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const until = Date.now() + withinMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (Date.now() > until) throw error
      await wait(pauseMs)
    }
  }
}
