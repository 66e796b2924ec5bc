/** Maximum number of attempts to deliver an event to a receiver (spec/webhooks.md#delivery). */
export const attemptsMax = 3
export const [backoffMinMs, backoffMaxMs] = [500, 5000]
/** Timeout for one request, including the connection. */
export const postTimeoutMs = 5000

/**
 * Returns the delay after an attempt (starting with 1). It is random: between 0.5 and 1 s after the first
 * attempt, between 1 and 2 s after the second, and so on up to 5 s. A longer `Retry-After` is honoured up to
 * 5 s.
 * @param random a number from 0 to 1
 */
export function backoffMs(attempt: number, random: number, retryAfterMs = 0): number {
  const min = Math.min(backoffMaxMs, backoffMinMs * 2 ** (attempt - 1))
  const max = Math.min(backoffMaxMs, min * 2)
  return Math.max(min + random * (max - min), Math.min(retryAfterMs, backoffMaxMs))
}

/**
 * Returns the milliseconds until the time in the header, which contains seconds or a date. Returns 0 if the
 * header is missing or malformed, or if the time is in the past.
 */
export function retryAfterMs(header: string | string[] | undefined, now: number): number {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  // An HTTP date starts with the name of the day, whereas Date.parse accepts many other texts.
  const date = /^[a-z]{3,9},? /i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}

/**
 * `refused`: the URL guard refused the URL. `redirect`: the status was 3xx, which is never followed.
 * `rejected`: the status was 4xx other than 429. `exhausted`: every attempt failed.
 */
export type DropReason = 'refused' | 'redirect' | 'rejected' | 'exhausted'
export type Verdict = 'delivered' | 'retry' | DropReason

/** Returns whether a response status acknowledges, rejects or defers the event. */
export function verdictOn(status: number): Verdict {
  if (status < 300) return 'delivered'
  if (status < 400) return 'redirect'
  return status === 429 || status >= 500 ? 'retry' : 'rejected'
}
