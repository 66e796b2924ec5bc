import {
  absent,
  atMost,
  below,
  type DocumentDatabase,
  declareCollection,
  type Found,
  present,
  type Row,
  type Value,
} from '@parley/kit/database/documents'
import { hashOf } from '@parley/kit/database/keys'
import { untilDone } from '@parley/kit/database/retry'
import { type ConfigKey, type PushConfig, type TaskKey, taskKey, type WebhookStore } from './webhook-store.ts'

const fields = {
  task_id: 'key',
  owner: 'key',
  task_created_at: 'key',
  id: 'key',
  revision: 'key',
  settled: 'integer',
  /** Whether the config may still have undelivered events. */
  open: 'flag',
  /** The process that delivers the events, and when its claim expires (milliseconds since 1970). */
  sender: 'key?',
  claimed_until: 'integer?',
  /** Whether another process tried to claim the config. */
  wanted: 'flag',
  /** The ranges of events to be sent again, as JSON. */
  resend: 'text?',
  /** All fields that never change, as JSON. */
  body: 'text',
  health: 'text',
} as const

const claimFields = ['sender', 'claimed_until', 'wanted'] as const

function taskOf({
  task_id: id,
  owner,
  task_created_at: createdAt,
}: Record<string, Value | undefined>): string {
  return taskKey({ id: String(id), owner: String(owner), createdAt: String(createdAt) })
}

export const pushConfigCollection = declareCollection({
  name: 'push_configs',
  fields,
  key: ['task_id', 'owner', 'task_created_at', 'id'],
  sequence: true,
  kept: claimFields,
  indexes: {
    // MongoDB stores the task as one field.
    of_task: { equals: ['task_id', 'owner', 'task_created_at', 'task'], order: 'sequence' },
    open: { only: { open: true }, order: 'sequence', sqlite: 'push_configs_open' },
    all: { order: 'sequence' },
  },
  sqlite: { without: claimFields },
  mongodb: {
    id: (row) => `${taskOf(row)}/${hashOf(String(row['id']))}`,
    derived: { task: taskOf },
    without: ['task_id', 'owner', 'task_created_at', 'id'],
    sequence: 'registered',
  },
})

/** Returns the fields that identify the task of a config. */
export const pushConfigTask = (task: TaskKey) => ({
  task_id: task.id,
  owner: task.owner,
  task_created_at: task.createdAt,
})

/** @param whole whether the body also contains the key, because a database may not return the fields of a key */
export function pushConfigRow(config: PushConfig, whole: boolean): Row<typeof fields> {
  const { revision, settled, open, resend, health, ...once } = config
  const { task: _task, id: _id, ...rest } = once
  return {
    ...pushConfigTask(config.task),
    id: config.id,
    revision,
    settled,
    ...(open && { open }),
    ...(resend !== undefined && { resend: JSON.stringify(resend) }),
    body: JSON.stringify(whole ? once : rest),
    health: JSON.stringify(health),
  }
}

export function pushConfigOf(row: Found<typeof fields>): PushConfig {
  const { task_id: taskId = '', owner = '', task_created_at: createdAt = '', id } = row
  const task = { id: taskId, owner, createdAt }
  const once: PushConfig = { task, ...(id !== undefined && { id }), ...JSON.parse(row.body) }
  const { settled, open = false, revision = once.revision } = row
  const resend = row.resend === undefined ? {} : { resend: JSON.parse(row.resend) }
  return { ...once, revision, settled, open, ...resend, health: JSON.parse(row.health) }
}

