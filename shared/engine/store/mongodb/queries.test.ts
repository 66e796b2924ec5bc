import { randomUUID } from 'node:crypto'
import { agentIndexes } from '@parley/kit/database/mongodb/schema'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { taskStates } from '@parley/wire/model/task'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alice, artifactOf, createdIn, next } from '../sample-record.cases.ts'
import type { Store } from '../store.ts'
import { samplePayment } from '../store-payments.cases.ts'
import { samplePushConfig } from '../store-webhooks.cases.ts'
import { openMongodbStore } from './store.ts'

type Command = Record<string, unknown>

describe.skipIf(!hasMongodb)('queries of the MongoDB store (needs mongod)', () => {
  let server: MongodbServer
  let url = ''
  beforeAll(async () => {
    server = await startMongodb()
    url = server.newUrl()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const agentId = randomUUID()

  async function asked(): Promise<Command[]> {
    const commands: Command[] = []
    await using store = await openMongodbStore({
      url,
      agentId,
      largePartBytes: 1000,
      onCommand: (command) => commands.push(command),
    })
    commands.length = 0
    await askAll(store)
    return commands
  }

  test('every filter and every document contains the agent id', async () => {
    const commands = await asked()
    expect(commands.length).toBeGreaterThan(100)
    const parts = commands.flatMap(filtersAndDocuments)
    expect(parts.length).toBeGreaterThanOrEqual(commands.length)
    expect(parts.filter((part) => part['agent_id'] !== agentId)).toEqual([])
  })

  test('every query uses the index named after it, or the key', async () => {
    const finds = (await asked()).flatMap(asFind)
    await using client = await MongoClient.connect(url)
    const names = Object.values(agentIndexes).flatMap((all) => all.map(({ name }) => name))
    const plans = new Map<string, string>()
    for (const find of finds) {
      const shape = JSON.stringify([find['find'], shapeOf(find['filter']), shapeOf(find['sort'])])
      if (plans.has(shape)) continue
      const explained = await client.db().command({ explain: find, verbosity: 'queryPlanner' })
      plans.set(shape, JSON.stringify(explained, withoutUnused))
    }
    expect(plans.size).toBeGreaterThan(30)
    const without = [...plans].filter(([, plan]) => {
      const used = [...plan.matchAll(/"(?:Index Name|indexName)":"([^"]+)"/g)].map(([, name = '']) => name)
      return !/IDHACK|EXPRESS/.test(plan) && !used.some((name) => name === '_id_' || names.includes(name))
    })
    expect(without).toEqual([])
    // If several indexes fit, a server with few documents may choose any of them, so only existence is checked.
    expect([...plans.keys()].filter((shape) => indexFor(shape) === undefined)).toEqual([])
    // A scan is reported as COLLSCAN by MongoDB, and as Seq Scan by servers built on PostgreSQL.
    expect([...plans].filter(([, plan]) => /COLLSCAN|Seq Scan/.test(plan))).toEqual([])
  })
})

/** Fields that are checked only on the documents found by the rest of the query, which are always few. */
const lookedAt: Record<string, string[]> = {
  tasks_due: ['state'],
  tasks_in_state: ['holder', 'lease_until'],
  tasks_ended_by_status: ['ended_at'],
}

/** Returns the key, or the index that contains every field of the filter and of the sort order. */
function indexFor(shape: string): string | undefined {
  const [collection, filter, sort = {}] = JSON.parse(shape) as [string, Command, Command?]
  if ('_id' in filter) return '_id'
  const all = new Set([...Object.keys(filter), ...Object.keys(sort ?? {})])
  const fields = [...all].filter((field) => field !== '$or')
  return agentIndexes[collection]?.find(({ name, key }) => {
    const wanted = fields.filter((field) => !lookedAt[name]?.includes(field))
    return (
      wanted.every((field) => field in key) &&
      Object.keys(key)
        .slice(0, wanted.length)
        .every((field) => wanted.includes(field))
    )
  })?.name
}

/** Removes indexes that the server considered but did not use. */
function withoutUnused(key: string, value: unknown): unknown {
  return ['IndexCosts', 'rejectedPlans'].includes(key) ? undefined : value
}

/** Calls each method of the port at least once, with every form of its query. */
async function askAll(store: Store): Promise<void> {
  const artifacts = [artifactOf({ kind: 'text', text: 'x'.repeat(5000) })]
  const record = await createdIn(store, 'working', { artifacts, lease: { holder: 'h', until: 1 } })
  const { id, contextId } = record
  await store.createTask(record)
  await store.findTask(id, alice)
  await store.loadTask(id)
  await store.ownerOf(id)
  await store.commitTask(next(record, 'input-required', { dueAt: 1, lease: { holder: 'h', until: 2 } }))
  await store.listUnfinished(0, 'h')
  await store.countEvents([id])
  await store.listDue(5, 1)
  await store.listDue(5, 1, 'ended')
  await store.renewLeases('h', [id, randomUUID()], 1)
  await store.countByState()
  for (const query of [
    {},
    { owner: alice },
    { contextId },
    { states: ['failed' as const], since: '2026', until: '2027' },
  ])
    await store.listAllTasks({ ...query, limit: 1 })
  const contexts = await store.listContexts({ owner: alice, limit: 1 })
  const cursor = (await store.listTasks({ owner: alice, limit: 1 })).nextCursor
  const at = (await store.listTasks({ owner: alice, limit: 1, order: 'status' })).nextCursor
  for (const state of [undefined, ...taskStates]) {
    const byState = {
      owner: alice,
      limit: 1,
      ...(state !== undefined && { states: [state, 'failed' as const] }),
    }
    await store.listTasks(byState)
    await store.listTasks({ ...byState, ...(cursor !== undefined && { cursor }) })
    await store.listTasks({ ...byState, contextId, count: true })
    for (const more of [{}, { statusSince: '2026' }, { ...(at !== undefined && { cursor: at }) }]) {
      const byStatus = { ...byState, order: 'status' as const, count: true, ...more }
      await store.listTasks(byStatus)
      await store.listTasks({ ...byStatus, contextId })
    }
  }
  if (contexts.nextCursor !== undefined) {
    await store.listContexts({ owner: alice, limit: 1, cursor: contexts.nextCursor })
  }
  await store.findContext(contextId, alice)
  await store.isAnothersContext(contextId, alice)
  await store.contextHistory(contextId, alice, 1)
  const key = { owner: alice, key: randomUUID(), bodyHash: 'h', taskId: id, expiresAt: Date.now() + 9999 }
  await store.claimIdempotencyKey(key)
  await store.claimIdempotencyKey(key)
  await store.claimIdempotencyKey({ ...key, key: randomUUID(), expiresAt: 1 })
  await store.saveFeedback({ taskId: id, owner: alice, feedback: 'f', at: 't' })
  await store.saveFeedback({ taskId: id, owner: alice, feedback: 'f', at: 't' })
  await store.findFeedback(id, alice)
  await store.takeSignature(alice, Buffer.alloc(64, 1), 1)
  await store.takeSignature(alice, Buffer.alloc(64, 1), 2)
  await askBeside(store, record)
  await createdIn(store, 'completed', { contextId: randomUUID() })
  await store.removeEnded('9999', 1)
  await store.commitTask({ ...next(record, 'completed'), version: record.version + 2 })
  await store.clearContext(contextId, alice)
  await store.ping()
}

async function askBeside(store: Store, task: { id: string; owner: string; createdAt: string }) {
  const { webhooks, payments } = store
  const config = samplePushConfig({ task })
  await webhooks.savePushConfig(config, 1)
  await webhooks.savePushConfig(config, 1)
  await webhooks.findPushConfig(task, config.id)
  await webhooks.listPushConfigs(task)
  await webhooks.settlePushConfig(config, { settled: 1, open: true, health: config.health })
  for (const sender of ['a', 'b']) await webhooks.claimPushConfig(config, sender, 60_000)
  await webhooks.settlePushConfig(config, { settled: 2, open: true, health: config.health }, 'a')
  await webhooks.renewPushConfig(config, 'a', 60_000)
  await webhooks.releasePushConfig(config, 'a')
  await webhooks.listOpenPushConfigs({ limit: 1 })
  await webhooks.listOpenPushConfigs({ limit: 1, unclaimed: true })
  await webhooks.removePushConfig(task, config.id, config.revision)
  const names = { nonceKey: randomUUID(), purpose: randomUUID(), captureToken: randomUUID(), dueAt: 1 }
  const payment = samplePayment({ ...names, taskId: task.id })
  await payments.addPayment(payment)
  await payments.addPayment(samplePayment({ nonceKey: names.nonceKey }))
  await payments.commitPayment({ ...payment, version: 1, state: 'failed' })
  await payments.findPayment(payment.id, alice)
  await payments.loadPayment(payment.id)
  await payments.findByNonce(names.nonceKey)
  await payments.findByPurpose(names.purpose)
  await payments.findByCapture(names.captureToken)
  await payments.listOfTask(task.id)
  await payments.listByState({ state: 'failed', limit: 1 })
  await payments.listDuePayments(5, 1)
  await payments.countOpen(alice)
  await payments.countPaymentsByState()
  await payments.removePayment(payment.id, 0)
  await payments.removeUnpaid('9999', 5)
  const transfer = { nonceKey: names.nonceKey, purse: 'p', atomic: 1n, txHash: '0x1' }
  await payments.moveTestMoney({ ...transfer, filledWith: 5n })
  await payments.findTestTransfer(names.nonceKey)
  await payments.testPurse('p', 5n)
}

const listOf = (value: unknown) => (value ?? []) as Command[]

/** Returns the filters and documents of a command. */
function filtersAndDocuments(command: Command): Command[] {
  const matched = listOf(command['pipeline']).map((stage) => stage['$match'] as Command)
  return [
    ...[command['filter'], command['query']].filter((one) => one !== undefined).map((one) => one as Command),
    ...listOf(command['updates']).map(({ q }) => q as Command),
    ...listOf(command['deletes']).map(({ q }) => q as Command),
    ...listOf(command['documents']),
    ...matched.filter((one) => one !== undefined),
  ]
}

/** Converts each filter of a command to a find, which every server can explain. */
function asFind(command: Command): Command[] {
  const collection = command['find'] ?? command['aggregate'] ?? command['update'] ?? command['delete']
  const name = collection ?? command['findAndModify']
  if (typeof name !== 'string' || 'insert' in command) return []
  const sort = command['sort'] === undefined ? {} : { sort: plain(command['sort']) }
  return filtersAndDocuments(command).map((filter) => ({ find: name, filter, ...sort }))
}

const plain = (sort: unknown) => (sort instanceof Map ? Object.fromEntries(sort) : sort)

/** Returns names and operators without values. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return ''
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shapeOf(inner)]))
}
