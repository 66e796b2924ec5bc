import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import type { JsonObject, Part } from '@parley/wire/model/task'
import type { Agent, Skill } from '../../author/agent.ts'
import { dataOf } from '../../author/build-context.ts'

/** The fields of a message that select a skill and carry its input. */
export interface SkillMessage {
  parts: Part[]
  metadata?: JsonObject | undefined
}

/** The skill that runs, and its input as parsed by its schema. */
export interface SkillMatch {
  skill: Skill | undefined
  input: unknown
}

/** Returns the skill that the caller's messages select and its input, or a `reason` if either is missing or invalid. */
export async function fitSkill(
  agent: Agent,
  messages: readonly SkillMessage[],
): Promise<SkillMatch | { reason: string }> {
  // A later message need not repeat the data or the skill of the first message.
  const named = skillNamed(messages)
  const skill = named === undefined ? onlySkill(agent) : agent.skills.find(({ id }) => id === named)
  if (named !== undefined && skill === undefined)
    return {
      reason: `This agent has no skill with that ID. Its skills are ${agent.skills.map(({ id }) => id).join(', ')}.`,
    }
  const parsed = await skill?.input?.safeParseAsync(dataOf(messages.flatMap(({ parts }) => parts)))
  if (skill === undefined || parsed === undefined) return { skill, input: undefined }
  if (parsed.success) return { skill, input: parsed.data }
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'data'}: ${message}`)
  return { reason: `The message does not match the skill ${skill.id}: ${faults.slice(0, 20).join('; ')}` }
}

/** Returns the skill that the caller named last. */
function skillNamed(messages: readonly SkillMessage[]): string | undefined {
  const names = messages.map(({ metadata }) => skillIdIn(metadata))
  return names.findLast((name) => typeof name === 'string')
}

const onlySkill = ({ skills }: Agent): Skill | undefined => (skills.length === 1 ? skills[0] : undefined)
