import { hashOf, keyText, positionOf } from '@parley/kit/database/keys'
import { documentBound } from '@parley/kit/database/mongodb/layout'
import { bytesIn, textIn } from '@parley/kit/database/sqlite/row'
import type { TaskState } from '@parley/wire/model/task'
import {
  idempotencyKeyCollection,
  idempotencyKeyRow,
  idempotencyRecordOf,
} from '../store/idempotency-keys.ts'
import { LargeParts } from '../store/large-parts.ts'
import type { FeedbackDocument } from '../store/mongodb/feedback.ts'
import { type ContextDocument, encodeTask, keyedIn, type MongoContext } from '../store/mongodb/record.ts'
import type { CountsDocument } from '../store/mongodb/removal.ts'
import { pushConfigCollection, pushConfigOf, pushConfigRow } from '../store/push-configs.ts'
import { signatureCollection } from '../store/signatures.ts'
import { decodeTask, type TaskRow, taskColumns } from '../store/sqlite/record.ts'
import type { SqliteSource } from '../store/sqlite/source.ts'
import { copiedUsage, usageCollection } from '../store/usage-days.ts'
import { taskKey } from '../store/webhook-store.ts'
import { MigrationFailed } from './copy.ts'
import { collectionKind, type Documents, type Kind, type Plan } from './kind.ts'
import { paymentKinds } from './payment-kinds.ts'

const kept = [
  'tasks',
  'parts',
  'contexts',
  'counts',
  'idempotency_keys',
  'feedback',
  'push_configs',
  'signatures',
  'settings',
  'usage_days',
]
const keptOfPayments = ['payments', 'payment_claims', 'test_purses', 'test_transfers', 'transfer_offers']

/** An agent's collections: tasks with their parts, the ledger, and records about callers. */
export function agentPlan(store: MongoContext, source: SqliteSource): Plan {
  const scope = store.agentId
  return {
    kinds: [
      tasks(store, source),
      contexts(store),
      endedCounts(store),
      collectionKind({ title: 'idempotency keys', scope, declaration: idempotencyKeyCollection }, (row) =>
        idempotencyKeyRow(idempotencyRecordOf(row)),
      ),
      feedback(store),
      // The row number represents the registration time, so the order is kept and cursors remain valid.
      collectionKind({ title: 'push configs', scope, declaration: pushConfigCollection }, (row) =>
        pushConfigRow(pushConfigOf(row), true),
      ),
      collectionKind({ title: 'signatures', scope, declaration: signatureCollection }, (row) => ({
        hash: row.hash ?? new Uint8Array(),
        until: row.until,
      })),
      cursorKey(store),
      collectionKind({ title: 'usage', scope, declaration: usageCollection }, copiedUsage),
      ...paymentKinds(scope),
    ],
    collections: [...kept, ...keptOfPayments],
    work: ['tasks', 'payments'],
  }
}

/** Leases expire, because their holders have stopped. The holder is kept, because the task may have run. */
function tasks(store: MongoContext, { database }: SqliteSource): Kind {
  const largeParts = new LargeParts(256 * 1024)
  const at = { database, largeParts, now: Date.now } as unknown as Parameters<typeof decodeTask>[0]
  return {
    name: 'tasks',
    table: 'tasks',
    select: `SELECT ${taskColumns} FROM tasks`,
    key: { seq: 'seq' },
    documents: (row) => {
      const { record } = decodeTask(at, row as unknown as TaskRow)
      if (record.lease !== undefined) record.lease = { ...record.lease, until: 0 }
      try {
        const { document, parts } = encodeTask(store, record, documentBound)
        return { tasks: [document], parts }
      } catch (error) {
        throw new MigrationFailed(
          `The task ${record.id} cannot be stored there: ${(error as Error).message}.`,
        )
      }
    },
  }
}

function contexts(store: MongoContext): Kind {
  return {
    name: 'contexts',
    table: 'contexts',
    select: 'SELECT * FROM contexts',
    key: { id: 'id' },
    documents: (row) => {
      const [id, owner] = [textIn(row, 'id'), textIn(row, 'owner')]
      const updatedAt = textIn(row, 'updated_at')
      // A source with an older schema has no names.
      const name = typeof row['name'] === 'string' ? row['name'] : undefined
      const document: ContextDocument = {
        _id: keyedIn(store, keyText(id)),
        agent_id: store.agentId,
        owner: keyText(owner),
        position: positionOf(updatedAt, id),
        version: 1,
        created_at: textIn(row, 'created_at'),
        updated_at: updatedAt,
        body: JSON.stringify({ id, owner, name }),
      }
      return { contexts: [document] }
    },
  }
}

/** MongoDB counts only the removed tasks, whereas SQLite counts every task that has ever ended. */
function endedCounts({ agentId }: MongoContext): Kind {
  const here = 'SELECT count(*) FROM tasks WHERE ended_state = ended.state'
  return {
    name: 'counts of ended tasks',
    table: 'ended_counts',
    select: `SELECT json_group_object(ended.state, ended.count - (${here})) AS counts, 1 AS only FROM ended_counts AS ended`,
    key: { only: '1' },
    documents: (row): Documents => {
      const ended: Record<TaskState, number> = JSON.parse(textIn(row, 'counts'))
      const all = Object.entries(ended)
      const removed = all.filter(([, count]) => count > 0)
      if (removed.length === 0) return {}
      const counts = Object.fromEntries(removed)
      return { counts: [{ _id: `${agentId}/removed`, agent_id: agentId, counts } satisfies CountsDocument] }
    },
  }
}

function feedback({ agentId }: MongoContext): Kind {
  return {
    name: 'feedback',
    table: 'feedback',
    select: `SELECT feedback.task_id, feedback.owner, feedback.body, tasks.owner AS task_owner, tasks.created_at
      FROM feedback JOIN tasks ON tasks.id = feedback.task_id`,
    key: { task_id: 'feedback.task_id', owner: 'feedback.owner' },
    documents: (row) => {
      const text = (name: string) => textIn(row, name)
      const task = taskKey({ id: text('task_id'), owner: text('task_owner'), createdAt: text('created_at') })
      const _id = `${agentId}/${hashOf(task, text('owner'))}`
      const document: FeedbackDocument = { _id, agent_id: agentId, task, body: text('body') }
      return { feedback: [document] }
    },
  }
}

function cursorKey({ agentId }: MongoContext): Kind {
  return {
    name: 'cursor key',
    table: 'cursor_key',
    select: 'SELECT key, 1 AS only FROM cursor_key',
    key: { only: '1' },
    documents: (row) => ({
      settings: [{ _id: `${agentId}/cursor_key`, agent_id: agentId, key: Buffer.from(bytesIn(row, 'key')) }],
    }),
  }
}
