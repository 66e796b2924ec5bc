import { trainingWords } from '@parley/negotiation/score/learning'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { texts } from '../../testing/routing-list.ts'
import type { VariedAgent } from './varied-agents.ts'

/** Enough contexts and callers to raise the score of an agent. */
const perAgent = 6
const callers = 3

const ofAgent = Map.groupBy(texts, ({ agent }) => agent)
const features = new Map<string, Record<string, number>>()

/** Examples for an agent from texts that the agent in `tools/bench/data/routing` with the same text serves. */
export function examplesFor(id: string, { name }: VariedAgent, at: number): TrainingExample[] {
  const [, original = name, number = '0'] = /^(.*) (\d+)$/.exec(name) ?? []
  const done = ofAgent.get(original) ?? texts
  return Array.from({ length: Math.min(perAgent, done.length) }, (_, place) => ({
    agent: id,
    context: `${id} ${place}`,
    caller: `caller ${place % callers}`,
    at,
    outcome: 1,
    rated: true,
    words: wordsOf(done[(Number(number) + place) % done.length]?.query ?? ''),
  }))
}

function wordsOf(text: string): Record<string, number> {
  const known = features.get(text) ?? trainingWords(text)
  features.set(text, known)
  return known
}
