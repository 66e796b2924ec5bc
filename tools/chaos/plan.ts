/**
 * `kill …` sends SIGKILL to a process, which is restarted. `freeze` stops a process with SIGSTOP for 15 s. `redis` kills
 * Redis and restarts it empty. `database` stops the database for 5 s. `clock` sets a client's clock wrong.
 */
export const faultKinds = ['kill agent', 'kill gateway', 'freeze', 'redis', 'database', 'clock'] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  kind: FaultKind
  /** A number from 0 to 1 that selects one of the possible targets. */
  victim: number
  /** Milliseconds after the previous fault. */
  afterMs: number
}

/** Returns a generator of numbers from 0 to 1. The same seed gives the same numbers (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Limits of the pause before a fault. */
const [afterMinMs, afterMaxMs] = [1000, 4000]

/** An endless sequence of faults. Each kind occurs once before any kind repeats. */
export function* faultsOf(seed: number): Generator<Fault, never, void> {
  const random = randomFrom(seed)
  for (;;) {
    const deck = [...faultKinds]
    while (deck.length > 0) {
      const [kind = 'kill agent'] = deck.splice(Math.floor(random() * deck.length), 1)
      const victim = random()
      yield { kind, victim, afterMs: Math.round(afterMinMs + random() * (afterMaxMs - afterMinMs)) }
    }
  }
}

/** Selects an element with a number from 0 to 1. */
export function pick<T>(all: readonly T[], chance: number): T {
  const picked = all[Math.min(Math.floor(chance * all.length), all.length - 1)]
  if (picked === undefined) throw new Error('nothing to pick from')
  return picked
}
