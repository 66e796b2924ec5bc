import type { AgentEntry } from './entry.ts'
import { type Access, CompiledPolicy, type PolicyCaller, type PolicyParty } from './policy.ts'

/** The registered agents, or those of them that one caller may see. */
export interface AgentDirectory {
  /** Finds an entry by slug, DID or id. */
  find(name: string): AgentEntry | undefined
  bySlug(slug: string): AgentEntry | undefined
  /** Returns all agents ordered by slug. */
  all(): readonly AgentEntry[]
  /** Returns the agents that may receive work. */
  admitted(): readonly AgentEntry[]
  /** Returns unregistered agents whose entries are kept. */
  left(): readonly AgentEntry[]
  /** The agents that the caller may not see or may see in part. Undefined for a caller who may call every agent. */
  readonly restrictions?: Restrictions | undefined
  /**
   * Changes when an agent is added, removed, admitted or blocked, or changes its slug, name or skills, and when the caller
   * may see more or less. Heartbeats and health do not change it.
   */
  readonly revision: string
}

/** What a caller may not see. The sets change when the registry does; `version` then grows. */
export interface Restrictions {
  /** Ids of the entries that the caller may not see. */
  readonly hidden: ReadonlySet<string>
  /** Ids of the skills that the caller may use, by entry id, of agents of which it may use only some skills. */
  readonly limited: ReadonlyMap<string, ReadonlySet<string>>
  readonly version: number
}

/** Views kept for callers that were active recently. Each holds the ids of the entries that its caller may not see. */
const viewsMax = 256

/** The compiled policies of all entries, and what each caller sees of the registry. */
export class AgentPolicies {
  readonly #of = new Map<string, { entry: AgentEntry; compiled: CompiledPolicy }>()
  readonly #compiled = new WeakMap<object, CompiledPolicy>()
  readonly #byText = new Map<string, CompiledPolicy>()
  /** The most recently used view is the last one. */
  readonly #views = new Map<string, View>()
  /** Called with the id of an entry after its policy has changed. */
  changed: (id: string) => void = () => {}

  /** Number of entries with a policy. */
  get size(): number {
    return this.#of.size
  }

