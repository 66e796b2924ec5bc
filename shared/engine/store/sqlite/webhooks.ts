import type { DeliveryHealth, PushConfig, TaskKey, WebhookStore } from '../webhook-store.ts'
import type { Inside } from './record.ts'

export interface PushConfigRow {
  seq: number
  task_id: string
  owner: string
  task_created_at: string
  id: string
  revision: string
  open: number | null
  settled: number
  body: string
  health: string
}

const columns = 'seq, task_id, owner, task_created_at, id, revision, open, settled, body, health'
const ofTask = 'task_id = ? AND owner = ? AND task_created_at = ?'
const ofConfig = `${ofTask} AND id = ?`

const insert = `INSERT INTO push_configs
  (task_id, owner, task_created_at, id, revision, open, settled, body, health) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
const settle = `UPDATE push_configs SET settled = ?, open = ?, health = ?
  WHERE ${ofConfig} AND revision = ? AND (settled < ? OR (settled = ? AND open = 1))`
const listOpen = `SELECT ${columns} FROM push_configs INDEXED BY push_configs_open
  WHERE open = 1 AND seq > ? ORDER BY seq LIMIT ?`

/** Each statement finds its rows by the task or by the index of open ones. */
export function sqliteWebhooks(inside: Inside): WebhookStore {
  const { database } = inside
  const one = (task: TaskKey, id: string) => {
    const row = database.statement(`SELECT ${columns} FROM push_configs WHERE ${ofConfig}`)
    return row.get(...keyOf(task), id) as unknown as PushConfigRow | undefined
  }
  const all = (task: TaskKey) => {
    const rows = database.statement(`SELECT ${columns} FROM push_configs WHERE ${ofTask}`).all(...keyOf(task))
    // A task has few; a sort in the database would need an index of its own.
    return (rows as unknown as PushConfigRow[]).sort((a, b) => b.seq - a.seq)
  }
  const remove = (seq: number) => database.statement('DELETE FROM push_configs WHERE seq = ?').run(seq)
  return {
    savePushConfig: (config, perTaskMax) =>
      database.write(() => {
        const { task, id, revision, open, settled, health } = config
        const there = all(task)
        const same = there.find((row) => row.id === id)
        if (same === undefined && there.length >= perTaskMax) return false
        // The newest has the highest number.
        if (same !== undefined) remove(same.seq)
        const values = [id, revision, open ? 1 : null, settled, bodyOf(config), JSON.stringify(health)]
        database.statement(insert).run(...keyOf(task), ...values)
        return true
      }),
    findPushConfig: (task, id) =>
      database.read(() => {
        const row = one(task, id)
        return row === undefined ? undefined : pushConfigOf(row)
      }),
    listPushConfigs: (task) => database.read(() => all(task).map(pushConfigOf)),
    removePushConfig: (task, id, revision) =>
      database.write(() => {
        const row = one(task, id)
        if (row === undefined || (revision !== undefined && row.revision !== revision)) return undefined
        remove(row.seq)
        return pushConfigOf(row)
      }),
    settlePushConfig: ({ task, id, revision }, { settled, open, health }) =>
      database.write(() => {
        const values = [settled, open ? 1 : null, JSON.stringify(health)]
        const where = [...keyOf(task), id, revision, settled, settled]
        return database.statement(settle).run(...values, ...where).changes === 1
      }),
    // No other process sends.
    claimPushConfig: async () => 'ours',
    renewPushConfig: async () => true,
    releasePushConfig: async () => true,
    listOpenPushConfigs: ({ limit, cursor = 0 }) =>
      database.read(() => {
        const rows = database
          .statement(listOpen)
          .all(cursor, limit + 1)
          .map((row) => row as unknown as PushConfigRow)
        const items = rows.slice(0, limit).map((row) => {
          const { task, id, url, settled } = pushConfigOf(row)
          return { task, id, url, settled }
        })
        const last = rows[limit - 1]
        return rows.length > limit && last !== undefined ? { items, nextCursor: last.seq } : { items }
      }),
  }
}

const keyOf = ({ id, owner, createdAt }: TaskKey) => [id, owner, createdAt] as const

function bodyOf({ setAt, url, token, authentication, longRunning }: PushConfig): string {
  return JSON.stringify({ setAt, url, token, authentication, longRunning })
}

export function pushConfigOf(row: PushConfigRow): PushConfig {
  const body = JSON.parse(row.body) as Pick<
    PushConfig,
    'setAt' | 'url' | 'token' | 'authentication' | 'longRunning'
  >
  return {
    ...body,
    task: { id: row.task_id, owner: row.owner, createdAt: row.task_created_at },
    id: row.id,
    revision: row.revision,
    open: row.open === 1,
    settled: row.settled,
    health: JSON.parse(row.health) as DeliveryHealth,
  }
}
