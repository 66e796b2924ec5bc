import type { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import { exclusionOf } from './availability.ts'
import type { Meaning } from './meaning.ts'
import { factsOf, offerOf } from './offer.ts'

/** Applies every registry change to the index. A heartbeat updates facts without rereading the texts. */
export function followRegistry(
  registry: Pick<Registry, 'follow'>,
  index: AgentIndex,
  meaning?: Pick<Meaning, 'note' | 'remove'>,
): void {
  const known = new Map<string, AgentEntry>()
  registry.follow((id, entry) => {
    const before = known.get(id)
    if (entry === undefined) {
      known.delete(id)
      meaning?.remove(id)
      return index.remove(id)
    }
    known.set(id, entry)
    if (before === undefined || saysOther(before, entry)) {
      const offer = offerOf(entry)
      index.put(id, entry.slug, offer)
      meaning?.note(id, offer)
    } else if (
      before.load !== entry.load ||
      before.measurements !== entry.measurements ||
      before.exampleProbe !== entry.exampleProbe
    )
      index.setFacts(id, factsOf(entry))
    const excluded = exclusionOf(entry)
    if (excluded === undefined) index.include(id)
    else index.exclude(id, excluded.rule, excluded.temporary)
  })
}

/** Why an agent is not a candidate for any task; undefined if it may be one. */
export const exclusion = (entry: AgentEntry): string | undefined => exclusionOf(entry)?.rule

function saysOther(before: AgentEntry, now: AgentEntry): boolean {
  return (
    before.skills !== now.skills ||
    before.card !== now.card ||
    before.slug !== now.slug ||
    before.name !== now.name ||
    before.description !== now.description
  )
}
