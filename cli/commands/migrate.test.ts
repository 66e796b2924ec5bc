import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openMongodbStore } from '@parley/engine/store/mongodb/store'
import { alice, created } from '@parley/engine/store/sample-record.cases'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { gatewayConfig } from '@parley/gateway/config'
import { openGatewayState } from '@parley/gateway/gateway-state'
import { openSharedState } from '@parley/gateway/gateway-state-mongodb'
import { sampleEntry } from '@parley/gateway/registry/store/registry-store.cases'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { loadOrCreateKeys } from '@parley/kit/did/key-file'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const bin = fileURLToPath(new URL('../bin.mjs', import.meta.url))

/** Creates a data folder with one agent. */
async function agentIn(folder: string, tasks: number): Promise<void> {
  const home = path.join(folder, 'agents', 'a')
  mkdirSync(home, { recursive: true })
  await loadOrCreateKeys(path.join(home, 'agent.key.json'))
  await using store = await openSqliteStore({ file: path.join(home, 'agent.db') })
  await Promise.all(Array.from({ length: tasks }, () => created(store)))
}

/** The master key is in the data folder. */
const noSettings = { current: undefined, previous: undefined }
const log = makeLog({ level: 'silent', name: 'test' })

const openGateway = (dataDir: string) => {
  const { config, secrets } = gatewayConfig({ DATA_DIR: dataDir })
  return openGatewayState({
    config,
    storeUrl: undefined,
    supervises: false,
    masterKey: secrets.masterKey,
    log,
  })
}

test.each([
  ['no source', ['--to', 'mongodb://127.0.0.1/x'], '--from'],
  ['a source of another kind', ['--from', 'mysql:x', '--to', 'mongodb://127.0.0.1/x'], '--from must be like'],
  [
    'a folder that is not there',
    ['--from', 'sqlite:gone', '--to', 'mongodb://127.0.0.1/x'],
    'There is no folder',
  ],
  ['an empty folder', ['--from', 'sqlite:.', '--to', 'mongodb://127.0.0.1/x'], 'There is nothing to move'],
  ['no target', ['--from', 'sqlite:.'], '--to must be like'],
  ['a target of another kind', ['--from', 'sqlite:.', '--to', 'sqlite:x'], '--to must be like'],
])('%s is incorrect usage with exit code 2', async (_what, args, said) => {
  using folder = temporaryFolder()
  const { code, stderr } = await runCli(['migrate', ...args], { cwd: folder.path })
  expect([code, stderr]).toEqual([2, expect.stringContaining(said)])
})

test('a missing agent key or an unreachable server causes exit code 1 and one sentence without the password', async () => {
  using folder = temporaryFolder()
  await agentIn(folder.path, 1)
  const to = ['--to', 'mongodb://me:hidden@127.0.0.1:9/x?serverSelectionTimeoutMS=300']
  const { code, stderr } = await runCli(['migrate', '--from', 'sqlite:.', ...to], { cwd: folder.path })
  expect([code, stderr]).toEqual([1, expect.stringContaining('127.0.0.1:9 does not answer')])
  expect(stderr).not.toContain('hidden')
  using other = temporaryFolder()
  mkdirSync(path.join(other.path, 'agents', 'b'), { recursive: true })
  await (await openSqliteStore({ file: path.join(other.path, 'agents', 'b', 'agent.db') }))[
    Symbol.asyncDispose
  ]()
  const without = await runCli(['migrate', '--from', 'sqlite:.', ...to], { cwd: other.path })
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining('There is no key file')])
})

