import { readFileSync } from 'node:fs'
import type { OfferedSkill } from '../../shared/negotiation/offer.ts'
import type { Weights } from '../../shared/negotiation/request.ts'

const folder = new URL('../../bench/data/routing/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')

/** See `bench/data/routing/README.md`. */
export const agents = JSON.parse(read('agents.json')) as { name: string; description: string }[]
export const texts = read('queries.jsonl')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { query: string; agent: string })

export const usualWeights: Weights = {
  skillMatch: 0.55,
  ioCompatibility: 0.2,
  performance: 0.15,
  load: 0.05,
  cost: 0.05,
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
