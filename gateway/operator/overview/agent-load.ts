import type { agentLoad } from '@parley/wire/codecs/answers/operator/console'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { z } from 'zod'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'

export type AgentLoad = z.output<typeof agentLoad>

const nameMaxChars = 200

/** The load that an agent reports, and what the gateway measures. */
export function agentLoadOf(entry: AgentEntry): AgentLoad {
  const { slug, name, status, admitted, quarantine, origin, load, measurements } = entry
  return {
    agent: slug,
    name: cleanLine(name, nameMaxChars),
    status,
    admitted,
    quarantined: quarantine !== undefined,
    external: isExternal(entry),
    supervised: origin === 'supervised',
    queue_depth: load.queueDepth ?? null,
    active_tasks: load.activeTasks ?? null,
    latency_p50_ms: measurements?.latencyP50Ms ?? load.latencyP50Ms ?? null,
    latency_p95_ms: measurements?.latencyP95Ms ?? load.latencyP95Ms ?? null,
    // Without samples, the share is an assumption of the routing.
    success_share: measurements !== undefined && measurements.samples > 0 ? measurements.successShare : null,
  }
}

/** Agents with problems come first, then those with the most work. */
export function byAttention(a: AgentEntry, b: AgentEntry): number {
  return rankOf(b) - rankOf(a) || (a.slug < b.slug ? -1 : 1)
}

function rankOf({ status, admitted, quarantine, load, measurements }: AgentEntry): number {
  const isTroubled = admitted && (status === 'unreachable' || quarantine !== undefined)
  const { queueDepth = 0, activeTasks = 0 } = load
  const work = Math.min(1e6, queueDepth + activeTasks) + Math.min(0.9, (measurements?.samples ?? 0) / 1e4)
  return (isTroubled ? 1e8 : 0) + (admitted ? 1e7 : 0) + work
}
