import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import { agentLoadOf } from '../overview/agent-load.ts'
import type { Calls } from '../overview/overview.ts'
import type { LiveEvent } from './event-ring.ts'

const loadsMax = 200

/** Collects the agents that the registry changes while streams are open. */
export class ChangedAgents {
  readonly #standings = new Map<string, string>()
  readonly #changed = new Map<string, AgentEntry>()
  readonly #loads = new Map<string, AgentEntry>()
  #isOpen = false
  #hasLeft = false

  constructor(registry: Pick<Registry, 'follow'>) {
    registry.follow((id, entry) => {
      if (this.#isOpen) this.#note(id, entry)
    })
  }

  open(entries: readonly AgentEntry[]): void {
    this.#isOpen = true
    for (const entry of entries) this.#standings.set(entry.id, standingOf(entry))
  }

  close(): void {
    this.#isOpen = false
    this.#hasLeft = false
    for (const map of [this.#standings, this.#changed, this.#loads]) map.clear()
  }

  /** The agents with another status or admission since the last call, and whether an agent has left. */
  take(): { events: LiveEvent[]; hasLeft: boolean } {
    const events = [...this.#changed.values()].map(
      (entry): LiveEvent => ({ type: 'agent', data: () => agentLoadOf(entry) }),
    )
    const hasLeft = this.#hasLeft
    this.#changed.clear()
    this.#hasLeft = false
    return { events, hasLeft }
  }

  /** The agents with another load since the last call, with the calls of the last minutes. */
  takeLoads(calls: Calls): LiveEvent {
    const agents = [...this.#loads.values()].slice(0, loadsMax).map(agentLoadOf)
    this.#loads.clear()
    return { type: 'load', data: () => ({ agents, ...calls }) }
  }

  #note(id: string, entry: AgentEntry | undefined): void {
    if (entry === undefined) {
      this.#standings.delete(id)
      this.#hasLeft = true
      return
    }
    if (this.#loads.size < 2 * loadsMax) this.#loads.set(id, entry)
    const standing = standingOf(entry)
    if (this.#standings.get(id) === standing) return
    this.#standings.set(id, standing)
    if (this.#changed.size < loadsMax) this.#changed.set(id, entry)
    else this.#hasLeft = true
  }
}

const standingOf = ({ slug, status, admitted, quarantine }: AgentEntry) =>
  `${slug} ${status} ${admitted} ${quarantine?.since ?? ''}`
