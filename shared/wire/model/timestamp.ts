/**
 * Timestamps on the wire: `YYYY-MM-DDTHH:MM:SS.ffffff+00:00` (spec/json-rpc.md#timestamps).
 * Inside, a time is the same string: it sorts as text and needs no conversion on the way out.
 */
export type Timestamp = string

let last = 0

/** The current time in microseconds since 1970; strictly increasing within the process. */
export function nowMicros(): number {
  // The wall clock has milliseconds; the monotonic clock supplies the digits below.
  const micros = Date.now() * 1000 + (Math.floor(performance.now() * 1000) % 1000)
  last = micros > last ? micros : last + 1
  return last
}

export function timestampOf(micros: number): Timestamp {
  const fraction = String(micros % 1_000_000).padStart(6, '0')
  return `${secondsText(Math.floor(micros / 1_000_000))}.${fraction}+00:00`
}

/** The current time as a timestamp. Two calls never return the same one. */
export function timestamp(): Timestamp {
  return timestampOf(nowMicros())
}

export function millisOf(text: Timestamp): number {
  return Date.parse(text)
}

let cachedSecond = -1
let cachedText = ''

/** `toISOString` costs a microsecond; most calls fall into the same second as the one before. */
function secondsText(second: number): string {
  if (second !== cachedSecond) {
    cachedSecond = second
    cachedText = new Date(second * 1000).toISOString().slice(0, 19)
  }
  return cachedText
}
