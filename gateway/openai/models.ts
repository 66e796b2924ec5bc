import { ParleyError } from '@parley/wire/errors'
import { cleanLine, cleanText } from '@parley/wire/model/clean-text'
import { millisOf } from '@parley/wire/model/timestamp'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { negotiatedModel } from './turn.ts'

const owner = 'parley'

/** Returns the agents that the caller may use, and the model with which the gateway chooses one of them. */
export function modelList(agents: AgentDirectory, startedAt: number) {
  const named = agents.admitted().filter(({ slug }) => slug !== negotiatedModel)
  return { object: 'list', data: [automatic(startedAt), ...named.map(modelOf)] }
}

/** @throws ParleyError NotFound */
export function findModel(agents: AgentDirectory, model: string, startedAt: number) {
  return model === negotiatedModel ? automatic(startedAt) : modelOf(requireModel(agents, model))
}

/** @throws ParleyError NotFound if the agent does not exist, or the caller may not use it */
export function requireModel(agents: AgentDirectory, model: string): AgentEntry {
  const entry = agents.bySlug(model)
  if (entry?.admitted === true) return entry
  throw new ParleyError('NotFound', {
    message: `The model ${JSON.stringify(cleanText(model).slice(0, 100))} does not exist, or you may not use it. GET /v1/models lists the models.`,
    data: { reason: 'agent', param: 'model' },
  })
}

function automatic(startedAt: number) {
  return {
    id: negotiatedModel,
    object: 'model',
    created: startedAt,
    owned_by: owner,
    name: 'auto',
    description: 'The gateway chooses the agent for each message.',
  }
}

/** Names and descriptions come from the agents. */
function modelOf({ slug, name, description, registeredAt }: AgentEntry) {
  return {
    id: slug,
    object: 'model',
    created: Math.floor(millisOf(registeredAt) / 1000),
    owned_by: owner,
    name: cleanLine(name, 100),
    description: cleanLine(description, 500),
  }
}
