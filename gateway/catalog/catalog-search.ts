import type { RankedAgent } from '@parley/negotiation/index/agent-index'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import type { Negotiator } from '../routing/negotiation/negotiator.ts'
import type { AgentCatalogEntry, CatalogEntries } from './catalog-entry.ts'
import { plainLine } from './plain-text.ts'

/** An entry that matches a text, with its relevance from 1 to 100 and why it matches. */
export interface FoundEntry {
  listed: AgentCatalogEntry
  score: number
  reasons: string
}

const reasonsMaxChars = 300

export class CatalogSearch {
  readonly #entries: CatalogEntries
  readonly #negotiator: Pick<Negotiator, 'match'>

  constructor(entries: CatalogEntries, negotiator: Pick<Negotiator, 'match'>) {
    this.#entries = entries
    this.#negotiator = negotiator
  }

  /**
   * Returns the entries of the agents whose skills match the text, best first. The score is the skill match of a negotiation in
   * percent, so that it says how much of the request the agent covers, not how it compares with the others. Entries below 1 % are
   * left out.
   */
  async find(text: string, agents: AgentDirectory): Promise<FoundEntry[]> {
    const ranked = await this.#negotiator.match(text, agents)
    return ranked
      .flatMap(({ id, subscores, reasons }: RankedAgent) => {
        const agent = agents.find(id)
        const score = Math.round(100 * subscores.skillMatch)
        if (agent?.admitted !== true || score === 0) return []
        const why = plainLine(
          reasons.filter((reason) => reason.startsWith('skill ')).join('; '),
          reasonsMaxChars,
        )
        return this.#entries.ofAgent(agent).map((listed) => ({ listed, score, reasons: why }))
      })
      .toSorted((a, b) => compareFound(positionOf(a), positionOf(b)))
  }
}

/** The place of an entry in the results. */
export type FoundPosition = [score: number, identifier: string]

export const positionOf = ({ score, listed }: FoundEntry): FoundPosition => [score, listed.entry.identifier]

/** Orders by score, then by identifier. */
export function compareFound([score, name]: FoundPosition, [otherScore, otherName]: FoundPosition): number {
  if (score !== otherScore) return otherScore - score
  return name === otherName ? 0 : name < otherName ? -1 : 1
}
