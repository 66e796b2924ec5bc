import { isDeepStrictEqual } from 'node:util'
import { trustedClient } from './admission.ts'
import { AgentPolicies } from './agent-policies.ts'
import type { AgentEntry } from './entry.ts'

/** A change of an entry on which introspection responses depend. */
export interface AccessChange {
  /** The client of an agent that may no longer introspect tokens and act for other clients. */
  client?: string
  /** The policy of an agent has changed. */
  policy?: true
}

/** An in-memory index of the entries by id, slug, DID and address. Entries are immutable and replaced as a whole. */
export class EntryIndex {
  readonly #byId = new Map<string, AgentEntry>()
  readonly #idOfSlug = new Map<string, string>()
  readonly #idOfDid = new Map<string, string>()
  readonly #idOfUrl = new Map<string, string>()
  /** Ids ordered by slug, cached until a slug is added or removed. Heartbeats do not invalidate the order. */
  #ordered: string[] | undefined
  #revision = 0

  readonly policies = new AgentPolicies()

  /** Called with every changed entry, or with undefined if the entry was removed. */
  changed: (id: string, entry: AgentEntry | undefined) => void = () => {}
  /** Called when introspection responses may have become outdated. */
  outdated: (change: AccessChange) => void = () => {}

  constructor(entries: readonly AgentEntry[]) {
    for (const entry of entries) this.set(entry)
  }

  /** Grows with every change that `isListedAs` does not ignore. */
  get revision(): number {
    return this.#revision
  }

  find(name: string): AgentEntry | undefined {
    return this.byId(name) ?? (name.startsWith('did:') ? this.byDid(name) : this.bySlug(name))
  }

  byId(id: string): AgentEntry | undefined {
    return this.#byId.get(id)
  }

  bySlug(slug: string): AgentEntry | undefined {
    const id = this.#idOfSlug.get(slug)
    return id === undefined ? undefined : this.#byId.get(id)
  }

  byDid(did: string): AgentEntry | undefined {
    const id = this.#idOfDid.get(did)
    return id === undefined ? undefined : this.#byId.get(id)
  }

  byUrl(url: string): AgentEntry | undefined {
    const id = this.#idOfUrl.get(url)
    return id === undefined ? undefined : this.#byId.get(id)
  }

  /** Returns all entries ordered by slug. */
  all(): readonly AgentEntry[] {
    this.#ordered ??= [...this.#idOfSlug].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, id]) => id)
    const entries: AgentEntry[] = []
    for (const id of this.#ordered) {
      const entry = this.#byId.get(id)
      if (entry !== undefined) entries.push(entry)
    }
    return entries
  }

  set(entry: AgentEntry): void {
    if (this.#idOfSlug.get(entry.slug) !== entry.id) this.#ordered = undefined
    const before = this.#byId.get(entry.id)
    if (before !== undefined && before.slug !== entry.slug) {
      if (this.#idOfSlug.get(before.slug) === entry.id) this.#idOfSlug.delete(before.slug)
      this.#ordered = undefined
    }
    if (before !== undefined && (before.url !== entry.url || before.replicas !== entry.replicas))
      this.#forgetUrls(before)
    if (before === undefined || !isListedAs(before, entry)) this.#revision += 1
    this.#byId.set(entry.id, entry)
    this.#idOfSlug.set(entry.slug, entry.id)
    for (const url of urlsOf(entry)) this.#idOfUrl.set(url, entry.id)
    if (entry.did !== undefined) this.#idOfDid.set(entry.did, entry.id)
    this.policies.note(entry.id, entry)
    this.changed(entry.id, entry)
    this.#compareAccess(before, entry)
  }

  delete(id: string): void {
    const entry = this.#byId.get(id)
    if (entry === undefined) return
    this.#byId.delete(id)
    this.#revision += 1
    if (this.#idOfSlug.get(entry.slug) === id) this.#idOfSlug.delete(entry.slug)
    this.#forgetUrls(entry)
    if (entry.did !== undefined && this.#idOfDid.get(entry.did) === id) this.#idOfDid.delete(entry.did)
    this.#ordered = undefined
    this.policies.note(id, undefined)
    this.changed(id, undefined)
    this.#compareAccess(entry, undefined)
  }

  #compareAccess(before: AgentEntry | undefined, after: AgentEntry | undefined): void {
    const client = trustedClient(before)
    const isDistrusted = client !== undefined && trustedClient(after) !== client
    const hasNewPolicy = !isDeepStrictEqual(before?.policy, after?.policy)
    if (!isDistrusted && !hasNewPolicy) return
    this.outdated({ ...(isDistrusted && { client }), ...(hasNewPolicy && { policy: hasNewPolicy }) })
  }

  /** Removes only addresses that still belong to the entry, because another agent may use the same port later. */
  #forgetUrls(entry: AgentEntry): void {
    for (const url of urlsOf(entry)) if (this.#idOfUrl.get(url) === entry.id) this.#idOfUrl.delete(url)
  }
}

/** Whether lists of agents and skills show both entries alike. Load, health and leases are not in these lists. */
function isListedAs(before: AgentEntry, now: AgentEntry): boolean {
  return (
    before.skills === now.skills &&
    before.slug === now.slug &&
    before.name === now.name &&
    before.admitted === now.admitted &&
    before.left === now.left
  )
}

function urlsOf({ url, replicas = [] }: AgentEntry): string[] {
  return [url, ...replicas.map((replica) => replica.url)]
}
