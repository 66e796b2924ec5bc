import { z } from 'zod'
import { type AgentPolicy, policyEffects, type StoredPolicy } from '../../model/policy.ts'

export const policyRulesMax = 100
export const ruleCallersMax = 100
const ruleSkillsMax = 100
const callerMaxChars = 300

/** The words for groups of callers. */
export const callerGroups = ['*', 'anonymous', 'authenticated'] as const

/** Matches a tag of a client. */
export const tagForm = /^[a-z0-9][a-z0-9._-]{0,63}$/

/** Returns what is wrong with a caller of a rule, or undefined if it is valid (docs/spec/policy.md#callers). */
export function callerFault(caller: string): string | undefined {
  if (callerGroups.some((group) => group === caller)) return undefined
  if (caller.length > callerMaxChars || /[\p{C}\s]/u.test(caller))
    return `must have at most ${callerMaxChars} characters, without spaces and control characters`
  if (caller.startsWith('tag:'))
    return tagForm.test(caller.slice(4))
      ? undefined
      : 'a tag has 1 to 64 lower-case letters, digits, ".", "_" or "-"'
  if (caller.startsWith('client:')) return caller.length > 7 ? undefined : 'the client id is missing'
  if (!caller.startsWith('did:'))
    return 'must be *, anonymous, authenticated, client:<id>, tag:<tag>, a DID, or did:web:<host>:*'
  if (!caller.includes('*'))
    return /^did:[a-z0-9]+:\S+$/.test(caller) ? undefined : 'is not a well-formed DID'
  // The name parts of a did:parley are chosen by its holder, so a prefix of one proves nothing.
  return /^did:web:[^*:]+(:[^*:]+)*:\*$/.test(caller)
    ? undefined
    : 'only a did:web may end in ":*", because the holder chooses the names in other DIDs'
}

const caller = z.string().superRefine((text, context) => {
  const message = callerFault(text)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})
const skillId = z.string().min(1).max(128)

const rule = z.strictObject({
  effect: z.enum(policyEffects),
  callers: z.array(caller).min(1).max(ruleCallersMax),
  skills: z.array(skillId).min(1).max(ruleSkillsMax).optional(),
  note: z
    .string()
    .max(500)
    .regex(/^\P{C}*$/u, 'must not contain control characters')
    .optional(),
})

/**
 * The body of `PUT /registry/agents/{id}/policy`. Unknown fields are errors, because a misspelled `skills` would widen
 * a rule to the whole agent.
 */
export const policyIn = z.strictObject({
  rules: z.array(rule).max(policyRulesMax),
  default: z.enum(policyEffects).default('deny'),
})

/** Converts the output of `policyIn`, in which optional fields may be undefined. */
export function policyOf({ rules, default: otherwise }: z.output<typeof policyIn>): AgentPolicy {
  return {
    rules: rules.map(({ effect, callers, skills, note }) => ({
      effect,
      callers,
      ...(skills !== undefined && { skills }),
      ...(note !== undefined && { note }),
    })),
    default: otherwise,
  }
}

/** Writes the answer to `GET /registry/agents/{id}/policy`. `policy` is null if every caller may call the agent. */
export function policyOut(agent: string, policy: StoredPolicy | undefined) {
  return {
    agent,
    policy: policy === undefined ? null : { rules: policy.rules, default: policy.default },
    modified_at: policy?.changedAt ?? null,
    modified_by: policy?.changedBy ?? null,
  }
}

/** The answer to `GET`, `PUT` and `DELETE /registry/agents/{id}/policy`. */
export const policyAnswer = z.object({
  agent: z.string(),
  policy: z
    .object({
      rules: z.array(
        z.object({
          effect: z.enum(policyEffects),
          callers: z.array(z.string()),
          skills: z.array(z.string()).optional(),
          note: z.string().optional(),
        }),
      ),
      default: z.enum(policyEffects),
    })
    .nullable(),
  modified_at: z.iso.datetime({ offset: true }).nullable(),
  modified_by: z.string().nullable(),
})

/** The answer to `GET /registry/agents/{id}/policy/check`. */
export const policyCheckAnswer = z.object({
  agent: z.string(),
  allowed: z.boolean(),
  rule: z.string(),
  skills: z.array(z.string()).nullable(),
})

const answer = z.object({ agent: z.string().catch(''), policy: policyIn.nullable() })

/** Reads that answer, for clients. Returns undefined for anything else. */
export function readPolicyAnswer(
  json: unknown,
): { agent: string; policy: AgentPolicy | undefined } | undefined {
  const parsed = answer.safeParse(json).data
  if (parsed === undefined) return undefined
  return { agent: parsed.agent, policy: parsed.policy === null ? undefined : policyOf(parsed.policy) }
}

/** The query of `GET /registry/agents/{id}/policy/check`. */
export const policyCheckIn = z.object({
  caller,
  delegate: caller.optional(),
  skill: skillId.optional(),
})

/** Writes the answer to it. `skills` is null if the caller may use all of them. */
export function policyCheckOut(
  agent: string,
  decision: { allowed: boolean; rule: string },
  skills: readonly string[] | undefined,
) {
  return { agent, allowed: decision.allowed, rule: decision.rule, skills: skills ?? null }
}

const checked = z.object({
  allowed: z.boolean(),
  rule: z.string(),
  skills: z.array(z.string()).nullish(),
})

/** Reads that answer, for clients. Anything else counts as a refusal. */
export function readPolicyCheck(json: unknown): { allowed: boolean; rule: string; skills?: string[] } {
  const { allowed = false, rule = 'unreadable answer', skills } = checked.safeParse(json).data ?? {}
  return { allowed, rule, ...(skills && { skills }) }
}
