import { agentQueue, type queueAnswer } from '@parley/wire/codecs/answers/operator/tasks'
import type { z } from 'zod'
import type { AgentReader } from '../agent-reader.ts'
import type { CallerView } from '../view.ts'
import { agentsToRead, type ReadSources } from './agents-to-read.ts'
import { requestOf } from './task-list.ts'

export type QueueAnswer = z.output<typeof queueAnswer>

const ownersMax = 20

/** Reads how many tasks are queued, run and wait at each agent, those with the longest queue first (spec/operator.md#queue). */
export async function readQueues(
  sources: ReadSources & { reader: Pick<AgentReader, 'readAll'> },
  view: CallerView,
  { agent, signal }: { agent?: string | undefined; signal?: AbortSignal } = {},
): Promise<QueueAnswer> {
  const chosen = await agentsToRead(sources, { view, agent })
  const request = { ...requestOf(view), path: '/operator/queue' }
  const options = { agents: chosen.agents, ...(signal && { signal }) }
  const { answers, unread } = await sources.reader.readAll(agentQueue, request, options)
  const agents = answers
    .map(({ entry, value }) => ({ ...value, agent: entry.slug, owners: value.owners.slice(0, ownersMax) }))
    .sort((a, b) => b.queued - a.queued || b.running - a.running || (a.agent < b.agent ? -1 : 1))
  return { agents, unread: [...unread, ...chosen.unread] }
}
