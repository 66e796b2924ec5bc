import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { oauthCollection } from './oauth/oauth-store.ts'
import { claimsIn } from './store/claims.ts'
import { openGatewayMongodb } from './store/mongodb/database.ts'

const available = hasMongodb && hasRedis

describe.skipIf(!available)(
  'a database shared with a version without encryption (needs mongod, redis-server)',
  () => {
    const stack = new AsyncDisposableStack()
    let mongodb: MongodbServer
    let redis: RedisServer
    let folder: string
    beforeAll(async () => {
      mongodb = stack.use(await startMongodb())
      redis = stack.use(await startRedis())
      folder = await mkdtemp(path.join(os.tmpdir(), 'parley-plaintext-'))
      stack.defer(() => rm(folder, { recursive: true, force: true }))
    })
    afterAll(() => stack.disposeAsync())

    test('while such a gateway runs, a new one refuses to start and leaves its data readable', async () => {
      const url = mongodb.newUrl()
      await using database = await openGatewayMongodb({ url })
      const entries = database.documents.collection(oauthCollection)
      const key = { model: 'Client', id: 'c' }
      await entries.put({ ...key, payload: '{"client_id":"c"}' })
      const keyFile = path.join(folder, 'oauth', 'oauth-keys.json')
      const jwks = { keys: [{ kty: 'EC', kid: 'k' }] }
      const plaintext = JSON.stringify({ jwks, cookieKeys: ['x'.repeat(43)] })
      await mkdir(path.dirname(keyFile), { mode: 0o700 })
      await writeFile(keyFile, plaintext, { mode: 0o600 })
      const claims = claimsIn(database.documents, 'gateway_claims')
      const earlier = () => claims.hold('oauth-server', 'http://127.0.0.1:7998 fingerprint', 15_000)
      expect(await earlier()).toBe(true)
      const renewal = setInterval(() => void earlier(), 5000)
      const settings = gatewayConfig({
        PORT: '0',
        DATA_DIR: folder,
        PUBLIC_URL: 'http://127.0.0.1:7998',
        STORE_URL: url,
        REDIS_URL: redis.url,
      })
      const log = makeLog({ level: 'silent', name: 'test' })
      await expect(startGatewayApp({ settings, log })).rejects.toThrow(
        'an earlier version that cannot read encrypted records',
      )
      clearInterval(renewal)
      expect((await entries.get(key))?.payload).toBe('{"client_id":"c"}')
      expect(await readFile(keyFile, 'utf8')).toBe(plaintext)
    }, 60_000)
  },
)
