import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { freePort } from '@parley/tools/testing/port'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

const patient = { timeout: 90_000, interval: 50 }

interface Line {
  level: number
  msg: string
  reason?: string
  err?: unknown
}

describe.skipIf(!hasMongodb || !hasRedis)('a gateway stops in an outage (needs mongod, redis-server)', () => {
  const stack = new AsyncDisposableStack()
  let mongodb: MongodbServer
  let redis: RedisServer
  let folder: string
  beforeAll(async () => {
    mongodb = stack.use(await startMongodb())
    redis = stack.use(await startRedis())
    folder = await mkdtemp(path.join(os.tmpdir(), 'parley-outage-'))
    stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  })
  afterAll(() => stack.disposeAsync())

  async function spawned(): Promise<{ gateway: ChildProcess; lines: () => Line[] }> {
    const port = String(await freePort())
    const { PATH } = process.env
    const env = {
      PATH,
      HOME: folder,
      DATA_DIR: folder,
      PORT: port,
      STORE_URL: mongodb.newUrl(),
      REDIS_URL: redis.url,
    }
    const program = path.join(import.meta.dirname, 'gateway-process.ts')
    const gateway = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    stack.defer(() => void gateway.kill('SIGKILL'))
    let said = ''
    gateway.stderr.on('data', (chunk: Buffer) => {
      said += String(chunk)
    })
    const up = async () =>
      (await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined))?.status === 200
    await vi.waitUntil(up, patient)
    const lines = () =>
      said
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Line)
    return { gateway, lines }
  }

  test('SIGTERM while the database and Redis are down causes one-line warnings with the reason and exit code 0', async () => {
    const { gateway, lines } = await spawned()
    await Promise.all([mongodb.kill(), redis.kill()])
    const closed = once(gateway, 'close')
    const before = lines().length
    gateway.kill('SIGTERM')
    expect(await closed).toEqual([0, null])
    const told = lines().slice(before)
    const stopping = told.findIndex(({ msg }) => msg === 'stopping')
    const after = told.slice(stopping + 1)
    expect(after.filter(({ level, err }) => level > 40 || err !== undefined)).toEqual([])
    for (const line of after) expect(line).toMatchObject({ level: 40, reason: expect.stringMatching(/.+/) })
  }, 240_000)
})
