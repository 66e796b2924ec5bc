import { expect, test, vi } from 'vitest'
import { ReferenceGrants } from './routing/forwarding/reference-grants.ts'
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

test('the grant of one agent is worthless to another client and for other methods', async () => {
  const { id, grant } = await referring()
  const headers = { 'x-parley-references': grant }
  const asMallory = await readAs(bearer('mallory'), id, grant)
  const without = await readAs(bearer('mallory'), id)
  expect([asMallory.status, asMallory.text]).toEqual([without.status, without.text])
  const list = await call('tasks/list', {}, { ...headers, authorization: bearer('sky') })
  expect(list.text).not.toContain(id)
})

test('a grant ends with the client’s token and after a minute', async () => {
  await agent('sky', 'Weather forecast for any city')
  const grants = new ReferenceGrants(new Uint8Array(32))
  const introspection = { active: true }
  const token = { caller: {} as never, subject: { text: 'secret-token', hash: '', introspection } }
  const grant = grants.seal(token, 'agent', ['a', 'B']) ?? ''
  expect(Buffer.from(grant, 'base64url').toString('latin1')).not.toContain('secret-token')
  expect(grants.open(grant, 'b')).toMatchObject({ token: 'secret-token', agent: 'agent' })
  expect(grants.open(grant, 'c')).toBeUndefined()
  expect(new ReferenceGrants(new Uint8Array(32).fill(1)).open(grant, 'a')).toBeUndefined()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 })
  expect(grants.open(grant, 'a')).toBeUndefined()
  vi.useRealTimers()
})

test('a client’s own header is not forwarded, and a message without references carries none', async () => {
  const sky = await agent('sky', 'Weather forecast for any city')
  await post('/agents/sky/', rpc(saying('a preference for rain')), { 'x-parley-references': 'forged' })
  expect(sky.sent().at(-1)?.headers).not.toHaveProperty('x-parley-references')
  expect(identityProvider().introspections).toBeGreaterThan(0)
})
