/** Waits at most `ms` for the work. Returns false if it continues; its later failure is then ignored. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<boolean> {
  const timeout = Promise.withResolvers<false>()
  const timer = setTimeout(() => timeout.resolve(false), ms)
  try {
    return await Promise.race([work.then(() => true), timeout.promise])
  } finally {
    clearTimeout(timer)
  }
}
