import { agentDeliveryList, type agentDeliveryRow } from '@parley/wire/codecs/answers/operator/deliveries'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { z } from 'zod'
import { type OperatorRequest } from '../agent-reader.ts'
import { withoutSecrets } from '../deliveries/receiver-address.ts'
import { agentsToRead } from '../tasks/agents-to-read.ts'
import { agentTimeoutMs } from '../tasks/task-list.ts'
import type { ChangedTasksSources } from './changed-tasks.ts'
import type { LiveEvent } from './event-ring.ts'
import type { ChangeSource } from './live-events.ts'

type Row = z.output<typeof agentDeliveryRow>

/** Deliveries change with their attempts, so they are read less often than tasks. */
const everyReads = 5
const rowsMax = 50
const agentsMax = 200
const textMaxChars = 500
const operator: OperatorRequest['operator'] = { client: 'gateway', texts: true }

/** The newest and the failing webhook deliveries with a changed state or number of attempts. */
export function changedDeliveries(sources: ChangedTasksSources): ChangeSource {
  let before: Map<string, string> | undefined
  let reads = 0
  return {
    open: () => {
      before = undefined
      reads = 0
    },
    read: async () => {
      reads += 1
      if (reads % everyReads !== 1) return []
      const { agents } = await agentsToRead(sources, {})
      const ready = agents.filter(({ status, relay }) => status === 'ready' || relay !== undefined)
      const lists = ['', '&state=failing'].map(async (filter) => {
        const path = `/operator/deliveries?limit=${rowsMax}${filter}`
        const request: OperatorRequest = {
          group: 'deliveries.read',
          path,
          operator,
          timeoutMs: agentTimeoutMs,
        }
        const { answers } = await sources.reader.readAll(agentDeliveryList, request, {
          agents: ready.slice(0, agentsMax),
        })
        return answers.flatMap(({ entry, value }) =>
          value.deliveries.slice(0, rowsMax).map((row) => ({ agent: entry.slug, row })),
        )
      })
      const found = new Map<string, { agent: string; row: Row }>()
      for (const one of (await Promise.all(lists)).flat()) found.set(keyOf(one), one)
      const known = before
      before = new Map([...found].map(([key, { row }]) => [key, standingOf(row)]))
      if (known === undefined) return []
      return [...found]
        .filter(([key, { row }]) => known.get(key) !== standingOf(row))
        .map(([, { agent, row }]) => eventOf(agent, row))
    },
  }
}

const keyOf = ({ agent, row }: { agent: string; row: Row }) =>
  JSON.stringify([agent, row.task_id, row.config_id])
const standingOf = ({ state, attempts, settled }: Row) => `${state} ${attempts} ${settled}`

function eventOf(agent: string, row: Row): LiveEvent {
  return {
    type: 'delivery',
    owner: row.owner,
    data: (texts) => {
      const { url, last_error: error } = texts ? row : withoutSecrets(row)
      return {
        ...row,
        agent,
        url: cleanLine(url, 2048),
        last_error: error === null ? null : cleanLine(error, textMaxChars),
      }
    },
  }
}
