/** A timer that aborts after a period without data, or when the outer signal is aborted. */
export interface Silence {
  signal: AbortSignal
  /** Restarts the timer after data has arrived. */
  heard(): void
  /** Pauses the timer until more data arrives. */
  pause(): void
  /** True after the timer has expired. */
  broken(): boolean
  stop(): void
}

export function watchSilence(timeoutMs: number, outer: AbortSignal): Silence {
  const inner = new AbortController()
  let broken = false
  const end = () => {
    broken = true
    inner.abort()
  }
  let timer = setTimeout(end, timeoutMs)
  const forward = () => inner.abort(outer.reason)
  if (outer.aborted) forward()
  else outer.addEventListener('abort', forward, { once: true })
  return {
    signal: inner.signal,
    heard() {
      clearTimeout(timer)
      timer = setTimeout(end, timeoutMs)
    },
    pause: () => clearTimeout(timer),
    broken: () => broken,
    stop() {
      clearTimeout(timer)
      outer.removeEventListener('abort', forward)
      // Closes connections that are still open.
      inner.abort()
    },
  }
}
