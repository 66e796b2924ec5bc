/** Resolves when the work is done, or the time is over; false: it goes on, and nobody hears of a failure that comes later. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = Promise.withResolvers<false>()
  const timer = setTimeout(() => over.resolve(false), ms)
  try {
    return await Promise.race([work.then(() => true), over.promise])
  } finally {
    clearTimeout(timer)
  }
}
