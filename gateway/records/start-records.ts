import { receiveAudit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { Metrics } from '@parley/kit/process/metrics'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { type AgentChanges, AgentHistory } from './agent-history.ts'
import type { AuditEntries } from './audit-entries.ts'
import { AuditWriter } from './audit-writer.ts'
import { ForwardedCalls } from './forwarded-calls.ts'
import { RoutingSeries } from './routing-series.ts'

export interface RecordsOptions {
  config: { auditRetentionDays: number }
  state: { audit: AuditEntries; history: AgentChanges }
  registry: Registry
  metrics: Metrics
  log: Log
}

/** The records that the gateway keeps of calls and decisions. */
export interface Records extends AsyncDisposable {
  /** The calls of the last minutes. */
  calls: ForwardedCalls
  series: RoutingSeries
}

/** Records until it is disposed of, which stores the rest of the audit log and of the changes of agents. */
export function startRecords({ config, state, registry, metrics, log }: RecordsOptions): Records {
  const audit = new AuditWriter({ entries: state.audit, retentionDays: config.auditRetentionDays, log })
  const history = new AgentHistory(state.history, { log })
  const series = new RoutingSeries(metrics.registry, () => agentsByStatus(registry.all()))
  receiveAudit(log, audit.record)
  registry.listeners.onChanged = (before, after) => {
    for (const { kind } of history.changed(before, after))
      if (kind === 'ejected' || kind === 'reinstated') series.add(after?.slug ?? '', kind)
  }
  return {
    calls: new ForwardedCalls(registry, series),
    series,
    [Symbol.asyncDispose]: async () => {
      await audit[Symbol.asyncDispose]()
      await history[Symbol.asyncDispose]()
    },
  }
}

function agentsByStatus(entries: readonly AgentEntry[]): Map<string, number> {
  const counts = new Map(
    ['ready', 'starting', 'unreachable', 'quarantined', 'waiting'].map((name) => [name, 0]),
  )
  for (const { status, quarantine, admitted } of entries) {
    const name = admitted ? (quarantine === undefined ? status : 'quarantined') : 'waiting'
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}
