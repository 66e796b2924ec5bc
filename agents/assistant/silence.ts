/** Aborts when nothing was heard for a while, or when the outer signal is aborted. */
export interface Silence {
  signal: AbortSignal
  /** Something came: the clock starts again. */
  heard(): void
  /** We wait ourselves: the clock stands still until something is heard. */
  pause(): void
  /** True once it was silent for too long. */
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
      // Whatever is still open is closed with it.
      inner.abort()
    },
  }
}
