/**
 * `kill …`: SIGKILL of a process, which is started again. `freeze`: SIGSTOP of any process for 15 s. `redis`: killed, and
 * started again empty. `database`: away for 5 s. `clock`: that of a client is wrong.
 */
export const faultKinds = ['kill agent', 'kill gateway', 'freeze', 'redis', 'database', 'clock'] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  kind: FaultKind
  /** 0 to 1: which of those that it can hit. */
  victim: number
  /** Milliseconds after the fault before. */
  afterMs: number
}

/** 0 to 1; the same seed gives the same numbers (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Pauses before the next fault. */
const [afterMinMs, afterMaxMs] = [1000, 4000]

/** Faults one after the other, without an end: each kind comes once before any comes again. */
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

/** The one that a number from 0 to 1 means. */
export function pick<T>(all: readonly T[], chance: number): T {
  const picked = all[Math.min(Math.floor(chance * all.length), all.length - 1)]
  if (picked === undefined) throw new Error('nothing to pick from')
  return picked
}
