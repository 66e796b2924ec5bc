import { toolOf } from '@parley/wire/codecs/parley/skills'
import { modesMatch } from '@parley/wire/model/mime'
import type { AgentEntry } from '../../registry/entry.ts'
import { offerOf } from '../negotiation/offer.ts'

/** Maximum number of examples that are sent to one agent. */
const examplesMax = 3
const exampleMaxChars = 1000

/**
 * Returns the texts that an agent is probed with: the first usable example of each skill that accepts plain text. Skills of
 * MCP tools that change or delete data are left out.
 */
export function exampleTexts(entry: AgentEntry): string[] {
  const destructive = new Set(
    entry.skills.filter((skill) => toolOf(skill).tool?.isDestructive === true).map(({ id }) => id),
  )
  const texts: string[] = []
  for (const { id, examples, inputModes } of offerOf(entry).skills) {
    if (texts.length === examplesMax) break
    if (destructive.has(id) || !inputModes.some((mode) => modesMatch(mode, 'text/plain'))) continue
    const text = examples.find((example) => example.trim() !== '' && example.length <= exampleMaxChars)
    if (text !== undefined && !texts.includes(text)) texts.push(text)
  }
  return texts
}
