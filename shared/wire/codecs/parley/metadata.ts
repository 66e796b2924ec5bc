/** Keys of `message.metadata` that have a meaning here; messages are stored with the metadata as it was sent. */

type Metadata = Record<string, unknown> | undefined

/** The skill that the message is for. */
export function skillIdIn(metadata: Metadata): unknown {
  return metadata?.['skill_id'] ?? metadata?.['skillId']
}

export function withSkillId(skillId: string) {
  return { skill_id: skillId }
}

/** Path of the skill in the issues of an error. */
export const skillIdPath = 'message.metadata.skill_id'

/** The payment session that pays for the message. */
export function paymentSessionIdIn(metadata: Metadata): unknown {
  return metadata?.['payment_session_id'] ?? metadata?.['paymentSessionId']
}
