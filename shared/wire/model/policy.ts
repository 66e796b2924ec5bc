import type { Timestamp } from './timestamp.ts'

export const policyEffects = ['allow', 'deny'] as const
export type PolicyEffect = (typeof policyEffects)[number]

/** One rule of a policy. A deny rule takes precedence over every allow rule. */
export interface PolicyRule {
  effect: PolicyEffect
  /** The callers to which the rule applies (docs/spec/policy.md#callers). */
  callers: string[]
  /** Ids of the skills to which the rule applies. By default, it applies to the whole agent. */
  skills?: string[]
  /** A comment of the operator. */
  note?: string
}

/** Who may call an agent, and therefore who sees it. */
export interface AgentPolicy {
  rules: PolicyRule[]
  /** The decision for an authenticated caller to which no rule applies. Anonymous callers always need a rule. */
  default: PolicyEffect
}

/** A policy with its last change. */
export interface StoredPolicy extends AgentPolicy {
  changedAt: Timestamp
  /** Client id of the operator. */
  changedBy: string
}
