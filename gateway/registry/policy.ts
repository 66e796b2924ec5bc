import type { AgentPolicy, PolicyEffect, PolicyRule } from '@parley/wire/model/policy'

/** A party to which policies apply: a client, or an anonymous caller without a client id. */
export interface PolicyParty {
  /** Client id. Undefined for a caller without a token. */
  id?: string
  tags: readonly string[]
}

/** A caller as policies see it. */
export interface PolicyCaller extends PolicyParty {
  /** Operators (agent:admin) may see and call every agent. */
  operator?: boolean
  /** The agent that acts for the caller (RFC 8693 `act`). Both must be allowed. */
  delegate?: PolicyParty
}

export const anonymousCaller: PolicyCaller = Object.freeze({ tags: [] })

/** A decision and the rule that made it. */
export interface PolicyDecision {
  allowed: boolean
  /** For example `rule 2 (deny tag:contractor)` or `default deny`. */
  rule: string
}

/** What a caller may do at an agent: everything, only what these skills offer, or nothing. */
export type Access = { kind: 'all' } | { kind: 'some'; skills: ReadonlySet<string> } | { kind: 'none' }

interface CompiledRule {
  effect: PolicyEffect
  name: string
  skills: ReadonlySet<string> | undefined
  applies: (party: PolicyParty) => boolean
}

/** The rules that apply to one party. */
interface PartyRules {
  /** A deny rule for the whole agent. */
  denial: string | undefined
  /** An allow rule for the whole agent, or the default if it allows the party. */
  permission: string | undefined
  denials: readonly CompiledRule[]
  permissions: readonly CompiledRule[]
}

/** A policy in the form in which decisions are made. Rules are evaluated as in docs/spec/policy.md#evaluation. */
export class CompiledPolicy {
  readonly #rules: readonly CompiledRule[]
  readonly #default: PolicyEffect

  constructor({ rules, default: otherwise }: AgentPolicy) {
    this.#rules = rules.map(compiledRule)
    this.#default = otherwise
  }

  /**
   * Decides whether the caller may use the skill. Without a skill: whether the caller may call the agent at all, with
   * some or all of its skills.
   */
  decide(caller: PolicyCaller, skill?: string): PolicyDecision {
    if (caller.operator === true) return { allowed: true, rule: 'operator' }
    const decision = this.#decideFor(caller, skill)
    if (!decision.allowed || caller.delegate === undefined) return decision
    const ofDelegate = this.#decideFor(caller.delegate, skill)
    return ofDelegate.allowed ? decision : ofDelegate
  }

  /** Decides whether the caller may call an agent with these skills, and which rule decides it. */
  decideAccess(caller: PolicyCaller, skills: readonly { id: string }[]): PolicyDecision {
    const decision = this.decide(caller)
    if (!decision.allowed || this.access(caller, skills).kind !== 'none') return decision
    const [first] = skills
    return first === undefined ? { allowed: false, rule: 'default deny' } : this.decide(caller, first.id)
  }

  /** The caller's access to an agent with these skills. An agent without an allowed skill cannot be called. */
  access(caller: PolicyCaller, skills: readonly { id: string }[]): Access {
    return this.accessOf(caller)(skills)
  }

  /** Evaluates the rules for the caller once. The result returns the access to an agent with the given skills. */
  accessOf(caller: PolicyCaller): (skills: readonly { id: string }[]) => Access {
    if (caller.operator === true) return () => ({ kind: 'all' })
    const parties = [caller, ...(caller.delegate === undefined ? [] : [caller.delegate])].map((party) =>
      this.#rulesFor(party),
    )
    if (parties.some((party) => !skillDecision(party).allowed)) return () => ({ kind: 'none' })
    const isWhole = (party: PartyRules) => party.permission !== undefined && party.denials.length === 0
    if (parties.every(isWhole)) return () => ({ kind: 'all' })
    return (skills) => limitedAccess(parties, skills)
  }

  #decideFor(party: PolicyParty, skill: string | undefined): PolicyDecision {
    return skillDecision(this.#rulesFor(party), skill)
  }

  #rulesFor(party: PolicyParty): PartyRules {
    const rules = this.#rules.filter(({ applies }) => applies(party))
    const ofEffect = (effect: PolicyEffect) => rules.filter((rule) => rule.effect === effect)
    const [denials, permissions] = [ofEffect('deny'), ofEffect('allow')]
    const byDefault = this.#default === 'allow' && party.id !== undefined ? 'default allow' : undefined
    return {
      denial: denials.find(({ skills }) => skills === undefined)?.name,
      permission: permissions.find(({ skills }) => skills === undefined)?.name ?? byDefault,
      denials,
      permissions,
    }
  }
}

function limitedAccess(parties: readonly PartyRules[], skills: readonly { id: string }[]): Access {
  const allowed = skills.filter(({ id }) => parties.every((party) => skillDecision(party, id).allowed))
  if (allowed.length === 0) return { kind: 'none' }
  if (allowed.length === skills.length) return { kind: 'all' }
  return { kind: 'some', skills: new Set(allowed.map(({ id }) => id)) }
}

function skillDecision(
  { denial, permission, denials, permissions }: PartyRules,
  skill?: string,
): PolicyDecision {
  const denied = denial ?? (skill && denials.find(({ skills }) => skills?.has(skill))?.name)
  if (denied !== undefined && denied !== '') return { allowed: false, rule: denied }
  const ofSkill = permissions.find(({ skills }) => skill === undefined || skills?.has(skill) !== false)
  const allowed = permission ?? ofSkill?.name
  return allowed === undefined ? { allowed: false, rule: 'default deny' } : { allowed: true, rule: allowed }
}

function compiledRule(rule: PolicyRule, at: number): CompiledRule {
  const { effect, callers, skills } = rule
  const exact = new Set<string>()
  const tags: string[] = []
  const prefixes: string[] = []
  for (const caller of callers) {
    if (caller.startsWith('tag:')) tags.push(caller.slice('tag:'.length))
    else if (caller.startsWith('client:')) exact.add(caller.slice('client:'.length))
    else if (caller.startsWith('did:') && caller.endsWith(':*')) prefixes.push(caller.slice(0, -1))
    else if (caller.startsWith('did:')) exact.add(caller)
  }
  const everybody = callers.includes('*')
  const [anonymous, authenticated] = [callers.includes('anonymous'), callers.includes('authenticated')]
  return {
    effect,
    name: ruleName(rule, at + 1),
    skills: skills && new Set(skills),
    applies: ({ id, tags: own }) => {
      if (everybody) return true
      if (id === undefined) return anonymous
      if (authenticated || exact.has(id)) return true
      return tags.some((tag) => own.includes(tag)) || prefixes.some((prefix) => id.startsWith(prefix))
    },
  }
}

const nameMaxChars = 120

/** The name of a rule in the audit log and in errors. Rules are counted from 1. */
export function ruleName({ effect, callers, skills }: PolicyRule, number: number): string {
  const [first = '', ...others] = callers
  const more = others.length === 0 ? '' : ` and ${others.length} more`
  const which = skills === undefined ? '' : ` for ${skills.join(', ')}`
  const text = `${effect} ${first}${more}${which}`
  return `rule ${number} (${text.length > nameMaxChars ? `${text.slice(0, nameMaxChars)}…` : text})`
}
