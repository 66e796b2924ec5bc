/** The length of the window in minutes. */
export const windowMinutes = 5
/** Pairs of parties that are counted apart. The calls of further pairs are counted with the caller `others`. */
const pairsMax = 2000
/** Number of pairs that an answer contains. */
const listedMax = 500
/** Upper bounds of the latency classes in milliseconds. The last class is unbounded. */
const bounds = [
  1, 2, 3, 5, 8, 13, 20, 35, 60, 100, 170, 300, 500, 900, 1500, 2500, 4000, 7000, 12_000, 30_000,
]
const minuteMs = 60_000

/** The calls between two parties in the last minutes. */
export interface PairCalls {
  from: string
  to: string
  count: number
  errors: number
  /** Undefined if no call was answered. The upper bound of the median's latency class. */
  p50Ms: number | undefined
}

/** The counts of one minute. */
interface Minute {
  number: number
  count: number
  errors: number
  latencies: Uint32Array
}

/** Counts calls by caller, agent and minute in memory. Each gateway counts the calls that it forwards. */
export class CallCounts {
  readonly #pairs = new Map<string, Map<string, Minute[]>>()
  readonly #now: () => number
  #size = 0

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** @param ms time to the head of the response; undefined if there was none */
  add(from: string, to: string, ms: number | undefined, isError: boolean): void {
    const number = Math.floor(this.#now() / minuteMs)
    const minute = minuteIn(this.#ring(from, to), number)
    minute.count += 1
    if (isError) minute.errors += 1
    if (ms === undefined) return
    let index = 0
    while (index < bounds.length && ms > (bounds[index] ?? 0)) index += 1
    minute.latencies[index] = (minute.latencies[index] ?? 0) + 1
  }

  /** Returns the pairs with the most calls, these first. */
  inWindow(): PairCalls[] {
    this.#removeIdle()
    const oldest = this.#oldest()
    const all = [...this.#pairs].flatMap(([from, agents]) =>
      [...agents].map(([to, ring]) => ({ from, to, ...sumOf(ring, oldest) })),
    )
    return all.toSorted((a, b) => b.count - a.count).slice(0, listedMax)
  }

  #ring(from: string, to: string): Minute[] {
    const known = this.#pairs.get(from)?.get(to)
    if (known !== undefined) return known
    if (this.#size >= pairsMax) this.#removeIdle()
    // The number of callers that are not counted apart is not limited, but they share one name.
    const name = this.#size >= pairsMax ? 'others' : from
    const agents = this.#pairs.get(name) ?? new Map<string, Minute[]>()
    this.#pairs.set(name, agents)
    const ring = agents.get(to) ?? []
    if (!agents.has(to)) this.#size += 1
    agents.set(to, ring)
    return ring
  }

  #removeIdle(): void {
    const oldest = this.#oldest()
    for (const [from, agents] of this.#pairs) {
      for (const [to, ring] of agents) {
        if (ring.some(({ number }) => number >= oldest)) continue
        agents.delete(to)
        this.#size -= 1
      }
      if (agents.size === 0) this.#pairs.delete(from)
    }
  }

  #oldest(): number {
    return Math.floor(this.#now() / minuteMs) - windowMinutes + 1
  }
}

function minuteIn(ring: Minute[], number: number): Minute {
  const place = number % windowMinutes
  const known = ring[place]
  if (known?.number === number) return known
  const minute = { number, count: 0, errors: 0, latencies: new Uint32Array(bounds.length + 1) }
  ring[place] = minute
  return minute
}

function sumOf(ring: readonly (Minute | undefined)[], oldest: number) {
  const minutes = ring.filter((minute) => minute !== undefined && minute.number >= oldest)
  const latencies = new Uint32Array(bounds.length + 1)
  let [count, errors, answered] = [0, 0, 0]
  for (const minute of minutes) {
    if (minute === undefined) continue
    count += minute.count
    errors += minute.errors
    for (const [index, calls] of minute.latencies.entries()) {
      latencies[index] = (latencies[index] ?? 0) + calls
      answered += calls
    }
  }
  let below = 0
  const median = latencies.findIndex((calls) => (below += calls) * 2 >= answered)
  return { count, errors, p50Ms: answered === 0 ? undefined : (bounds[median] ?? bounds.at(-1)) }
}
