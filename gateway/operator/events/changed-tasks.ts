import { agentTaskList } from '@parley/wire/codecs/answers/operator/tasks'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { AgentEntry } from '../../registry/entry.ts'
import type { AgentReader, OperatorRequest } from '../agent-reader.ts'
import { agentsToRead, type ReadSources } from '../tasks/agents-to-read.ts'
import { type AgentTaskRow, cleanRow } from '../tasks/clean-row.ts'
import { agentTimeoutMs } from '../tasks/task-list.ts'
import type { CallerView } from '../view.ts'
import type { LiveEvent } from './event-ring.ts'

export interface ChangedTasksSources extends ReadSources {
  reader: ReadSources['reader'] & Pick<AgentReader, 'readAll'>
}

/** The state of reading one agent. */
interface Progress {
  /** The time of the newest status, by the clock of the agent. */
  since: string
  /** The statuses of that time that were sent. */
  sent: Set<string>
  /** The number of reads without a change. */
  quiet: number
}

const agentsMax = 200
const rowsMax = 50
/** Longer texts are not from agents of ours. */
const keyMaxChars = 100
/** The statuses of one time that are remembered per agent. An agent that changes more of them repeats some events. */
const sentMax = 1000
/** An agent without tasks in progress is read every third time after this many reads without a change. */
const quietReads = 10

/** The statuses are read once for all streams, which then send only what their views contain. */
const operator: OperatorRequest['operator'] = { client: 'gateway', texts: true }
const shown = (texts: boolean): Pick<CallerView, 'texts' | 'caller'> => ({ texts, caller: '' })

/** Reads the tasks of all agents that changed their status since the last call. */
export class ChangedTasks {
  readonly #sources: ChangedTasksSources
  readonly #progress = new Map<string, Progress>()
  #round = 0

  constructor(sources: ChangedTasksSources) {
    this.#sources = sources
  }

  /** @returns the changes, oldest first, and whether an agent had more than are read at a time */
  async read(): Promise<{ events: LiveEvent[]; isCut: boolean }> {
    this.#round += 1
    const { agents } = await agentsToRead(this.#sources, {})
    const due = agents.filter((entry) => this.#isDue(entry)).slice(0, agentsMax)
    const { answers } = await this.#sources.reader.readAll(
      agentTaskList,
      (entry) => this.#requestFor(entry),
      {
        agents: due,
      },
    )
    const changed: { row: AgentTaskRow; agent: string }[] = []
    let isCut = false
    for (const { entry, value, clockSkewMs } of answers) {
      const rows = value.tasks.slice(0, rowsMax)
      const before = this.#progress.get(entry.id)
      if (before === undefined) {
        const now = timestampOf((Date.now() + (clockSkewMs ?? 0)) * 1000)
        const since = rows[0]?.since ?? now
        this.#progress.set(entry.id, { since, sent: new Set(rows.map(keyOf)), quiet: 0 })
        continue
      }
      const fresh = rows.filter((row) => row.since >= before.since && !before.sent.has(keyOf(row)))
      isCut ||= fresh.length === rowsMax && value.next_cursor !== null
      this.#advance(before, fresh)
      for (const row of fresh) changed.push({ row, agent: entry.slug })
    }
    changed.sort((a, b) => (a.row.since < b.row.since ? -1 : 1))
    return { events: changed.map(eventOf), isCut }
  }

  clear(): void {
    this.#progress.clear()
  }

  #isDue({ id, status, relay, load }: AgentEntry): boolean {
    if (status !== 'ready' && relay === undefined) return false
    const { queueDepth = 0, activeTasks = 0 } = load
    const quiet = this.#progress.get(id)?.quiet ?? 0
    return quiet < quietReads || queueDepth + activeTasks > 0 || this.#round % 3 === 0
  }

  #requestFor({ id }: AgentEntry): OperatorRequest {
    const since = this.#progress.get(id)?.since
    const search = new URLSearchParams({ limit: String(since === undefined ? 1 : rowsMax) })
    if (since !== undefined) search.set('since', since)
    const path = `/operator/tasks?${search.toString()}`
    return { group: 'tasks.read', path, operator, timeoutMs: agentTimeoutMs }
  }

  #advance(progress: Progress, fresh: readonly AgentTaskRow[]): void {
    progress.quiet = fresh.length === 0 ? progress.quiet + 1 : 0
    for (const row of fresh) {
      if (row.since > progress.since) {
        progress.since = row.since
        progress.sent.clear()
      }
    }
    for (const row of fresh) if (row.since === progress.since) progress.sent.add(keyOf(row))
    for (const oldest of progress.sent) {
      if (progress.sent.size <= sentMax) break
      progress.sent.delete(oldest)
    }
  }
}

const keyOf = ({ task_id: id, state, since }: AgentTaskRow) =>
  [id, state, since].map((text) => text.slice(0, keyMaxChars)).join(' ')

function eventOf({ row, agent }: { row: AgentTaskRow; agent: string }): LiveEvent {
  return {
    type: 'task',
    owner: row.owner,
    data: (texts) => ({ ...cleanRow(row, shown(texts)), agent }),
  }
}
