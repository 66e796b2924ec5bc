import { readFileSync } from 'node:fs'
import type { Offer, OfferedSkill } from '../../shared/negotiation/offer.ts'
import type { NegotiationRequest, Weights } from '../../shared/negotiation/request.ts'

export interface Text {
  query: string
  /** Name of the agent that serves it. */
  agent: string
}

export interface Named {
  name: string
  description: string
}

const folder = new URL('../data/routing/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')

/** See `bench/data/routing/README.md`. */
export const agents = JSON.parse(read('agents.json')) as Named[]
export const texts = read('queries.jsonl')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Text)

export const wordsAlone: Weights = { skillMatch: 1, ioCompatibility: 0, performance: 0, load: 0, cost: 0 }
/** Design gaps, "Negotiation": where gateway and command line ask by themselves. */
export const usualWeights: Weights = {
  skillMatch: 0.55,
  ioCompatibility: 0.2,
  performance: 0.15,
  load: 0.05,
  cost: 0.05,
}

export const request = (taskSummary: string, weights = wordsAlone, minScore = 0): NegotiationRequest => ({
  taskSummary,
  weights,
  minScore,
})

/** An agent of one skill that says nothing beyond the agent's own line. */
export function offerOf({ name, description }: Named): Offer {
  return { name, description, skills: [skillOf(name)], queueDepth: 0 }
}

export function skillOf(name: string, description = ''): OfferedSkill {
  return {
    id: name.replace(/[^\w.-]/g, '-'),
    name,
    description,
    tags: [],
    inputModes: ['text/plain'],
    outputModes: ['text/plain'],
    examples: [],
    allowedTools: [],
    performance: {},
    assessment: { keywords: [], specializations: [], antiPatterns: [] },
  }
}

/** Numbers in 0..1 that are the same in every run (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export function shuffled<T>(all: readonly T[], next: () => number): T[] {
  return all
    .map((one) => ({ one, place: next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one)
}
