import { insertUnlessThere, untilDone } from '@parley/kit/database/mongodb/database'
import { hashOf, keyText } from '@parley/kit/database/mongodb/keys'
import { nowMicros } from '@parley/wire/model/timestamp'
import type { Collection } from 'mongodb'
import type { DeliveryHealth, OpenPushConfig, PushConfig, TaskKey, WebhookStore } from '../webhook-store.ts'
import { documentBound, type Inside, refuseTooLarge, taskKey } from './record.ts'

export interface ConfigDocument {
  _id: string
  agent_id: string
  /** `taskKey` of its task. */
  task: string
  /** When it was registered, in microseconds since 1970. */
  registered: number
  revision: string
  settled: number
  /** Only where it may still owe something. */
  open?: true
  /** Who sends what it owes, and until when (milliseconds since 1970). */
  sender?: string
  claimed_until?: number
  /** Somebody came for it while it was the sender's. */
  wanted?: true
  /** All that is set once, as JSON. */
  body: string
  health: string
}

/** The bound per task holds by looking again after the insert: who finds too many takes back its own, and may try again. */
const triesForRoom = 3

export function mongodbWebhooks(inside: Inside): WebhookStore {
  const { agentId } = inside
  const configs = inside.beside<ConfigDocument>('push_configs')
  const ofTask = (task: TaskKey) => ({ agent_id: agentId, task: taskKey(task) })
  const key = (task: TaskKey, id: string) => ({
    _id: `${agentId}/${taskKey(task)}/${hashOf(id)}`,
    agent_id: agentId,
  })
  const count = (task: TaskKey) => configs.countDocuments(ofTask(task))

  const save = async (document: ConfigDocument, task: TaskKey, perTaskMax: number, attempt: number) => {
    const { _id, agent_id, open, ...changed } = document
    const set =
      open === undefined ? { $set: changed, $unset: { open: '' as const } } : { $set: { ...changed, open } }
    if ((await configs.updateOne({ _id, agent_id }, set)).matchedCount === 1) return true
    if ((await count(task)) >= perTaskMax) return false
    if (!(await insertUnlessThere(configs, document))) return undefined
    if ((await count(task)) <= perTaskMax) return true
    await configs.deleteOne({ _id, agent_id, revision: document.revision })
    return attempt < triesForRoom ? undefined : false
  }

  return {
    savePushConfig: (config, perTaskMax) => {
      const document = configDocument(inside, config, nowMicros())
      return untilDone((attempt) => save(document, config.task, perTaskMax, attempt))
    },
    findPushConfig: async (task, id) => {
      const found = await configs.findOne(key(task, id))
      return found === null ? undefined : decode(found)
    },
    listPushConfigs: async (task) =>
      (await configs.find(ofTask(task)).sort({ registered: -1 }).toArray()).map(decode),
    removePushConfig: async (task, id, revision) => {
      const wanted = { ...key(task, id), ...(revision !== undefined && { revision: keyText(revision) }) }
      const removed = await configs.findOneAndDelete(wanted)
      return removed === null ? undefined : decode(removed)
    },
    settlePushConfig: async ({ task, id, revision }, { settled, open, health }, sender) => {
      const behind = [{ settled: { $lt: settled } }, { settled, open: true as const }]
      const claimed = sender === undefined ? {} : { sender: keyText(sender) }
      const wanted = { ...key(task, id), revision: keyText(revision), ...claimed, $or: behind }
      const said = { settled, health: JSON.stringify(health) }
      const change = open ? { $set: { ...said, open } } : { $set: said, $unset: { open: '' as const } }
      return (await configs.updateOne(wanted, change as never)).matchedCount === 1
    },
    ...claimsOf(inside, configs, key),
    listOpenPushConfigs: async ({ limit, cursor = 0, unclaimed = false }) => {
      const nobodys = unclaimed ? { $or: unclaimedAt(inside.now()) } : {}
      const found = await configs
        .find({ agent_id: agentId, open: true, registered: { $gt: cursor }, ...nobodys })
        .sort({ registered: 1 })
        .limit(limit + 1)
        .toArray()
      return pageOf(found, limit)
    },
  }
}

type Key = (task: TaskKey, id: string) => { _id: string; agent_id: string }

const unclaimedAt = (now: number) => [{ sender: { $exists: false } }, { claimed_until: { $lte: now } }]

/** Each step is one compare-and-set: a claim is free, ours, over, or its sender learns that somebody came. */
function claimsOf(
  { now }: Inside,
  configs: Collection<ConfigDocument>,
  key: Key,
): Pick<WebhookStore, 'claimPushConfig' | 'renewPushConfig' | 'releasePushConfig'> {
  return {
    claimPushConfig: ({ task, id }, sender, forMs) => {
      const ours = { sender: keyText(sender) }
      return untilDone(async () => {
        const free = { ...key(task, id), $or: [ours, ...unclaimedAt(now())] }
        const change = { $set: { ...ours, claimed_until: now() + forMs } }
        if ((await configs.updateOne(free, change)).matchedCount === 1) return 'ours' as const
        const another = { ...key(task, id), sender: { $exists: true } }
        const told = await configs.updateOne(another, { $set: { wanted: true } })
        if (told.matchedCount === 1) return 'anothers'
        return (await configs.countDocuments(key(task, id), { limit: 1 })) === 0 ? 'absent' : undefined
      })
    },
    renewPushConfig: async ({ task, id }, sender, forMs) => {
      const ours = { ...key(task, id), sender: keyText(sender) }
      const change = { $set: { claimed_until: now() + forMs } }
      return (await configs.updateOne(ours, change)).matchedCount === 1
    },
    releasePushConfig: async ({ task, id }, sender) => {
      const ours = { ...key(task, id), sender: keyText(sender) }
      const over = { $unset: { sender: '' as const, claimed_until: '' as const } }
      if ((await configs.updateOne({ ...ours, wanted: { $exists: false } }, over)).matchedCount === 1)
        return true
      return (await configs.updateOne(ours, { $unset: { wanted: '' } })).matchedCount === 0
    },
  }
}

function pageOf(found: ConfigDocument[], limit: number): { items: OpenPushConfig[]; nextCursor?: number } {
  const page = found.slice(0, limit)
  const items = page.map((document) => {
    const { task, id, url, settled } = decode(document)
    return { task, id, url, settled }
  })
  const [first, last, next] = [page[0], page.at(-1), found[limit]]
  if (first === undefined || last === undefined || next === undefined) return { items }
  // Two processes may register in the same microsecond: one that comes twice is better than one that is passed over.
  const tie = next.registered === last.registered && first.registered < last.registered
  return { items, nextCursor: tie ? last.registered - 1 : last.registered }
}

export function configDocument({ agentId }: Inside, config: PushConfig, registered: number): ConfigDocument {
  const { revision, settled, open, health, ...once } = config
  const body = JSON.stringify(once)
  refuseTooLarge(body, documentBound)
  const task = taskKey(config.task)
  return {
    _id: `${agentId}/${task}/${hashOf(config.id)}`,
    agent_id: agentId,
    task,
    registered,
    revision: keyText(revision),
    settled,
    ...(open && { open }),
    body,
    health: JSON.stringify(health),
  }
}

function decode({ body, revision, settled, open, health }: ConfigDocument): PushConfig {
  const once = JSON.parse(body) as Pick<PushConfig, 'task' | 'id' | 'url' | 'longRunning' | 'setAt'>
  return { ...once, revision, settled, open: open === true, health: JSON.parse(health) as DeliveryHealth }
}
