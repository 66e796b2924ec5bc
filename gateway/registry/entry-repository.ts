import { setTimeout as pause } from 'node:timers/promises'
import { unavailable } from '@parley/kit/database/errors'
import type { AgentEntry } from './entry.ts'
import { EntryIndex } from './entry-index.ts'
import { EntryChanged, type RegistryStore, type Signs, type StoredEntry } from './store.ts'

/** Gateways that change the same entry at once each get their turn well before. */
const attemptsMax = 20

/** What only memory knows of an entry's signs. */
interface Unsaved {
  heard: Set<string>
  gone: Set<string>
}

/**
 * The entries in memory and in the store. A change that must not be lost is computed from what is in memory and written
 * against the revision that memory has: where another gateway was quicker, what it wrote is read, and the change computed
 * again. Signs of life are written later, and may be lost.
 */
export class EntryRepository {
  readonly index: EntryIndex
  readonly #store: RegistryStore
  readonly #revisions = new Map<string, number>()
  readonly #unsaved = new Map<string, Unsaved>()
  /** Changes one after another: two that want the same slug must not both find it free. */
  #turn: Promise<unknown> = Promise.resolve()
  /** Told after each durable change that was made here. */
  written: () => void = () => {}

  constructor(store: RegistryStore, stored: readonly StoredEntry[]) {
    this.#store = store
    this.index = new EntryIndex(stored.map(({ entry }) => entry))
    for (const { entry, revision } of stored) this.#revisions.set(entry.id, revision)
  }

  /** One step after the other; one that met a change of another gateway is done again from the start. */
  serialize<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(() => this.#untilDone(step))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  async #untilDone<T>(step: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await step()
      } catch (error) {
        if (!(error instanceof EntryChanged)) throw error
        if (attempt === attemptsMax) throw unavailable('The registry is changed by too many at once', error)
        // Those that met do not meet again.
        if (attempt > 1) await pause(Math.min(2 ** attempt, 100) * Math.random())
        await this.#takeIn(attempt > 1)
      }
    }
  }

  /** Durable before the promise resolves. */
  async save(entry: AgentEntry): Promise<AgentEntry> {
    this.#revisions.set(entry.id, await this.#store.replace(entry, this.#revisions.get(entry.id) ?? 0))
    this.index.set(entry)
    this.#unsaved.delete(entry.id)
    this.written()
    return entry
  }

  /** As `save`, of what is no sign of life: the signs that came while it was written stay. */
  async amend(entry: AgentEntry): Promise<AgentEntry> {
    const before = this.index.byId(entry.id)
    this.#revisions.set(entry.id, await this.#store.replace(entry, this.#revisions.get(entry.id) ?? 0))
    const now = this.index.byId(entry.id)
    const isQuiet = now === undefined || now === before
    const whole = isQuiet ? entry : withSignsOf(entry, now)
    this.index.set(whole)
    if (isQuiet) this.#unsaved.delete(entry.id)
    this.written()
    return whole
  }

  async add(entry: AgentEntry): Promise<AgentEntry> {
    this.#revisions.set(entry.id, await this.#store.add(entry))
    this.index.set(entry)
    this.written()
    return entry
  }

  async forget(id: string): Promise<void> {
    await this.#store.remove(id, this.#revisions.get(id) ?? 0)
    this.#drop(id)
    this.written()
  }

  /** In memory; written with `flush`. */
  sign(
    entry: AgentEntry,
    { heard, gone = [] }: { heard?: string; gone?: readonly string[] } = {},
  ): AgentEntry {
    this.index.set(entry)
    const unsaved = this.#unsaved.get(entry.id) ?? { heard: new Set(), gone: new Set() }
    if (heard !== undefined) unsaved.heard.add(heard)
    for (const id of gone) unsaved.gone.add(id)
    this.#unsaved.set(entry.id, unsaved)
    return entry
  }

  /** Writes what only memory knows. */
  flush(): Promise<void> {
    return this.serialize(() => this.#flush())
  }

  /** Writes what only memory knows, and takes in what other gateways wrote. */
  sync(thorough: boolean): Promise<void> {
    return this.serialize(async () => {
      await this.#flush()
      await this.#takeIn(thorough)
    })
  }

  async #flush(): Promise<void> {
    const unsaved = new Map(this.#unsaved)
    this.#unsaved.clear()
    const signs = [...unsaved].flatMap(([id, { heard, gone }]): Signs[] => {
      const entry = this.index.byId(id)
      return entry === undefined ? [] : [{ entry, heard: [...heard], gone: [...gone] }]
    })
    if (signs.length === 0) return
    try {
      await this.#store.saveSigns(signs)
    } catch (error) {
      for (const [id, { heard, gone }] of unsaved) {
        const now = this.#unsaved.get(id) ?? { heard: new Set(), gone: new Set() }
        this.#unsaved.set(id, {
          heard: new Set([...heard, ...now.heard]),
          gone: new Set([...gone, ...now.gone]),
        })
      }
      throw error
    }
  }

  async #takeIn(thorough: boolean): Promise<void> {
    const { changed, removed } = await this.#store.changes(thorough)
    for (const id of removed) this.#drop(id)
    for (const stored of changed) {
      const mine = this.index.byId(stored.entry.id)
      const sameFacts = mine !== undefined && this.#revisions.get(mine.id) === stored.revision
      this.#revisions.set(stored.entry.id, stored.revision)
      // What was heard here since is newer than what is there.
      const isHeard = mine !== undefined && this.#unsaved.has(mine.id)
      if (isHeard && sameFacts) continue
      const entry = mine === undefined ? stored.entry : merged(mine, stored.entry, sameFacts)
      this.index.set(isHeard && mine.leaseUntil > entry.leaseUntil ? { ...entry, ...lifeOf(mine) } : entry)
    }
  }

  #drop(id: string): void {
    this.index.delete(id)
    this.#revisions.delete(id)
    this.#unsaved.delete(id)
  }
}

/** How it is known to live. */
function lifeOf({ status, since, lastSeen, leaseUntil }: AgentEntry) {
  return { status, since, leaseUntil, ...(lastSeen !== undefined && { lastSeen }) }
}

function withSignsOf(entry: AgentEntry, now: AgentEntry): AgentEntry {
  const { sendsHeartbeats, load, measurements, replicas, url } = now
  const { replicas: _, ...facts } = entry
  return {
    ...facts,
    ...lifeOf(now),
    sendsHeartbeats,
    load,
    url,
    ...(measurements !== undefined && { measurements }),
    ...(replicas !== undefined && { replicas }),
  }
}

/** Card and skills stay the same objects where they are the same: whoever indexes them looks at that. */
function merged(mine: AgentEntry, stored: AgentEntry, sameFacts: boolean): AgentEntry {
  // What this gateway measured by itself it goes on measuring.
  const measured = mine.measurements ?? stored.measurements
  const { measurements: _, ...rest } = stored
  const entry: AgentEntry = { ...rest, ...(measured !== undefined && { measurements: measured }) }
  return sameFacts ? { ...entry, card: mine.card, skills: mine.skills } : entry
}
