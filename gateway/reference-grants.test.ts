import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { type GrantRecords, ownGrants, sharedGrants } from './routing/forwarding/grant-records.ts'
import { ReferenceGrants } from './routing/forwarding/reference-grants.ts'
import { openGatewayMongodb } from './store/mongodb/database.ts'
import { agent, bearer, call, gatewayForEachTest, identityProvider, post, saying } from './testing.ts'

gatewayForEachTest()

/** Two agents, of which `writer` holds a task of alice and `sky` receives a message that refers to it. */
async function referring(path = '/') {
  const writer = await agent('writer', 'Writes fables')
  const sky = await agent('sky', 'Weather forecast for any city')
  const held = await post('/agents/writer/', rpc(saying('a fable')))
  const id: string = held.json.result.id
  // The holder answers only to the client.
  writer.on['tasks/get'] = ({ params, headers }) =>
    clientOf(headers.authorization) === 'alice' ? writer.tasks.get(String(params['task_id'])) : undefined
  const other = await post('/agents/writer/', rpc(saying('another fable')))
  await post(path, rpc(saying('weather forecast', { referenceTaskIds: [id] })))
  const sent = sky.sent().at(-1)
  return {
    id,
    otherId: other.json.result.id as string,
    grant: String(sent?.headers['x-parley-references']),
    sent,
    sky,
  }
}

/** The client in the statement that the gateway signs for an agent. */
function clientOf(authorization = ''): unknown {
  const payload = Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString()
  return payload === '' ? undefined : (JSON.parse(payload) as { client_id: string }).client_id
}

const rpc = (params: object, method = 'message/send') =>
  JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })

const readAs = (authorization: string, taskId: string, grant?: string) =>
  call(
    'tasks/get',
    { task_id: taskId },
    {
      authorization,
      ...(grant !== undefined && { 'x-parley-references': grant }),
    },
  )

test.each(['/', '/agents/sky/'])(
  'an agent that a message through %s reaches may read the tasks that it refers to, and nothing else',
  async (path) => {
    const { id, otherId, grant } = await referring(path)
    expect((await readAs(bearer('sky'), id, grant)).json.result).toMatchObject({ id })
    for (const [who, taskId, given] of [
      ['sky', otherId, grant],
      ['sky', id, `${grant}A`],
      ['sky', id, 'A'.repeat(grant.length)],
    ] as const)
      expect((await readAs(bearer(who), taskId, given)).json.error).toMatchObject({ code: -32001 })
  },
)

test('a message may name the field with the references in escaped characters', async () => {
  const { id, sky } = await referring()
  const body = rpc(saying('weather forecast', { referenceTaskIds: [id] })).replace(
    'eference',
    '\\u0065ference',
  )
  await post('/agents/sky/', body)
  const grant = String(sky.sent().at(-1)?.headers['x-parley-references'])
  expect((await readAs(bearer('sky'), id, grant)).json.result).toMatchObject({ id })
})

test('the grant of one agent is worthless to another client and for other methods', async () => {
  const { id, grant } = await referring()
  const headers = { 'x-parley-references': grant }
  const asMallory = await readAs(bearer('mallory'), id, grant)
  const without = await readAs(bearer('mallory'), id)
  expect([asMallory.status, asMallory.text]).toEqual([without.status, without.text])
  const list = await call('tasks/list', {}, { ...headers, authorization: bearer('sky') })
  expect(list.text).not.toContain(id)
})

test('a grant ends with the client’s token', async () => {
  const { id, grant } = await referring()
  expect((await readAs(bearer('sky'), id, grant)).json.result).toMatchObject({ id })
  identityProvider().revoke(bearer('alice').replace('Bearer ', ''))
  expect((await readAs(bearer('sky'), id, grant)).status).toBe(401)
})

test('the header has no form of the client’s token, and the same length for each token', async () => {
  const { grant } = await referring()
  expect(grant).toMatch(/^[\w-]{43}$/)
})

const introspection = { active: true }
const subject = { text: 'secret-token', hash: '', introspection }
const caller = { id: 'alice', subject: 'alice', scopes: new Set<never>() }
const token = { caller, subject }

/** The grants of a gateway. */
function grantsOf(records: GrantRecords, seed = 0): ReferenceGrants {
  const log = makeLog({ level: 'silent', name: 'test' })
  return new ReferenceGrants({ secretKey: new Uint8Array(32).fill(seed), records, log })
}

