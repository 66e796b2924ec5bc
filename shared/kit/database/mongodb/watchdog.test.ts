import { once } from 'node:events'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { ParleyError } from '@parley/wire/errors'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { forCallers } from './database.ts'
import { watchOver } from './watchdog.ts'

describe.skipIf(!hasMongodb)('a stuck driver (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const patience = { timeout: 100_000 }
  const address = '127.0.0.1:1'
  test.each<[string, string, object]>([
    ['a heartbeat', 'serverHeartbeatStarted', { connectionId: address }],
    ['a command', 'connectionCheckedOut', { address, connectionId: 1 }],
  ])(
    '%s without an end: the client reconnects, and its collections keep working',
    async (_, name, event) => {
      await using client = await MongoClient.connect(server.newUrl())
      const things = client.db().collection<{ _id: string }>('things')
      await things.insertOne({ _id: 'before' })
      using _watch = watchOver(client, { heartbeatMax: 1, commandMax: 1 })
      const anew = once(client, 'topologyOpening')
      client.emit(name as 'topologyOpening', event as never)
      await anew
      await expect
        .poll(() => things.findOne({ _id: 'before' }).catch(() => undefined), patience)
        .toEqual({ _id: 'before' })
    },
    60_000,
  )

  test('the client reconnects to a server that was down for longer than the selection timeout', async () => {
    if (server.kind === 'MONGODB_URL') return
    await using client = await MongoClient.connect(server.newUrl(), { serverSelectionTimeoutMS: 500 })
    const things = client.db().collection<{ _id: string }>('things')
    await things.insertOne({ _id: 'before' })
    using _watch = watchOver(client, { heartbeatMax: 1, commandMax: 1 })
    await server.kill()
    const refused = vi.spyOn(client, 'connect')
    client.emit('serverHeartbeatStarted', { connectionId: address } as never)
    await vi.waitUntil(() => refused.mock.settledResults.some(({ type }) => type === 'rejected'), patience)
    await server.restart()
    await expect
      .poll(() => things.findOne({ _id: 'before' }).catch(() => undefined), patience)
      .toEqual({ _id: 'before' })
  })

  test('a disposed watchdog does not reconnect', async () => {
    await using client = await MongoClient.connect(server.newUrl())
    const closing = Promise.withResolvers<void>()
    const close = client.close.bind(client)
    client.close = async () => {
      closing.resolve()
      await close()
    }
    let anew = 0
    client.on('topologyOpening', () => (anew += 1))
    const watch = watchOver(client, { heartbeatMax: 0, commandMax: 0 })
    client.emit('serverHeartbeatStarted', { connectionId: address } as never)
    await closing.promise
    watch[Symbol.dispose]()
    await client.close()
    await new Promise((done) => setTimeout(done, 500))
    expect(anew).toBe(0)
  })

  test('commands that finish in time do not cause a reconnect', async () => {
    await using client = await MongoClient.connect(server.newUrl())
    using _watch = watchOver(client, { heartbeatMax: 3, commandMax: 3 })
    let anew = 0
    client.on('topologyOpening', () => (anew += 1))
    for (let look = 0; look < 7; look += 1) {
      await client.db().command({ ping: 1 })
      await new Promise((done) => setTimeout(done, 700))
    }
    expect(anew).toBe(0)
  })
})

test.each([
  ['EPIPE', { code: 'EPIPE', syscall: 'write' }],
  ['ECONNRESET', { code: 'ECONNRESET', syscall: 'read' }],
  ['a stream that ended', { code: 'ERR_STREAM_DESTROYED' }],
  ['a socket closed by the server', { code: 'EPIPE' }],
])('a socket that breaks during a command is reported as unavailable storage (%s)', (_title, fields) => {
  const told = forCallers(Object.assign(new Error('broken'), fields))
  expect(told).toBeInstanceOf(ParleyError)
  expect(told).toMatchObject({ code: -32042, status: 503 })
})

test('an error in one of our own queries is not reported as Unavailable', () => {
  const ours = Object.assign(new TypeError('not a function'), { code: 'ERR_INVALID_ARG_TYPE' })
  expect(forCallers(ours)).toBe(ours)
})
