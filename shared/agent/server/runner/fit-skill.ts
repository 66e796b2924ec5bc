import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import type { Message } from '@parley/wire/model/task'
import type { Agent, Skill } from '../../author/agent.ts'
import { dataOf } from '../../author/build-context.ts'

type Said = Pick<Message, 'parts' | 'metadata'>

/** The skill that runs, and the data for it, as its schema has read it. */
export interface Fitting {
  skill: Skill | undefined
  input: unknown
}

/** Which skill the caller's messages are for, and whether their data fits it; `reason` where not. */
export async function fitSkill(agent: Agent, said: readonly Said[]): Promise<Fitting | { reason: string }> {
  // An answer to our question need not repeat the data, or the skill, of the first message.
  const named = skillNamed(said)
  const skill = named === undefined ? onlySkill(agent) : agent.skills.find(({ id }) => id === named)
  if (named !== undefined && skill === undefined)
    return {
      reason: `This agent has no skill of that id; it has ${agent.skills.map(({ id }) => id).join(', ')}.`,
    }
  const parsed = await skill?.input?.safeParseAsync(dataOf(said.flatMap(({ parts }) => parts)))
  if (skill === undefined || parsed === undefined) return { skill, input: undefined }
  if (parsed.success) return { skill, input: parsed.data }
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'data'}: ${message}`)
  return { reason: `The message does not fit the skill ${skill.id}: ${faults.slice(0, 20).join('; ')}` }
}

/** The skill that the caller named last. */
function skillNamed(said: readonly Said[]): string | undefined {
  const names = said.map(({ metadata }) => skillIdIn(metadata))
  return names.findLast((name) => typeof name === 'string')
}

const onlySkill = ({ skills }: Agent): Skill | undefined => (skills.length === 1 ? skills[0] : undefined)
