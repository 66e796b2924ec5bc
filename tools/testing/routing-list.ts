import { readFileSync } from 'node:fs'
import type { OfferedSkill } from '@parley/negotiation/score/offer'

const folder = new URL('../bench/data/routing/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')

/** A text and the name of the agent that serves it. */
export interface Text {
  query: string
  agent: string
}

/** The texts and agents that `tools/bench/data/routing/README.md` describes. */
export const agents = JSON.parse(read('agents.json')) as { name: string; description: string }[]
export const texts = read('queries.jsonl')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Text)

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

/** Numbers from 0 to 1 that are the same in every run (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
