import { setTimeout as wait } from 'node:timers/promises'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testAgent } from '../testing.ts'

describe.skipIf(!hasMongodb)('an agent with STORE_URL=mongodb://… (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const health = async (url: string) => {
    const answer = await fetch(`${url}/health`)
    return { status: answer.status, body: (await answer.json()) as Record<string, Record<string, string>> }
  }

  test('an agent on MongoDB completes and lists tasks, stores feedback and clears contexts as with the embedded store', async () => {
    const env = { STORE_URL: server.newUrl() }
    await using agent = await testAgent({ handle: ({ text }) => text.toUpperCase() }, { env })
    const alice = agent.caller('alice')
    const done = await alice.sendAndWait('hello')
    expect(done.status.state).toBe('completed')
    expect(await alice.call('tasks/list', {})).toMatchObject([{ id: done.id }])
    expect(await alice.call('contexts/list', {})).toMatchObject([{ task_ids: [done.id], task_count: 1 }])
    await alice.call('tasks/feedback', { task_id: done.id, feedback: 'good', rating: 5 })
    await expect(agent.caller('bob').get(done.id)).rejects.toMatchObject({ code: -32001 })
    await alice.call('contexts/clear', { context_id: done.context_id })
    await expect(alice.get(done.id)).rejects.toMatchObject({ code: -32001 })
    expect((await health(agent.url)).body['runtime']).toMatchObject({ storage_backend: 'mongodb' })
  })

  test.each(['id', 'task_id', 'taskId'])(
    'a query operator as %s is refused as invalid params',
    async (name) => {
      await using agent = await testAgent({ handle: () => 'x' }, { env: { STORE_URL: server.newUrl() } })
      const alice = agent.caller('alice')
      await alice.sendAndWait('hello')
      const invalid = { code: -32602, status: 400 }
      await expect(alice.call('tasks/get', { [name]: { $gt: '' } })).rejects.toMatchObject(invalid)
      await expect(alice.call('tasks/list', { cursor: { $gt: '' } })).rejects.toMatchObject(invalid)
      await expect(alice.call('tasks/list', { context_id: { $ne: null } })).rejects.toMatchObject(invalid)
    },
  )

  test('/health and requests answer 503 while the database is unavailable, and the agent recovers on its own', async () => {
    if (server.kind === 'MONGODB_URL') return
    const env = { STORE_URL: server.newUrl() }
    await using agent = await testAgent({ handle: ({ text }) => text }, { env })
    const alice = agent.caller('alice')
    const done = await alice.sendAndWait('one')
    await server.kill()
    const away = await health(agent.url)
    expect(away.status).toBe(503)
    expect(away.body['checks']).toMatchObject({ storage: expect.stringMatching(/^error:/), scheduler: 'ok' })
    await expect(alice.get(done.id)).rejects.toMatchObject({ code: -32042, status: 503 })
    await server.restart()
    while ((await health(agent.url)).status !== 200) await wait(50)
    expect(await alice.get(done.id)).toEqual(done)
    expect((await alice.sendAndWait('two')).status.state).toBe('completed')
  })
})
