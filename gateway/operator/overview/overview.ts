import type { overviewAnswer } from '@parley/wire/codecs/answers/operator/console'
import type { callsAnswer } from '@parley/wire/codecs/answers/operator/records'
import type { z } from 'zod'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import type { AgentReader } from '../agent-reader.ts'
import type { ReadSources } from '../tasks/agents-to-read.ts'
import { type QueueAnswer, readQueues } from '../tasks/queue.ts'
import type { CallerView } from '../view.ts'
import { agentLoadOf, byAttention } from './agent-load.ts'
import { type Attention, attentionOf, queueAttention } from './attention.ts'

export type Overview = z.output<typeof overviewAnswer>
export type Calls = z.output<typeof callsAnswer>

export interface OverviewSources extends ReadSources {
  reader: ReadSources['reader'] & Pick<AgentReader, 'readAll'>
  registry: Pick<Registry, 'bySlug' | 'all'>
  /** The calls of the last minutes. */
  calls: () => Calls
  /** Further things that need attention. A source that fails or is too slow is left out. */
  attention: readonly ((view: CallerView, signal: AbortSignal) => Promise<Attention[]>)[]
}

const agentsMax = 200
/** The overview does not wait longer for agents that do not respond. */
const readMs = 600

/** The present state of the agents, and the entries that need attention (spec/operator.md#overview). */
export async function readOverview(sources: OverviewSources, view: CallerView): Promise<Overview> {
  const { registry, calls, attention } = sources
  const entries = registry.all().filter(({ left }) => left === undefined)
  const signal = AbortSignal.timeout(readMs)
  const [queues, ...further] = await Promise.all([
    readQueues(sources, view, { signal }),
    ...attention.map((read) => before(signal, read(view, signal))),
  ])
  return {
    agents: firstOf(entries, agentsMax).map(agentLoadOf),
    agents_total: entries.length,
    tasks: unfinished(queues),
    ...calls(),
    attention: hintsLast([...attentionOf(entries), ...queueAttention(queues, Date.now()), ...further.flat()]),
  }
}

/** The first entries, without sorting all of them. */
function firstOf(entries: readonly AgentEntry[], count: number): AgentEntry[] {
  let first: AgentEntry[] = []
  for (const entry of entries) {
    first.push(entry)
    if (first.length >= 4 * count) first = first.sort(byAttention).slice(0, count)
  }
  return first.sort(byAttention).slice(0, count)
}

function unfinished({ agents }: QueueAnswer): Record<string, number> {
  const sum = (field: 'queued' | 'running' | 'waiting') =>
    agents.reduce((total, one) => total + one[field], 0)
  return { submitted: sum('queued'), working: sum('running'), waiting: sum('waiting') }
}

/** The result, or nothing if it fails or is too late. */
function before(signal: AbortSignal, result: Promise<Attention[]>): Promise<Attention[]> {
  const late = new Promise<Attention[]>((resolve) => {
    signal.addEventListener('abort', () => resolve([]), { once: true })
  })
  return Promise.race([result.catch(() => []), late])
}

/** An agent without settings is no problem, so it follows what needs a person. */
function hintsLast(all: Attention[]): Attention[] {
  const isHint = ({ kind }: Attention) => kind === 'agent_not_configured'
  return [...all.filter((one) => !isHint(one)), ...all.filter(isHint)]
}
