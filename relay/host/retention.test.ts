import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openStore } from '@parley/agent/internal/server/backends'
import { createdIn } from '@parley/engine/store/sample-record.cases'
import { agentId } from '@parley/kit/did/did'
import { gatewayIdentity } from '@parley/kit/did/identity'
import { agentConfig } from '@parley/kit/process/config'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { timestampOf } from '@parley/wire/model/timestamp'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openLinks } from '../store/links.ts'
import { placeOf } from './open-app.ts'
import { ClosedAppRetention } from './retention.ts'

const dayMs = 86_400_000
const none = () => new Set<string>()
const cleanup = new AsyncDisposableStack()
afterEach(() => vi.restoreAllMocks())
afterAll(() => cleanup.disposeAsync())

describe('with the embedded store', () => {
  retentionCases(() => undefined)
})

describe.runIf(hasMongodb)('with MongoDB (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = cleanup.use(await startMongodb())
  })
  retentionCases(() => server.newUrl())
})

function retentionCases(storeUrl: () => string | undefined): void {
  test('old tasks of a closed agent are removed, also if the gateway does not name the agent', async () => {
    const relay = await relayWith(storeUrl(), 30)
    await relay.storeTask('agent-1', 31)
    const young = await relay.storeTask('agent-1', 29)
    await relay.retention(none).run()
    expect(await relay.tasksOf('agent-1')).toEqual([young])
  })

  test('with RETENTION_DAYS=0, the start of the relay removes nothing', async () => {
    const relay = await relayWith(storeUrl(), 0)
    const task = await relay.storeTask('agent-1', 10_000)
    const stores = vi.spyOn(relay.links, 'stores')
    await relay.retention(none)[Symbol.asyncDispose]()
    expect(stores).not.toHaveBeenCalled()
    expect(await relay.tasksOf('agent-1')).toEqual([task])
  })

  test('the data of an agent that the gateway has not named for RETENTION_DAYS is removed', async () => {
    const relay = await relayWith(storeUrl(), 30)
    await relay.storeTask('agent-1', -10)
    const task = await relay.storeTask('agent-2', -10)
    for (const agent of ['agent-1', 'agent-2']) await relay.links.saveContext(agent, 'context', 'theirs')
    await relay.runTwice(['agent-2'])
    daysLater(29)
    await relay.runTwice(['agent-2'])
    expect(await relay.tasksOf('agent-1')).toHaveLength(1)
    daysLater(2)
    await relay.runTwice(['agent-2'])
    vi.restoreAllMocks()
    expect(existsSync(relay.place('agent-1').storeDir)).toBe(false)
    expect(await relay.links.context('agent-1', 'context')).toBeUndefined()
    expect(await relay.links.context('agent-2', 'context')).toBe('theirs')
    expect((await relay.links.stores()).map(({ agent }) => agent)).toEqual(['agent-2'])
    expect(await relay.tasksOf('agent-1')).toEqual([])
    expect(await relay.tasksOf('agent-2')).toEqual([task])
  })

  test('an agent that is named again keeps its data, and a later absence is counted separately', async () => {
    const relay = await relayWith(storeUrl(), 30)
    const task = await relay.storeTask('agent-1', -10)
    await relay.runTwice([])
    daysLater(20)
    await relay.runTwice(['agent-1'])
    daysLater(11)
    await relay.runTwice([])
    vi.restoreAllMocks()
    expect(await relay.tasksOf('agent-1')).toEqual([task])
  })

  test('a relay that has just started removes no data, because it does not know its agents yet', async () => {
    const relay = await relayWith(storeUrl(), 30)
    await relay.storeTask('agent-1', 0)
    await relay.runTwice([])
    daysLater(31)
    await relay.retention(none).run()
    expect((await relay.links.stores()).map(({ agent }) => agent)).toEqual(['agent-1'])
  })

  test('the retention leaves the store of an app that is opened, and of one that is open', async () => {
    const relay = await relayWith(storeUrl(), 30)
    const old = await relay.storeTask('agent-1', 31)
    let opened: Promise<AsyncDisposable> | undefined
    const retention: ClosedAppRetention = relay.retention(() => {
      opened ??= retention.open('agent-1', async () => (await relay.open('agent-1')).store)
      return new Set()
    })
    await retention.run()
    const app = await opened
    const warn = vi.spyOn(relay.log, 'warn')
    await retention.run()
    expect(warn).not.toHaveBeenCalled()
    await app?.[Symbol.asyncDispose]()
    expect(await relay.tasksOf('agent-1')).toEqual([old])
  })
}

/** Moves the clock forward from its present value. */
function daysLater(days: number): void {
  const at = Date.now() + days * dayMs
  vi.spyOn(Date, 'now').mockReturnValue(at)
}

/** The data of a relay without open apps. */
async function relayWith(storeUrl: string | undefined, days: number) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'relay-retention-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const { config } = agentConfig({ DATA_DIR: folder, RETENTION_DAYS: String(days) })
  const relay = gatewayIdentity({ seed: Buffer.alloc(32, 1), author: 'relay', name: 'agent' })
  const log = makeLog({ level: 'silent', name: 'relay' })
  const links = cleanup.use(await openLinks({ storeUrl, folder }))
  const place = (agent: string) => placeOf(agent, { config, relay })
  const storeId = (agent: string) => agentId(place(agent).identity.did)
  const open = (agent: string) =>
    openStore({ storeUrl, storeDir: place(agent).storeDir, agentId: storeId(agent), log })
  const retention = (named: () => ReadonlySet<string>) =>
    cleanup.use(new ClosedAppRetention({ config, relay, links, log, storeUrl, named }))
  return {
    links,
    log,
    place,
    open,
    retention,
    runTwice: async (named: string[]) => {
      await using runs = retention(() => new Set(named))
      for (let n = 0; n < 2; n += 1) await runs.run()
    },
    /** Stores a task that ended before this number of days, as a closed app leaves it. */
    storeTask: async (agent: string, daysAgo: number) => {
      await links.saveStore({ agent, id: storeId(agent) })
      const { store } = await open(agent)
      await using _open = store
      const updatedAt = timestampOf((Date.now() - daysAgo * dayMs) * 1000)
      const record = await createdIn(store, 'working')
      const status = { state: 'completed', timestamp: updatedAt } as const
      await store.commitTask({ ...record, version: 2, updatedAt, status })
      return record.id
    },
    tasksOf: async (agent: string) => {
      const { store } = await open(agent)
      await using _open = store
      const { items } = await store.listTasks({ owner: 'did:parley:alice:agent:1', limit: 9 })
      return items.map(({ id }) => id)
    },
  }
}