describe.skipIf(!hasMongodb)('parley migrate (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  test('after SIGKILL a new run continues the migration without duplicates', {
    timeout: 120_000,
  }, async () => {
    using folder = temporaryFolder()
    await agentIn(folder.path, 4000)
    const url = server.newUrl()
    const args = ['migrate', '--from', 'sqlite:.', '--to', url, '--json']
    const child = spawn(process.execPath, [bin, ...args], { cwd: folder.path, stdio: 'ignore' })
    await killedWithinTasks(child, url)
    const { code, stdout, stderr } = await runCli(args, { cwd: folder.path })
    expect([code, stderr]).toEqual([0, ''])
    const [part] = (JSON.parse(stdout) as { parts: { agent_id: string; state: string; verified: object }[] })
      .parts
    expect(part).toMatchObject({
      state: 'migrated',
      verified: { tasks: { count: 4000 }, contexts: { count: 4000 } },
    })
    await using store = await openMongodbStore({ url, agentId: part?.agent_id ?? '' })
    expect(await store.countByState()).toEqual({ submitted: 4000 })
    const again = await runCli(['migrate', '--from', 'sqlite:.', '--to', url], { cwd: folder.path })
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('moved already')])
  })

  test('migrate copies the gateway’s clients, routes, decisions, training examples, sentence vectors and cursor key', async () => {
    using folder = temporaryFolder()
    const route = {
      owner: alice,
      kind: 'task' as const,
      id: 't',
      agent: 'a',
      context: 'c',
      at: 5,
      words: { hello: 1 },
    }
    const lesson = { context: 'c', agent: 'a', at: 7, words: {}, good: 1 }
    const state = await openGateway(folder.path)
    await state.routing.save([route])
    await state.routing.saveDecision({ id: 'd', at: 6, body: { score: 1 } })
    await state.routing.saveTrainingExample(lesson as never)
    await state.routing.saveSentenceVectors(new Map([['v', Uint8Array.of(1, 255)]]), 8)
    await state.oauth.upsert({ model: 'Client', id: 'x', payload: { a: 1 }, expiresAt: 9 })
    await state.oauth.consume('Client', 'x', 3)
    const key = await state.routing.cursorKey()
    const entries = [sampleEntry(), sampleEntry({ did: 'did:parley:ada:agent:1' })]
    for (const entry of entries) await state.registry.add(entry)
    const url = server.newUrl()
    const args = ['migrate', '--from', 'sqlite:.', '--to', url]
    const inUse = await runCli(args, { cwd: folder.path })
    expect([inUse.code, inUse.stderr]).toEqual([1, expect.stringContaining('is open in another process')])
    await state[Symbol.asyncDispose]()
    const { code, stdout } = await runCli(args, { cwd: folder.path })
    expect([code, stdout]).toEqual([0, expect.stringContaining('gateway (gateway): moved')])
    await using shared = await openSharedState(url, { dataDir: folder.path, settings: noSettings, log })
    expect(await shared.routing.find(alice, 'task', 't')).toEqual(route)
    expect(await shared.routing.agentsOf(alice, 5)).toEqual(['a'])
    expect(await shared.routing.findDecision('d')).toEqual({ id: 'd', at: 6, body: { score: 1 } })
    expect(await shared.routing.findTrainingExample('c', 'a')).toEqual(lesson)
    expect([...((await shared.routing.sentenceVectors(['v'])).get('v') ?? [])]).toEqual([1, 255])
    const found = (await shared.registry.all()).map(({ entry }) => entry)
    expect(found).toEqual(expect.arrayContaining(entries))
    await expect(shared.registry.add(sampleEntry({ did: 'did:parley:ada:agent:1' }))).rejects.toThrow(
      'is there',
    )
    expect(await shared.oauth.find('Client', 'x')).toEqual({ a: 1, consumed: 3 })
    expect(Buffer.from(await shared.routing.cursorKey())).toEqual(Buffer.from(key))
    expect(await shared.routing.takeWords(alice, 't')).toEqual({ hello: 1 })
  })
})

/** Kills the process while tasks are being copied. */
async function killedWithinTasks(child: ChildProcess, url: string): Promise<void> {
  await using database = await connectMongodb({ url })
  const imports = database.db.collection<{ _id: string; places: { tasks?: unknown } }>('imports')
  for (let attempt = 0; attempt < 2000; attempt += 1) {
    const place = (await imports.findOne({}))?.places.tasks
    if (place === true || child.exitCode !== null)
      throw new Error('It was too fast to be killed in the middle')
    if (place !== undefined) break
    await wait(10)
  }
  const over = once(child, 'close')
  child.kill('SIGKILL')
  await over
}
