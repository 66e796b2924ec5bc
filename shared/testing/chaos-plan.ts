/** `kill`: SIGKILL of a process, which is started again. `database`: away for 5 s. `freeze`: SIGSTOP of a process for 15 s. */
export const faultKinds = ['kill', 'redis', 'database', 'freeze'] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  kind: FaultKind
  /** Which process, counted from 0; of no meaning where none is meant. */
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
const [afterMinMs, afterMaxMs] = [1500, 5000]

/** Faults one after the other, without an end: each kind comes once before any comes again. */
export function* faultsOf(seed: number, processes: number): Generator<Fault, never, void> {
  const random = randomFrom(seed)
  for (;;) {
    const deck = [...faultKinds]
    while (deck.length > 0) {
      const [kind = 'kill'] = deck.splice(Math.floor(random() * deck.length), 1)
      const victim = Math.floor(random() * processes)
      yield { kind, victim, afterMs: Math.round(afterMinMs + random() * (afterMaxMs - afterMinMs)) }
    }
  }
}
