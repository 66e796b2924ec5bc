import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'

export interface WatchdogOptions {
  /** How often `/health` is asked, and how long an answer may take. Default 5 s. */
  everyMs?: number
  /** Questions in a row without an answer. Default 6. */
  missesMax?: number
}

/**
 * Asks `/health` until the signal aborts or `missesMax` questions in a row stay without any answer; true then: the
 * process hangs. A 503 is an answer. Counted, not timed, so that a machine that slept finds its agents alive.
 */
export async function watchForHang(
  url: string,
  signal: AbortSignal,
  options: WatchdogOptions = {},
): Promise<boolean> {
  const { everyMs = 5000, missesMax = 6 } = options
  let misses = 0
  while (misses < missesMax) {
    await wait(everyMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return false
    misses = (await answers(`${url}/health`, signal, everyMs)) ? 0 : misses + 1
    if (signal.aborted) return false
  }
  return true
}

async function answers(url: string, signal: AbortSignal, timeoutMs: number): Promise<boolean> {
  try {
    const limits = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const response = await request(url, { signal: limits })
    await response.body.dump({ limit: 64 * 1024, signal: limits })
    return true
  } catch {
    return false
  }
}
