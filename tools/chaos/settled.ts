import { setTimeout as wait } from 'node:timers/promises'

/**
 * Resolves with true when it is so; with false when nothing has moved for so long. `moved` is a number that changes as long
 * as things go on: a slow machine is given its time, and one that stands still is not waited for.
 */
export async function settled(
  isSo: () => boolean | Promise<boolean>,
  moved: () => number,
  patienceMs: number,
): Promise<boolean> {
  let [last, at] = [moved(), Date.now()]
  for (;;) {
    if (await isSo()) return true
    const now = moved()
    if (now !== last) [last, at] = [now, Date.now()]
    else if (Date.now() - at > patienceMs) return false
    await wait(200)
  }
}

/** Runs over all with so many at a time. */
export async function atOnce<T>(all: readonly T[], limit: number, run: (one: T) => Promise<void>) {
  let next = 0
  const line = async () => {
    while (next < all.length) await run(all[next++] as T)
  }
  await Promise.all(Array.from({ length: Math.min(limit, all.length) }, line))
}
