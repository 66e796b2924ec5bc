import { nowMicros } from '../protocol/timestamp.ts'
import { insertUnlessThere, untilDone } from './mongodb-database.ts'
import { hashOf, keyText } from './mongodb-keys.ts'
import { type Inside, refuseTooLarge, taskKey } from './mongodb-record.ts'
import type { DeliveryHealth, OpenPushConfig, PushConfig, TaskKey, WebhookStore } from './webhook-store.ts'

interface ConfigDocument {
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
      const document = documentOf(inside, config)
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
    settlePushConfig: async ({ task, id, revision }, { settled, open, health }) => {
      const behind = [{ settled: { $lt: settled } }, { settled, open: true as const }]
      const wanted = { ...key(task, id), revision: keyText(revision), $or: behind }
      const said = { settled, health: JSON.stringify(health) }
      const change = open ? { $set: { ...said, open } } : { $set: said, $unset: { open: '' as const } }
      return (await configs.updateOne(wanted, change as never)).matchedCount === 1
    },
    listOpenPushConfigs: async ({ limit, cursor = 0 }) => {
      const found = await configs
        .find({ agent_id: agentId, open: true, registered: { $gt: cursor } })
        .sort({ registered: 1 })
        .limit(limit + 1)
        .toArray()
      return pageOf(found, limit)
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

function documentOf({ agentId }: Inside, config: PushConfig): ConfigDocument {
  const { revision, settled, open, health, ...once } = config
  const body = JSON.stringify(once)
  refuseTooLarge(body, 'InvalidParams')
  const task = taskKey(config.task)
  return {
    _id: `${agentId}/${task}/${hashOf(config.id)}`,
    agent_id: agentId,
    task,
    registered: nowMicros(),
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
