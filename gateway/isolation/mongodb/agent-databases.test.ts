import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { openMongodbStore } from '@parley/engine/store/mongodb/store'
import { artifactOf, sampleRecord } from '@parley/engine/store/sample-record.cases'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { makeLog } from '@parley/kit/process/log'
import { type RoleProxy, startRoleProxy } from '@parley/tools/testing/mongodb/roles'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { claimsIn } from '../../store/claims.ts'
import { AgentDatabases, type AgentDatabasesOptions } from './agent-databases.ts'
import { databaseNameFor, withDatabase } from './agent-url.ts'

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
    return { url, dataDir: '/data', withUsers: true, names: [], claims, quietMs: 200, log, ...more }
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

  test('the users end with the gateway, and the next start sets other passwords', async () => {
    const { proxy, url } = await withRoles()
    await using _proxy = proxy
    const agent = { name: 'one', agentId: randomUUID() }
    const first = await AgentDatabases.open(optionsFor(url))
    const before = await first.urlFor(agent)
    expect(await first.urlFor(agent)).toBe(before)
    // Two replicas that start together get one user.
    expect(proxy.users).toHaveLength(2)
    // Another gateway does not change the password.
    await using other = await AgentDatabases.open(optionsFor(url, { dataDir: '/other' }))
    await other.urlFor(agent)
    await (await connectMongodb({ url: before }))[Symbol.asyncDispose]()
    // As after a kill, the user still exists.
    await using second = await AgentDatabases.open(optionsFor(url, { names: ['one'] }))
    const after = await second.urlFor(agent)
    await expect(connectMongodb({ url: before })).rejects.toThrow(/refuses this user/)
    await (await connectMongodb({ url: after }))[Symbol.asyncDispose]()
    await using third = await AgentDatabases.open(optionsFor(url, { names: ['two'] }))
    expect(third.missing).toEqual([])
    await expect(connectMongodb({ url: after })).rejects.toThrow(/refuses this user/)
    await first[Symbol.asyncDispose]()
    await other[Symbol.asyncDispose]()
    expect(proxy.users.map(({ name }) => name)).toEqual(['operator'])
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
    const opened = await Promise.all(
      ['/a', '/b'].map((dataDir) => AgentDatabases.open(optionsFor(url, { dataDir, claims }))),
    )
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

  test('a gateway that has lost its claim moves nothing', async () => {
    const url = server.newUrl()
    const agentId = randomUUID()
    await (await openMongodbStore({ url, agentId }))[Symbol.asyncDispose]()
    let isHeld = true
    const claims = { hold: async () => isHeld, holders: async () => [] }
    const options = { claims, claimMs: 200, quietMs: 1200 }
    await using databases = await AgentDatabases.open(optionsFor(url, options))
    const moved = databases.urlFor({ name: 'one', agentId })
    moved.catch(() => undefined)
    await wait(400)
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

test.each([
  ['parley', 'calculator', /^parley_calculator_[0-9a-f]{12}$/],
  ['p'.repeat(63), 'Ünïcode agent/with "odd" $names.', /^p{31}_-n-code-agent-with_[0-9a-f]{12}$/],
  ['bäse', 'x', /^b-se_x_[0-9a-f]{12}$/],
])('the database of %s for the agent %s has a legal name', (base, name, pattern) => {
  const made = databaseNameFor(base, { name, agentId: 'id' })
  expect(made).toMatch(pattern)
  expect(Buffer.byteLength(made)).toBeLessThanOrEqual(63)
  expect(databaseNameFor(base, { name, agentId: 'other' })).not.toBe(made)
  expect(databaseNameFor(`${base}x`, { name, agentId: 'id' })).not.toBe(made)
})

const user = { name: 'parley-1', password: 'a/b' }

test.each([
  ['mongodb://h/parley', null, 'mongodb://h/own'],
  ['mongodb://h', user, 'mongodb://parley-1:a%2Fb@h/own?authSource=own'],
  [
    'mongodb://u:p@a:1,b:2/parley?replicaSet=rs&tls=true&authSource=admin&authMechanism=MONGODB-X509&tlsCertificateKeyFile=/f',
    user,
    'mongodb://parley-1:a%2Fb@a:1,b:2/own?replicaSet=rs&tls=true&authSource=own',
  ],
  [
    'mongodb+srv://u:p@cluster.example.com/?retryWrites=true',
    user,
    'mongodb+srv://parley-1:a%2Fb@cluster.example.com/own?retryWrites=true&authSource=own',
  ],
  ['mongodb://u:p@h/parley?AuthSource=x&tls=true', null, 'mongodb://h/own?tls=true'],
  [
    'mongodb://h/parley?tlsCAFile=certificates%2Fca.pem',
    null,
    `mongodb://h/own?tlsCAFile=${encodeURIComponent(path.resolve('certificates/ca.pem'))}`,
  ],
])('from %s, the URL of another user keeps the hosts and options', (url, as, expected) => {
  expect(withDatabase(url, { database: 'own', authSource: 'own', as })).toBe(expected)
})

test('the URL of the gateway’s user keeps its credentials and their source', () => {
  const change = (url: string, authSource?: string) => withDatabase(url, { database: 'own', authSource })
  expect(change('mongodb://u:p@h/parley?tls=true', 'parley')).toBe(
    'mongodb://u:p@h/own?tls=true&authSource=parley',
  )
  expect(change('mongodb://u:p@h/parley?authSource=admin', 'admin')).toBe(
    'mongodb://u:p@h/own?authSource=admin',
  )
  expect(change('mongodb://h/parley?tls=true')).toBe('mongodb://h/own?tls=true')
})
