import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { openMongodbStore } from '@parley/engine/store/mongodb/store'
import { artifactOf, sampleRecord } from '@parley/engine/store/sample-record.cases'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { makeLog } from '@parley/kit/process/log'
import { type RoleProxy, startRoleProxy } from '@parley/tools/testing/mongodb/roles'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { claimsIn } from '../../store/claims.ts'
import { AgentDatabases, type AgentDatabasesOptions } from './agent-databases.ts'

const log = makeLog({ level: 'silent', name: 'test' })
const admin = [
  { role: 'readWriteAnyDatabase', db: 'admin' },
  { role: 'userAdminAnyDatabase', db: 'admin' },
]

describe.skipIf(!hasMongodb)('databases of agents (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const optionsFor = (url: string, more: Partial<AgentDatabasesOptions> = {}): AgentDatabasesOptions => {
    const claims = claimsIn(memoryDocuments(), 'gateway_claims')
    const { signal } = new AbortController()
    return { url, withUsers: true, claims, signal, quietMs: 200, log, ...more }
  }

  /** A proxy with roles in front of the server, and its URL for an operator with these roles. */
  async function withRoles(
    roles = admin,
    more = {},
  ): Promise<{ proxy: RoleProxy; url: string; direct: string }> {
    const direct = server.newUrl()
    const { hostname, port, pathname } = new URL(direct.replace('mongodb:', 'http:'))
    const users = [{ name: 'operator', source: 'admin', password: 'p@ss/word', roles }]
    const proxy = await startRoleProxy({ target: { host: hostname, port: Number(port) }, users, ...more })
    const url = `mongodb://operator:p%40ss%2Fword@${proxy.host}${pathname}?authSource=admin&maxPoolSize=5`
    return { proxy, url, direct }
  }

  test('an agent reaches only its own database, and not that of the gateway or of another agent', async () => {
    const { proxy, url } = await withRoles()
    await using _proxy = proxy
    await using databases = await AgentDatabases.open(optionsFor(url))
    expect(databases.missing).toEqual([])
    const [one, two] = [randomUUID(), randomUUID()]
    const ownUrl = await databases.urlFor({ name: 'one', agentId: one })
    const otherUrl = await databases.urlFor({ name: 'two', agentId: two })
    expect(ownUrl).not.toContain('operator')
    for (const [agentId, agentUrl] of [
      [one, ownUrl],
      [two, otherUrl],
    ] as const) {
      await using store = await openMongodbStore({ url: agentUrl, agentId })
      await store.ping()
    }
    await using agent = await connectMongodb({ url: ownUrl })
    const foreign = [new URL(url).pathname, new URL(otherUrl).pathname].map((name) =>
      agent.client.db(name.slice(1)),
    )
    const from = { db: foreign[0]?.databaseName, coll: 'settings' }
    const lookup = { $lookup: { from, localField: 'agent_id', foreignField: 'agent_id', as: 'found' } }
    const attempts = [
      ...foreign.flatMap((db) => [
        () => db.collection('settings').findOne({}),
        () => db.collection('tasks').insertOne({}),
        () => db.collection('settings').deleteMany({}),
        () => db.listCollections().toArray(),
        () => db.dropDatabase(),
        () => db.command({ createUser: 'intruder', pwd: 'p', roles: ['readWrite'] }),
        () => db.command({ usersInfo: 1 }),
      ]),
      () => agent.db.admin().listDatabases(),
      () => agent.db.collection('settings').aggregate([lookup]).toArray(),
      () => agent.db.command({ createUser: 'intruder', pwd: 'p', roles: ['root'] }),
      () => agent.db.command({ updateUser: 'operator', pwd: 'p' }),
      () =>
        agent.db
          .collection('settings')
          .aggregate([{ $out: { db: foreign[0]?.databaseName ?? '', coll: 'x' } }])
          .toArray(),
    ]
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: 13 })
    const anonymous = new MongoClient(`mongodb://${proxy.host}/`)
    await expect(
      anonymous.db(foreign[0]?.databaseName).collection('tasks').findOne({}),
    ).rejects.toMatchObject({ code: 13 })
    await anonymous.close()
  })

  /** Whether the user in the URL can connect. */
  const isAccepted = (url: string) =>
    connectMongodb({ url }).then(
      (database) => database[Symbol.asyncDispose]().then(() => true),
      (error: unknown) => !/refuses this user/.test(String(error)),
    )

  test('each gateway has its own users, which end with it', async () => {
    const { proxy, url } = await withRoles()
    await using _proxy = proxy
    const agent = { name: 'one', agentId: randomUUID() }
    const claims = claimsIn(memoryDocuments(), 'gateway_claims')
    const first = await AgentDatabases.open(optionsFor(url, { claims }))
    const before = await first.urlFor(agent)
    expect(await first.urlFor(agent)).toBe(before)
    // Two replicas that start together get one user.
    expect(proxy.users).toHaveLength(2)
    // Another gateway, also one with the same host name and folder, does not change the password.
    await using other = await AgentDatabases.open(optionsFor(url, { claims }))
    const others = await other.urlFor(agent)
    expect(await Promise.all([before, others].map(isAccepted))).toEqual([true, true])
    await first[Symbol.asyncDispose]()
    expect(await Promise.all([before, others].map(isAccepted))).toEqual([false, true])
    await other[Symbol.asyncDispose]()
    expect(proxy.users.map(({ name }) => name)).toEqual(['operator'])
  })

  test('the users of a killed gateway are dropped when their claim has ended, and no others', async () => {
    const { proxy, url } = await withRoles()
    await using _proxy = proxy
    const agent = { name: 'one', agentId: randomUUID() }
    const claims = claimsIn(memoryDocuments(), 'gateway_claims')
    await using killed = await AgentDatabases.open(optionsFor(url, { claims }))
    const before = await killed.urlFor(agent)
    const { pathname } = new URL(before)
    const foreign = { name: 'parley-backup', source: pathname.slice(1), password: 'p', roles: [] }
    proxy.users.push(foreign)
    await using running = await AgentDatabases.open(optionsFor(url, { claims, userMs: 1200 }))
    const after = await running.urlFor(agent)
    await wait(2500)
    expect(await Promise.all([before, after].map(isAccepted))).toEqual([true, true])
    // The claim ends as if the gateway had not renewed it.
    const { username } = new URL(before)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    await expect.poll(() => isAccepted(before), { timeout: 5000 }).toBe(false)
    vi.useRealTimers()
    expect(await isAccepted(after)).toBe(true)
    expect(proxy.users.map(({ name }) => name)).not.toContain(username)
    expect(proxy.users).toContain(foreign)
  })

  test('a gateway that could not renew its users for a time creates them again', async () => {
    const { proxy, url } = await withRoles()
    await using _proxy = proxy
    await using databases = await AgentDatabases.open(optionsFor(url, { userMs: 1200 }))
    const agentUrl = await databases.urlFor({ name: 'one', agentId: randomUUID() })
    proxy.users.splice(1)
    expect(await isAccepted(agentUrl)).toBe(false)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 })
    await expect.poll(() => isAccepted(agentUrl), { timeout: 5000 }).toBe(true)
    vi.useRealTimers()
  })

  test('the passwords of the users are stored nowhere', async () => {
    const { proxy, url, direct } = await withRoles()
    await using _proxy = proxy
    await using databases = await AgentDatabases.open(optionsFor(url))
    const agentUrl = await databases.urlFor({ name: 'one', agentId: randomUUID() })
    const { password } = new URL(agentUrl)
    await using connection = await connectMongodb({ url: direct })
    for (const name of [connection.db.databaseName, new URL(agentUrl).pathname.slice(1)]) {
      const db = connection.client.db(name)
      for (const { name: collection } of await db.listCollections().toArray())
        expect(JSON.stringify(await db.collection(collection).find().toArray())).not.toContain(password)
    }
  })

  test.each([
    ['roles are not enforced', admin, { enforced: false }, /does not enforce roles: a user of one database/],
    [
      'clients need no user',
      admin,
      { anonymous: true },
      /does not enforce roles: it gives data to clients without/,
    ],
    [
      'the user may not create users',
      admin.slice(0, 1),
      {},
      /may not create users: grant it userAdminAnyDatabase/,
    ],
  ])(
    'where %s, each agent has its own database, and the reason is reported',
    async (_title, roles, more, reason) => {
      const { proxy, url } = await withRoles(roles, more)
      await using _proxy = proxy
      await using databases = await AgentDatabases.open(optionsFor(url))
      expect(databases.missing).toEqual([expect.stringMatching(reason)])
      expect(databases.missing[0]).toMatch(/^a MongoDB user per agent \(/)
      const agentId = randomUUID()
      const agentUrl = await databases.urlFor({ name: 'one', agentId })
      expect(agentUrl).toMatch(/^mongodb:\/\/operator:.*\/parley_\w+_one_[0-9a-f]{12}\?.*authSource=admin/)
      await using store = await openMongodbStore({ url: agentUrl, agentId })
      await store.ping()
      expect(proxy.users).toHaveLength(1)
    },
  )

  test.each([
    ['a lost connection', 'lost' as const],
    [
      'a change of the primary',
      { ok: 0, code: 10_107, errmsg: 'not primary', codeName: 'NotWritablePrimary' },
    ],
  ])('%s is not taken for a server without roles: the start fails', async (_title, failure) => {
    let isFailing = true
    const failing = (command: string) => (isFailing && command === 'createUser' ? failure : undefined)
    const { proxy, url } = await withRoles(admin, { failing })
    await using _proxy = proxy
    await expect(AgentDatabases.open(optionsFor(url))).rejects.toThrow(/Start the gateway again/)
    isFailing = false
    await using databases = await AgentDatabases.open(optionsFor(url))
    expect(databases.missing).toEqual([])
  })

  test('a lost connection without a user does not show that the server requires one', async () => {
    let finds = 0
    // The driver repeats a read once.
    const failing = (command: string) => (command === 'find' && (finds += 1) <= 2 ? 'lost' : undefined)
    const { proxy, url } = await withRoles(admin, { failing, anonymous: true })
    await using _proxy = proxy
    await expect(AgentDatabases.open(optionsFor(url))).rejects.toThrow(/Start the gateway again/)
    await using databases = await AgentDatabases.open(optionsFor(url))
    expect(databases.missing).toEqual([expect.stringMatching(/gives data to clients without a user/)])
  })

  test('a server that refuses logins of new users is reported', async () => {
    const failed = { ok: 0, code: 18, errmsg: 'Authentication failed.', codeName: 'AuthenticationFailed' }
    let isCreated = false
    const failing = (command: string) => {
      isCreated ||= command === 'createUser'
      return isCreated && command === 'saslStart' ? failed : undefined
    }
    const { proxy, url } = await withRoles(admin, { failing })
    await using _proxy = proxy
    await using databases = await AgentDatabases.open(optionsFor(url))
    expect(databases.missing).toEqual([
      expect.stringMatching(/refuses a user with the role readWrite: Authentication failed\./),
    ])
  })

  test('where the user may use one database only, agents share it, and the reason is reported', async () => {
    const { proxy, url } = await withRoles([])
    await using _proxy = proxy
    proxy.users[0]?.roles.push({ role: 'readWrite', db: new URL(url).pathname.slice(1) })
    await using databases = await AgentDatabases.open(optionsFor(url))
    expect(databases.missing).toEqual([
      expect.stringMatching(
        /^a MongoDB database and user per agent \(the user of STORE_URL may use only .*readWriteAnyDatabase/,
      ),
    ])
    const agent = { name: 'one', agentId: randomUUID() }
    expect(await databases.urlFor(agent)).toBe(url)
    proxy.users[0]?.roles.push(...admin)
    await using later = await AgentDatabases.open(optionsFor(url))
    await later.urlFor(agent)
    proxy.users[0]?.roles.splice(1)
    await using limited = await AgentDatabases.open(optionsFor(url))
    // The data has been moved, so the agent must not start with an empty store.
    await expect(limited.urlFor(agent)).rejects.toThrow(/grant it readWriteAnyDatabase/)
  })

  test('on the server of the tests, the missing part is named', async () => {
    await using databases = await AgentDatabases.open(optionsFor(server.newUrl()))
    expect(databases.missing).toEqual([expect.stringContaining('does not enforce roles')])
    await using without = await AgentDatabases.open(optionsFor(server.newUrl(), { withUsers: false }))
    expect(without.missing).toEqual([])
  })

  test('an agent has all of its earlier data, and two gateways that start together move it once', async () => {
    const url = server.newUrl()
    const agentId = randomUUID()
    await using before = await openMongodbStore({ url, agentId })
    const large = { kind: 'text', text: 'x'.repeat(600_000) } as const
    const records = [sampleRecord(), sampleRecord({ artifacts: [artifactOf(large)] })]
    for (const record of records) await before.createTask(record)
    const counted = await before.countByState()
    const stored = await Promise.all(records.map(({ id }) => before.loadTask(id)))
    const claims = claimsIn(memoryDocuments(), 'gateway_claims')
    const opened = await Promise.all([1, 2].map(() => AgentDatabases.open(optionsFor(url, { claims }))))
    const urls = await Promise.all(opened.map((one) => one.urlFor({ name: 'one', agentId })))
    expect(new Set(urls).size).toBe(1)
    for (const one of opened) await one[Symbol.asyncDispose]()
    await using store = await openMongodbStore({ url: urls[0] ?? '', agentId })
    expect(await Promise.all(records.map(({ id }) => store.loadTask(id)))).toEqual(stored)
    expect(await store.countByState()).toEqual(counted)
    expect(await before.loadTask(records[0]?.id ?? '')).toBeUndefined()
    await expect(openMongodbStore({ url, agentId })).rejects.toThrow(/is in the database parley_/)
  })

  test('an agent waits while another gateway moves its data', async () => {
    const claims = claimsIn(memoryDocuments(), 'gateway_claims')
    const agent = { name: 'one', agentId: randomUUID() }
    await using databases = await AgentDatabases.open(optionsFor(server.newUrl(), { claims, claimMs: 600 }))
    const other = () => claims.hold(`move ${agent.agentId}`, 'other gateway', 600)
    await other()
    let isReady = false
    const url = databases.urlFor(agent).then(() => (isReady = true))
    for (let times = 0; times < 5; times += 1) {
      await wait(200)
      expect([isReady, await other()]).toEqual([false, true])
    }
    await url
  })

  test('the wait for another gateway ends at a deadline and with the gateway', async () => {
    const claims = { hold: async (name: string) => !name.startsWith('move'), holders: async () => [] }
    const agent = { name: 'one', agentId: randomUUID() }
    const stopping = new AbortController()
    const { signal } = stopping
    const options = optionsFor(server.newUrl(), { claims, claimMs: 3000, waitMs: 500, signal })
    await using databases = await AgentDatabases.open(options)
    await expect(databases.urlFor(agent)).rejects.toThrow(
      /^another gateway on parley\S* has been moving its data for more than 0.5 s: wait until/,
    )
    const waits = databases.urlFor(agent)
    setTimeout(() => stopping.abort(new Error('the gateway stops')), 200)
    await expect(waits).rejects.toThrow('the gateway stops')
    await expect(databases.urlFor(agent)).rejects.toThrow('the gateway stops')
  })

  test('a gateway that has lost its claim moves nothing', async () => {
    const url = server.newUrl()
    const agentId = randomUUID()
    await (await openMongodbStore({ url, agentId }))[Symbol.asyncDispose]()
    let isHeld = true
    const claims = { hold: async () => isHeld, holders: async () => [] }
    const options = { claims, claimMs: 600, quietMs: 1800 }
    await using databases = await AgentDatabases.open(optionsFor(url, options))
    const moved = databases.urlFor({ name: 'one', agentId })
    moved.catch(() => undefined)
    await wait(800)
    isHeld = false
    await expect(moved).rejects.toThrow('the claim to move its data was lost')
    isHeld = true
    expect(await databases.urlFor({ name: 'one', agentId })).toContain('_one_')
  })

  test('data that an earlier version writes after the move is not moved while its process runs', async () => {
    const url = server.newUrl()
    const agent = { name: 'one', agentId: randomUUID() }
    await (await openMongodbStore({ url, agentId: agent.agentId }))[Symbol.asyncDispose]()
    await using first = await AgentDatabases.open(optionsFor(url))
    await first.urlFor(agent)
    // Earlier versions do not know that the data was moved.
    await using earlier = await connectMongodb({ url })
    const settings = earlier.db.collection<{ _id: string; agent_id: string; at: number }>('settings')
    const ping = { _id: `${agent.agentId}/ping`, agent_id: agent.agentId }
    let at = 0
    const write = () => settings.updateOne(ping, { $set: { at: (at += 1) } }, { upsert: true })
    await write()
    await using databases = await AgentDatabases.open(optionsFor(url, { quietMs: 600, waitMs: 2000 }))
    using timer = setInterval(() => void write(), 100)
    await expect(databases.urlFor(agent)).rejects.toThrow(/another process of this agent runs/)
    clearInterval(timer)
    expect(await databases.urlFor(agent)).toContain('_one_')
  })

  test('data is not moved while another process of the agent is idle or runs a task', async () => {
    const url = server.newUrl()
    const agentId = randomUUID()
    await using store = await openMongodbStore({ url, agentId })
    const lease = { holder: 'other', until: 1 }
    const task = sampleRecord({ lease })
    await store.createTask(task)
    await using databases = await AgentDatabases.open(optionsFor(url, { quietMs: 600, waitMs: 2000 }))
    let changes = 0
    const signs = [() => store.ping(), () => store.renewLeases('other', [task.id], (changes += 1))]
    for (const sign of signs) {
      // Each process gives one of these signs every second.
      const timer = setInterval(() => void sign(), 100)
      const moved = databases.urlFor({ name: 'one', agentId })
      await expect(moved).rejects.toThrow(/another process of this agent runs/)
      clearInterval(timer)
    }
    // An agent without data need not wait.
    await databases.urlFor({ name: 'two', agentId: randomUUID() })
    expect(await databases.urlFor({ name: 'one', agentId })).toContain('_one_')
  })
})
