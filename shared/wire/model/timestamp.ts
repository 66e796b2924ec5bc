/**
 * Timestamps on the wire: `YYYY-MM-DDTHH:MM:SS.ffffff+00:00` (spec/json-rpc.md#timestamps).
 * Internally, a time is the same string, which sorts as text and needs no conversion for output.
 */
export type Timestamp = string

let last = 0

/** Returns the current time in microseconds since 1970. The values strictly increase within the process. */
export function nowMicros(): number {
  // The wall clock supplies the milliseconds, and the monotonic clock supplies the remaining digits.
  const micros = Date.now() * 1000 + (Math.floor(performance.now() * 1000) % 1000)
  last = micros > last ? micros : last + 1
  return last
}

export function timestampOf(micros: number): Timestamp {
  const fraction = String(micros % 1_000_000).padStart(6, '0')
  return `${secondsText(Math.floor(micros / 1_000_000))}.${fraction}+00:00`
}

/** Returns the current time as a timestamp. Two calls never return the same value. */
export function timestamp(): Timestamp {
  return timestampOf(nowMicros())
}

const rfc3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})?$/i

/**
 * Reads a time of another server, of any offset and precision. Some servers write none, which is read as UTC. Returns the
 * current time if there is no time or it cannot be read.
 */
export function timestampOfServer(text: unknown): Timestamp {
  const [, seconds = '', fraction = '', zone = 'Z'] = rfc3339.exec(typeof text === 'string' ? text : '') ?? []
  const at = Date.parse(seconds + zone)
  return at >= 0 ? timestampOf(at * 1000 + Number(fraction.padEnd(6, '0').slice(0, 6))) : timestamp()
}

export function millisOf(text: Timestamp): number {
  return Date.parse(text)
}

let cachedSecond = -1
let cachedText = ''

/** Caches the text, because `toISOString` takes a microsecond and most calls fall into the same second as the last. */
function secondsText(second: number): string {
  if (second !== cachedSecond) {
    cachedSecond = second
    cachedText = new Date(second * 1000).toISOString().slice(0, 19)
  }
  return cachedText
}
