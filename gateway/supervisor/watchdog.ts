import { setTimeout as wait } from 'node:timers/promises'
import { request } from 'undici'

export interface WatchdogOptions {
  /** Interval between health checks and timeout of each check. Defaults to 5 s. */
  everyMs?: number
  /** Number of consecutive failed checks after which the process is considered hung. Defaults to 6. */
  missesMax?: number
}

/**
 * Polls `/health` until the signal aborts or `missesMax` consecutive requests get no response. Resolves with true in the
 * latter case. Any status counts as a response. The watchdog counts requests rather than time, so that agents survive
 * the suspension of their machine.
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
