/** The keys of `message.metadata` that Parley interprets. Messages are stored with their metadata unchanged. */

type Metadata = Record<string, unknown> | undefined

/** The skill that the message is for. */
export function skillIdIn(metadata: Metadata): unknown {
  return metadata?.['skill_id'] ?? metadata?.['skillId']
}

export function withSkillId(skillId: string) {
  return { skill_id: skillId }
}

/** The path of the skill ID in an error's list of issues. */
export const skillIdPath = 'message.metadata.skill_id'

/** The payment session that pays for the message. */
export function paymentSessionIdIn(metadata: Metadata): unknown {
  return metadata?.['payment_session_id'] ?? metadata?.['paymentSessionId']
}
