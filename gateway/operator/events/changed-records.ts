import type { AuditEntries } from '../../records/audit-entries.ts'
import type { RoutingStore } from '../../routing/store/routing-store.ts'
import { auditEntryOut } from '../audit-routes.ts'
import { decisionRowOut } from '../decision-view.ts'
import type { LiveEvent } from './event-ring.ts'
import type { ChangeSource } from './live-events.ts'

const decisionsMax = 50
const sentMax = 1000

/** The decisions of all gateways since the last call. Decisions are written late, so some seconds are read again. */
const overlapMs = 5000

export function changedDecisions(store: Pick<RoutingStore, 'listDecisions'>): ChangeSource {
  let from = 0
  let sent = new Set<string>()
  return {
    open: () => {
      from = Date.now()
      sent = new Set()
    },
    read: async () => {
      const since = Math.max(from, Date.now() - overlapMs)
      const until = Number.MAX_SAFE_INTEGER
      const found = await store.listDecisions({ since, until, skip: 0, limit: decisionsMax })
      const fresh = found.filter(({ id }) => !sent.has(id)).reverse()
      for (const { id } of fresh) sent.add(id)
      if (sent.size > sentMax) sent = new Set([...sent].slice(-sentMax / 2))
      return fresh.map(
        (decision): LiveEvent => ({
          type: 'decision',
          owner: decision.owner,
          data: (texts) => decisionRowOut(decision, texts),
        }),
      )
    },
  }
}

const auditMax = 50

/** The entries of the audit log since the last call, the newest if there are many. */
export function changedAudit(audit: Pick<AuditEntries, 'list'>): ChangeSource {
  let after = 0
  let sent = new Set<string>()
  return {
    open: () => {
      after = Date.now() * 1000
      sent = new Set()
    },
    read: async () => {
      const since = Math.max(after, (Date.now() - overlapMs) * 1000)
      const found = await audit.list({ after: since, before: Number.MAX_SAFE_INTEGER, limit: auditMax })
      const fresh = found.filter(({ id }) => !sent.has(id)).reverse()
      sent = new Set(found.map(({ id }) => id))
      return fresh.map((entry): LiveEvent => ({ type: 'audit', data: () => auditEntryOut(entry) }))
    },
  }
}
