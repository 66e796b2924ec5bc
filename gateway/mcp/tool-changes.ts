import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

/** Several changes in this time are one notification. */
const collectMs = 500

/** Calls `notify` after the tools of any agent have changed. Heartbeats change no tools. */
export function watchTools(registry: Pick<Registry, 'follow'>, notify: () => void): void {
  const known = new Map<string, AgentEntry>()
  let pending: NodeJS.Timeout | undefined
  registry.follow((id, entry) => {
    const before = known.get(id)
    if (entry === undefined) known.delete(id)
    else known.set(id, entry)
    if (pending !== undefined || hasSameTools(before, entry)) return
    pending = setTimeout(() => {
      pending = undefined
      notify()
    }, collectMs).unref()
  })
}

function hasSameTools(before: AgentEntry | undefined, entry: AgentEntry | undefined): boolean {
  return (
    before?.skills === entry?.skills &&
    before?.slug === entry?.slug &&
    before?.name === entry?.name &&
    before?.admitted === entry?.admitted &&
    before?.policy === entry?.policy
  )
}
