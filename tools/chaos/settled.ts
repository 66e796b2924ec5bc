import { setTimeout as wait } from 'node:timers/promises'

/**
 * Resolves with true when the condition holds, or with false after some time without progress. `moved` is a number that
 * changes with all progress, so that a slow machine gets more time but a standstill does not.
 */
export async function settled(
  holds: () => boolean | Promise<boolean>,
  moved: () => number,
  patienceMs: number,
): Promise<boolean> {
  let [last, at] = [moved(), Date.now()]
  for (;;) {
    if (await holds()) return true
    const now = moved()
    if (now !== last) [last, at] = [now, Date.now()]
    else if (Date.now() - at > patienceMs) return false
    await wait(200)
  }
}

/** Calls the function for all elements with limited concurrency. */
export async function atOnce<T>(all: readonly T[], limit: number, run: (one: T) => Promise<void>) {
  let next = 0
  const line = async () => {
    while (next < all.length) await run(all[next++] as T)
  }
  await Promise.all(Array.from({ length: Math.min(limit, all.length) }, line))
}