export function webhookStore(database: DocumentDatabase, now: () => number): WebhookStore {
  const configs = database.collection(pushConfigCollection)
  return {
    savePushConfig: async (config, perTaskMax) => {
      const quota = { index: 'of_task' as const, equals: pushConfigTask(config.task), max: perTaskMax }
      return (await configs.put(pushConfigRow(config, database.shared), quota)) === 'written'
    },
    findPushConfig: async (task, id) => {
      const found = await configs.get(configKey({ task, id }))
      return found && pushConfigOf(found)
    },
    listPushConfigs: async (task) =>
      (await configs.find('of_task', pushConfigTask(task), { descending: true })).map(pushConfigOf),
    removePushConfig: async (task, id, revision) => {
      const removed = await configs.remove(
        configKey({ task, id }),
        revision === undefined ? {} : { revision },
      )
      return removed && pushConfigOf(removed)
    },
    ...settlements(database),
    listAllPushConfigs: async ({ limit, cursor }) => {
      const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor)
      const rows = await configs.find('all', {}, { before, descending: true, limit })
      return rows.map((row) => ({ config: pushConfigOf(row), cursor: String(row.sequence) }))
    },
    ...(database.shared ? claims(database, now) : claimsOfOneProcess),
    listOpenPushConfigs: async ({ limit, cursor = 0, unclaimed = false }) => {
      const where = unclaimed && database.shared ? { where: { any: unclaimedAt(now()) } } : {}
      const { items, next } = await configs.page('open', {}, { limit, after: cursor, ...where })
      const open = items.map((row) => {
        const { task, id, url, settled, resend } = pushConfigOf(row)
        return { task, id, url, settled, ...(resend !== undefined && { resends: true as const }) }
      })
      return next === undefined ? { items: open } : { items: open, nextCursor: next }
    },
  }
}

const configKey = ({ task, id }: ConfigKey) => ({ ...pushConfigTask(task), id })

/** Progress of deliveries. Each step is one compare-and-set, and two only if a config with events to be sent again would be closed. */
function settlements(
  database: DocumentDatabase,
): Pick<WebhookStore, 'settlePushConfig' | 'resendPushConfig'> {
  const configs = database.collection(pushConfigCollection)
  return {
    settlePushConfig: async ({ task, id, revision }, settlement, sender) => {
      const { settled, open, health, resend } = settlement
      const key = configKey({ task, id })
      const set = { settled, open: open || undefined, health: JSON.stringify(health) }
      const claimed = sender === undefined || !database.shared ? {} : { sender }
      const where = {
        revision,
        ...claimed,
        any: [{ settled: below(settled) }, { settled, open: true as const }],
      }
      const settle = async (changes: typeof set & { resend?: string | undefined }, resent: Resent) =>
        (await configs.update(key, changes, { ...where, ...resent })) === 'written'
      if (resend !== undefined) {
        const after = resend.after.length === 0 ? undefined : JSON.stringify(resend.after)
        return settle({ ...set, open: true, resend: after }, { resend: JSON.stringify(resend.before) })
      }
      if (open) return settle(set, {})
      return (await settle(set, { resend: absent })) || settle({ ...set, open: true }, { resend: present })
    },
    resendPushConfig: async ({ task, id, revision }, events) => {
      const set = { resend: JSON.stringify(events), open: true as const }
      return (await configs.update(configKey({ task, id }), set, { revision, resend: absent })) === 'written'
    },
  }
}

/** The condition on the events to be sent again under which an event is settled. */
type Resent = { resend?: string | typeof absent }

type Claims = Pick<WebhookStore, 'claimPushConfig' | 'renewPushConfig' | 'releasePushConfig'>

/** Claims for a database that only one process uses. */
const claimsOfOneProcess: Claims = {
  claimPushConfig: async () => 'ours',
  renewPushConfig: async () => true,
  releasePushConfig: async () => true,
}

const unclaimedAt = (now: number) => [{ sender: absent }, { claimed_until: atMost(now) }]

/**
 * Each step is one compare-and-set: it takes a free or expired claim, extends its own, or notifies the current
 * sender.
 */
function claims(database: DocumentDatabase, now: () => number): Claims {
  const configs = database.collection(pushConfigCollection)
  return {
    claimPushConfig: (config, sender, forMs) => {
      const key = configKey(config)
      return untilDone(async () => {
        const free = { any: [{ sender }, ...unclaimedAt(now())] }
        const claimed = { sender, claimed_until: now() + forMs }
        if ((await configs.update(key, claimed, free)) === 'written') return 'ours' as const
        const noted = await configs.update(key, { wanted: true }, { sender: present })
        if (noted === 'written') return 'anothers'
        return (await configs.get(key)) === undefined ? 'absent' : undefined
      })
    },
    renewPushConfig: async (config, sender, forMs) => {
      const renewed = { claimed_until: now() + forMs }
      return (await configs.update(configKey(config), renewed, { sender })) === 'written'
    },
    releasePushConfig: async (config, sender) => {
      const key = configKey(config)
      const released = { sender: undefined, claimed_until: undefined }
      const unwanted = { sender, wanted: absent }
      if ((await configs.update(key, released, unwanted)) === 'written') return true
      return (await configs.update(key, { wanted: undefined }, { sender })) === 'refused'
    },
  }
}
