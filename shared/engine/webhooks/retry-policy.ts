/** Attempts of one event at one receiver, and the waits between them (spec/webhooks.md#delivery). */
export const attemptsMax = 3
export const [backoffMinMs, backoffMaxMs] = [500, 5000]
/** For connect and read of one POST. */
export const postTimeoutMs = 5000

/**
 * How long to wait after the attempt with this number (from 1): anywhere between 0.5 and 1 s, then 1 and 2 s, doubling,
 * never beyond 5 s. A `Retry-After` that asks for more is honoured up to 5 s.
 * @param random 0 to 1
 */
export function backoffMs(attempt: number, random: number, retryAfterMs = 0): number {
  const least = Math.min(backoffMaxMs, backoffMinMs * 2 ** (attempt - 1))
  const most = Math.min(backoffMaxMs, least * 2)
  return Math.max(least + random * (most - least), Math.min(retryAfterMs, backoffMaxMs))
}

/** The header's seconds or date, as milliseconds from now; 0 for none, for nonsense and for the past. */
export function retryAfterMs(header: string | string[] | undefined, now: number): number {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  // A date of HTTP begins with the day's name; Date.parse would read much else.
  const date = /^[a-z]{3,9},? /i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? 0 : Math.max(0, date - now)
}
