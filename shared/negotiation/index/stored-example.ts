import { independentExamples } from '../score/learning.ts'
import type { TrainingExample } from '../score/training-example.ts'

/** A training example with its place in the arrays of the model. */
export interface StoredExample extends TrainingExample {
  /** Index in the arrays of the model. */
  number: number
  /** Slot of the vector, or −1. */
  slot: number
  /** Hashes of the caller and of the words, which are compared faster. */
  callerNumber: number
  wordsNumber: number
}

/** The number of different callers. */
export const callersOf = (examples: readonly StoredExample[]) =>
  new Set(examples.map(({ caller }) => caller)).size

/** The number of independent examples; 0 if they are of fewer callers. */
export function independentAmong(examples: readonly StoredExample[], callersMin: number): number {
  const callers = callersOf(examples)
  return callers < callersMin ? 0 : independentExamples(examples.length, callers)
}

/** FNV-1a, 32 bits. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash >>> 0
}

/**
 * The oldest example of the caller with the most examples, so that no caller displaces the examples of others.
 */
export function oldestOfLargestCaller(examples: ReadonlyMap<string, TrainingExample>): TrainingExample {
  const counts = new Map<string, number>()
  for (const { caller } of examples.values()) counts.set(caller, (counts.get(caller) ?? 0) + 1)
  const most = Math.max(...counts.values())
  for (const example of examples.values()) if (counts.get(example.caller) === most) return example
  throw new Error('The agent has no training examples')
}
