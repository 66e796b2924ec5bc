import { setTimeout as wait } from 'node:timers/promises'

const pauseMs = 500
/** A machine that does much else is given its time. */
const withinMs = 120_000

/** Asks again until there is an answer. @throws what went wrong the last time, when none comes in two minutes */
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
