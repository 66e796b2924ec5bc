import type { ReadNegotiation } from '@parley/wire/codecs/parley/negotiation'
import { type Io, print } from './io.ts'
import { oneLine, slugMax } from './printable.ts'
import { numberOf, table } from './ranking-view.ts'

/** Prints the agent of each part of a request with several needs. */
export function printNeeds(io: Io, { needs = [] }: ReadNegotiation): void {
  if (needs.length === 0) return
  const lines = needs.map(({ text, agent, score }) => [
    agent === undefined || agent === null ? 'none' : oneLine(agent, slugMax),
    numberOf(score).toFixed(4),
    oneLine(text ?? '', 80),
  ])
  print(io, `\n${table([['FOR PART', 'SCORE', 'TEXT'], ...lines])}`)
}
