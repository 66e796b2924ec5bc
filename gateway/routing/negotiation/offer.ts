import type { Facts, Offer, OfferedSkill } from '@parley/negotiation/score/offer'
import { amount } from '@parley/negotiation/score/request'
import { cardSkillOf, type ListedSkill, skillFacts } from '@parley/wire/codecs/parley/skills'
import { z } from 'zod'
import { isUntried } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'

const modes = z.array(z.string()).min(1).catch(['text/plain'])
const price = z.object({ amount })

/** A registered agent's offer, which equals the offer that the agent itself negotiates with. */
export function offerOf(
  entry: Pick<AgentEntry, 'name' | 'description' | 'skills'> & Parameters<typeof factsOf>[0],
): Offer {
  const { name, description, skills, card } = entry
  const inputs = modes.parse(card['defaultInputModes'])
  const outputs = modes.parse(card['defaultOutputModes'])
  return {
    name,
    description,
    skills: skills.map((skill) => skillOf(skill, inputs, outputs)),
    ...factsOf(entry),
  }
}

/** The part of the offer that heartbeats change. */
export function factsOf(entry: Pick<AgentEntry, 'load' | 'measurements' | 'exampleProbe' | 'card'>): Facts {
  const { load, measurements, card } = entry
  const examples = examplesIn(entry)
  const cost = price.safeParse(card['executionCost']).data
  return {
    queueDepth: load.queueDepth ?? 0,
    ...(load.activeTasks !== undefined && { activeTasks: load.activeTasks }),
    ...((measurements !== undefined || examples !== undefined) && {
      measured: {
        samples: measurements?.samples ?? 0,
        ...(measurements !== undefined && { successShare: measurements.successShare }),
        ...(measurements?.latencyP50Ms !== undefined && { latencyMs: measurements.latencyP50Ms }),
        ...(examples !== undefined && { examples }),
      },
    }),
    ...(cost !== undefined && { price: { amount: cost.amount } }),
  }
}

/** The examples are no evidence about an agent that has completed other work. */
function examplesIn(entry: Pick<AgentEntry, 'exampleProbe' | 'measurements'>) {
  const { exampleProbe } = entry
  if (exampleProbe === undefined || !isUntried(entry)) return undefined
  const { completed, failed, timedOut } = exampleProbe
  const tried = completed + failed + timedOut
  return tried === 0 ? undefined : { completed, tried }
}

function skillOf(skill: ListedSkill, inputs: string[], outputs: string[]): OfferedSkill {
  const listed = cardSkillOf(skill)
  const { inputModes, outputModes } = listed
  return {
    ...listed,
    inputModes: inputModes.length === 0 ? inputs : inputModes,
    outputModes: outputModes.length === 0 ? outputs : outputModes,
    ...skillFacts(skill),
  }
}