function cases(name: string, open: () => Promise<GrantRecords>): void {
  test(`each gateway finds a grant for a minute (${name})`, async () => {
    const records = await open()
    const save = vi.spyOn(records, 'save')
    const [one, other, foreign] = [grantsOf(records), grantsOf(records), grantsOf(records, 1)]
    const secret = (await one.create(token, 'agent', ['a', 'B'])) ?? ''
    expect(await other.find(secret, 'b')).toMatchObject({ token: 'secret-token', agent: 'agent' })
    expect(await other.find(secret, 'c')).toBeUndefined()
    expect(await foreign.find(secret, 'a')).toBeUndefined()
    expect(
      await other.find(
        secret.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
        'a',
      ),
    ).toBeUndefined()
    // What is stored reveals neither the token nor the secret that the agent has.
    const [saved] = save.mock.calls[0] ?? []
    const stored = saved?.id + Buffer.from(saved?.sealed ?? '', 'base64url').toString('latin1')
    for (const text of ['secret-token', secret, 'agent']) expect(stored).not.toContain(text)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 })
    expect(await other.find(secret, 'a')).toBeUndefined()
    vi.useRealTimers()
  })
}

cases('one gateway', async () => ownGrants())
cases('memory', async () => sharedGrants(memoryDocuments()))
describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  const stack = new AsyncDisposableStack()
  afterAll(() => stack.disposeAsync())
  cases('MongoDB', async () => {
    const server = stack.use(await startMongodb())
    const database = stack.use(await openGatewayMongodb({ url: server.newUrl() }))
    return database.guard(sharedGrants(database.documents))
  })
})

test('the only gateway on a database keeps neither expired grants nor more than 32 MiB of them', async () => {
  const records = ownGrants()
  const until = Date.now() + 60_000
  const large = 'x'.repeat(1024 * 1024)
  const save = (id: string, owner: string, sealed = large) => records.save({ id, sealed, until, owner })
  for (let number = 0; number < 40; number += 1) await save(`${number}`, 'alice')
  const found = await Promise.all(Array.from({ length: 40 }, (_, number) => records.find(`${number}`)))
  expect(found.map((sealed) => sealed !== undefined)).toEqual(found.map((_, number) => number >= 8))
  vi.useFakeTimers({ toFake: ['Date'], now: until })
  await records.save({ id: 'next', sealed: large, until: until + 60_000, owner: 'bob' })
  expect(await records.find('39')).toBeUndefined()
  expect(await records.find('next')).toBe(large)
  vi.useRealTimers()
})

test.each([
  ['large', 'x'.repeat(1024 * 1024), 100],
  ['many', 'x', 10_100],
])('a client with %s grants displaces only its own ones', async (_, sealed, count) => {
  const records = ownGrants()
  const until = Date.now() + 60_000
  const save = (id: string, owner: string, text = sealed) => records.save({ id, sealed: text, until, owner })
  for (const id of ['alice 1', 'alice 2']) await save(id, 'alice')
  for (let number = 0; number < count; number += 1) await save(`${number}`, 'mallory')
  for (const id of ['bob 1', 'alice 3']) await save(id, id.split(' ')[0] ?? '')
  for (const id of ['alice 1', 'alice 2', 'alice 3', 'bob 1', `${count - 1}`])
    expect([id, await records.find(id)]).toEqual([id, sealed])
  expect(await records.find('0')).toBeUndefined()
})

test('a message without a grant is sent if the database fails, and a token that is bound to a key gets none', async () => {
  const down = { ...ownGrants(), save: () => Promise.reject(new Error('down')) }
  expect(await grantsOf(down).create(token, 'agent', ['a'])).toBeUndefined()
  const bound = { ...token, subject: { ...subject, introspection: { active: true, cnf: { jkt: 'key' } } } }
  expect(await grantsOf(ownGrants()).create(bound, 'agent', ['a'])).toBeUndefined()
  expect(await grantsOf(ownGrants()).create(token, 'agent', [])).toBeUndefined()
})

test('a client’s own header is not forwarded, and a message without references carries none', async () => {
  const sky = await agent('sky', 'Weather forecast for any city')
  await post('/agents/sky/', rpc(saying('a preference for rain')), { 'x-parley-references': 'forged' })
  expect(sky.sent().at(-1)?.headers).not.toHaveProperty('x-parley-references')
  expect(identityProvider().introspections).toBeGreaterThan(0)
})
