import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import type { TaskRecord } from '@parley/engine/store/store'
import { timestamp } from '@parley/wire/model/timestamp'

/** Stores a task in the folder's store as a killed process would leave it. Resolves with the task id. */
export async function startedTask(
  dataDir: string,
  left: { owner: string; starts: number; working: boolean },
): Promise<string> {
  await mkdir(dataDir, { recursive: true })
  await using store = await openSqliteStore({ file: path.join(dataDir, 'agent.db') })
  const [id, contextId, at] = [randomUUID(), randomUUID(), timestamp()]
  const status = { state: left.working ? 'working' : 'submitted', timestamp: at } as const
  const record: TaskRecord = {
    id,
    contextId,
    owner: left.owner,
    status,
    history: [
      { role: 'user', parts: [{ kind: 'text', text: 'go' }], messageId: randomUUID(), contextId, taskId: id },
    ],
    artifacts: [],
    version: 0,
    events: left.working
      ? [{ eventId: randomUUID(), sequence: 1, timestamp: at, kind: 'status-update', status, final: false }]
      : [],
    createdAt: at,
    updatedAt: at,
    starts: left.starts,
    workedMs: 0,
    referenceTaskIds: [],
    acceptedOutputModes: [],
  }
  if (left.starts > 0) record.lease = { holder: randomUUID(), until: Date.now() + 30_000 }
  await store.createTask(record)
  return id
}