  /** Called with every changed entry, or with undefined if the entry was removed. */
  note(id: string, entry: AgentEntry | undefined): void {
    const before = this.#of.get(id)
    if (entry?.policy === undefined) {
      if (before === undefined) return
      this.#of.delete(id)
      for (const view of this.#views.values()) view.restrict(id, { kind: 'all' }, [])
      // A removed entry keeps its policy until the entry is gone, and with it everything that refers to it.
      this.changed(id)
      return
    }
    const compiled = this.#compiledOf(entry.policy)
    this.#of.set(id, { entry, compiled })
    // Heartbeats replace the entry but not its policy or skills.
    if (before?.compiled === compiled && before.entry.skills === entry.skills) return
    for (const view of this.#views.values())
      view.restrict(id, compiled.access(view.caller, entry.skills), entry.skills)
    if (before?.compiled !== compiled) this.changed(id)
  }

  /** Finds an agent with a policy by an address of its own. */
  at(url: string): AgentEntry | undefined {
    for (const { entry } of this.#of.values()) {
      const urls = [entry.url, ...(entry.replicas ?? []).map((replica) => replica.url)]
      if (entry.left === undefined && urls.includes(url)) return entry
    }
    return undefined
  }

  of(entry: Pick<AgentEntry, 'id' | 'policy'>): CompiledPolicy | undefined {
    return entry.policy && this.#compiledOf(entry.policy)
  }

  /** Returns what the caller may do at the agent. */
  access(caller: PolicyCaller, entry: AgentEntry): Access {
    return this.of(entry)?.access(caller, entry.skills) ?? { kind: 'all' }
  }

  /** Returns what the caller sees of the registry. */
  view(caller: PolicyCaller, registry: AgentDirectory): AgentDirectory {
    if (caller.operator === true || this.#of.size === 0) return registry
    const key = keyOf(caller)
    let view = this.#views.get(key)
    if (view === undefined) {
      view = new View(caller, registry)
      // Agents with equal policies share the evaluation of the rules.
      const accesses = new Map<CompiledPolicy, ReturnType<CompiledPolicy['accessOf']>>()
      for (const [id, { entry, compiled }] of this.#of) {
        const accessOf = accesses.get(compiled) ?? compiled.accessOf(caller)
        accesses.set(compiled, accessOf)
        view.restrict(id, accessOf(entry.skills), entry.skills)
      }
      const oldest = this.#views.keys().next().value
      if (this.#views.size >= viewsMax && oldest !== undefined) this.#views.delete(oldest)
    } else this.#views.delete(key)
    this.#views.set(key, view)
    return view
  }

  /** Equal policies share a compiled one. An unchanged policy keeps its identity when its entry is replaced. */
  #compiledOf(policy: NonNullable<AgentEntry['policy']>): CompiledPolicy {
    const known = this.#compiled.get(policy)
    if (known !== undefined) return known
    const { rules, default: otherwise } = policy
    const text = JSON.stringify([otherwise, rules])
    const compiled = this.#byText.get(text) ?? new CompiledPolicy(policy)
    if (this.#byText.size > 2 * this.#of.size + 100) this.#byText.clear()
    this.#byText.set(text, compiled)
    this.#compiled.set(policy, compiled)
    return compiled
  }
}

const keyOf = ({ id, tags, delegate }: PolicyCaller): string =>
  JSON.stringify([partyKey({ ...(id !== undefined && { id }), tags }), delegate && partyKey(delegate)])
const partyKey = ({ id, tags }: PolicyParty) => [id ?? null, tags.toSorted()]

class View implements AgentDirectory, Restrictions {
  readonly caller: PolicyCaller
  readonly #registry: AgentDirectory
  readonly hidden = new Set<string>()
  readonly limited = new Map<string, ReadonlySet<string>>()
  version = 0
  /** The visible part of a card and its skills, by the complete list of skills. Caches depend on their identity. */
  #parts = new WeakMap<AgentEntry['skills'], Pick<AgentEntry, 'card' | 'skills'>>()
  /** The visible part of an entry. Caches depend on its identity, too. */
  #entries = new WeakMap<AgentEntry, AgentEntry>()

  constructor(caller: PolicyCaller, registry: AgentDirectory) {
    this.caller = caller
    this.#registry = registry
  }

  get restrictions(): Restrictions | undefined {
    return this.hidden.size === 0 && this.limited.size === 0 ? undefined : this
  }

  get revision(): string {
    return `${this.#registry.revision} ${this.version}`
  }

  restrict(id: string, access: Access, skills: AgentEntry['skills']): void {
    this.version += 1
    if (this.limited.delete(id) || access.kind === 'some') {
      this.#parts.delete(skills)
      this.#entries = new WeakMap()
    }
    if (access.kind === 'none') this.hidden.add(id)
    else this.hidden.delete(id)
    if (access.kind === 'some') this.limited.set(id, access.skills)
  }

  find(name: string): AgentEntry | undefined {
    return this.#visible(this.#registry.find(name))
  }

  bySlug(slug: string): AgentEntry | undefined {
    return this.#visible(this.#registry.bySlug(slug))
  }

  all(): readonly AgentEntry[] {
    return this.#of(this.#registry.all())
  }

  admitted(): readonly AgentEntry[] {
    return this.#of(this.#registry.admitted())
  }

  left(): readonly AgentEntry[] {
    return this.#of(this.#registry.left())
  }

  #of(entries: readonly AgentEntry[]): readonly AgentEntry[] {
    return this.restrictions === undefined ? entries : entries.flatMap((entry) => this.#visible(entry) ?? [])
  }

  #visible(entry: AgentEntry | undefined): AgentEntry | undefined {
    if (entry === undefined || this.hidden.has(entry.id)) return undefined
    const allowed = this.limited.get(entry.id)
    if (allowed === undefined) return entry
    let visible = this.#entries.get(entry)
    if (visible === undefined) {
      visible = { ...entry, ...this.#partOf(entry, allowed) }
      this.#entries.set(entry, visible)
    }
    return visible
  }

  #partOf({ card, skills }: AgentEntry, allowed: ReadonlySet<string>) {
    let part = this.#parts.get(skills)
    if (part === undefined) {
      part = { skills: skills.filter(({ id }) => allowed.has(id)), card: limitedCard(card, allowed) }
      this.#parts.set(skills, part)
    }
    return part
  }
}

/** Removes skills from a card. A skill that the card does not identify is removed, too. */
function limitedCard(card: AgentEntry['card'], allowed: ReadonlySet<string>): AgentEntry['card'] {
  const { skills } = card
  if (!Array.isArray(skills)) return card
  const isAllowed = (skill: unknown) => {
    if (typeof skill !== 'object' || skill === null || !('id' in skill)) return false
    return typeof skill.id === 'string' && allowed.has(skill.id)
  }
  return { ...card, skills: skills.filter(isAllowed) }
}
