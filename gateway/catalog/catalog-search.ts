import { cleanLine } from '@parley/wire/model/clean-text'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import type { Negotiator } from '../routing/negotiation/negotiator.ts'
import type { CatalogEntries, ListedEntry } from './catalog-entry.ts'
import type { CatalogSources } from './catalog-sources.ts'

/** An entry that matches a text, with its relevance from 1 to 100 and why it matches. */
export interface FoundEntry {
  listed: ListedEntry
  score: number
  reasons: string
}

export interface CatalogSearchOptions {
  entries: CatalogEntries
  catalogs: CatalogSources
  negotiator: Pick<Negotiator, 'match'>
}

const reasonsMaxChars = 300

export class CatalogSearch {
  readonly #options: CatalogSearchOptions

  constructor(options: CatalogSearchOptions) {
    this.#options = options
  }

  /**
   * Returns the entries of the agents with skills that match the text, and those of other publishers that match it, best first. The score
   * is the skill match of a negotiation in percent, so that it says how much of the request the agent covers, not how it compares with
   * the others. Entries below 1 % are left out.
   */
  async find(text: string, agents: AgentDirectory): Promise<FoundEntry[]> {
    const { entries, catalogs, negotiator } = this.#options
    const ranked = await negotiator.match(text, agents)
    const ofAgents = ranked.flatMap(({ id, subscores, reasons }) => {
      const agent = agents.find(id)
      if (agent?.admitted !== true) return []
      return entries.ofAgent(agent).map((listed) => foundOf(listed, subscores.skillMatch, reasons))
    })
    const ofOthers = catalogs.find(text).map(({ listed, match, reasons }) => foundOf(listed, match, reasons))
    return [...ofAgents, ...ofOthers]
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => compareFound(positionOf(a), positionOf(b)))
  }
}

function foundOf(listed: ListedEntry, match: number, reasons: readonly string[]): FoundEntry {
  const why = reasons.filter((reason) => reason.startsWith('skill ')).join('; ')
  return { listed, score: Math.round(100 * match), reasons: cleanLine(why, reasonsMaxChars) }
}

/** The place of an entry in the results. */
export type FoundPosition = [score: number, identifier: string]

export const positionOf = ({ score, listed }: FoundEntry): FoundPosition => [score, listed.entry.identifier]

/** Orders by score, then by identifier. */
export function compareFound([score, name]: FoundPosition, [otherScore, otherName]: FoundPosition): number {
  if (score !== otherScore) return otherScore - score
  return name === otherName ? 0 : name < otherName ? -1 : 1
}
