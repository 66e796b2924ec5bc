import { randomUUID } from 'node:crypto'
import type { TestCaller } from '@parley/agent/testing'
import { price } from '@parley/tools/testing/paid-agent'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HandlerContext } from '../../author/context.ts'
import { TestCaller as Caller, type TestAgent, testAgent } from '../../testing.ts'

const gateway = 'http://gateway.example'
const [planner, booker] = ['did:parley:p:agent:planner', 'did:parley:p:agent:booker']
const contexts = new Map<string, HandlerContext>()

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({
    handle: async (context) => {
      contexts.set(context.task.id, context)
      if (context.text === 'ask') return context.ask('what?')
      if (context.text === 'wait')
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
      return context.text
    },
  })
})
afterAll(() => agent[Symbol.asyncDispose]())

/** A caller whose token names the client and the agents that act for it, the current one first. */
function delegated(client: string, agents: string[]): TestCaller {
  let act: { sub: string; act?: object } | undefined
  for (const sub of agents.toReversed()) act = { sub, ...(act && { act }) }
  const token = agent.identityProvider.issue(client, {
    aud: agent.did,
    act: { sub: gateway, ...(act && { act: { ...act } }) } as never,
  })
  return new Caller({ url: agent.url, token })
}

const failure = (call: Promise<unknown>) =>
  call.then(
    () => 'answered',
    ({ code }: { code: number }) => code,
  )

test('the handler sees the calling agent as caller and the client in onBehalfOf', async () => {
  const client = `client-${randomUUID()}`
  const task = await delegated(client, [booker, planner]).sendAndWait('hello')
  expect(contexts.get(task.id)).toMatchObject({
    caller: { id: booker, did: booker, signed: false },
    onBehalfOf: { id: client },
  })
})

test('a client that calls directly is the caller, and onBehalfOf is undefined', async () => {
  const task = await agent.caller('did:parley:a:agent:alice').sendAndWait('hello')
  expect(contexts.get(task.id)).toMatchObject({ caller: { id: 'did:parley:a:agent:alice' } })
  expect(contexts.get(task.id)?.onBehalfOf).toBeUndefined()
  expect(task).not.toHaveProperty('metadata')
})

test('a client reads, follows and cancels the tasks that an agent created for it', async () => {
  const name = `client-${randomUUID()}`
  const [client, agents] = [agent.caller(name), delegated(name, [planner])]
  const { id } = await agents.send('wait')
  expect(await client.get(id)).toMatchObject({ id })
  expect(await client.events(id)).toMatchObject({ task_id: id })
  const followed = client.resubscribe(id, 0)
  expect((await followed.next()).value).toMatchObject({ task_id: id })
  expect(await client.cancel(id)).toMatchObject({ status: { state: 'canceled' } })
  const states: string[] = []
  for await (const event of followed) if (event.kind === 'status-update') states.push(event.status.state)
  expect(states.at(-1)).toBe('canceled')
})

test('the client does not find the task by any other method, and its lists do not contain the task', async () => {
  const name = `client-${randomUUID()}`
  const [client, agents] = [agent.caller(name), delegated(name, [planner])]
  const { id, context_id: contextId } = await agents.sendAndWait('hello')
  expect(await client.list()).toEqual([])
  const webhook = { id: randomUUID(), url: 'http://127.0.0.1:1/' }
  expect(await failure(client.call('tasks/feedback', { id, feedback: 'good' }))).toBe(-32001)
  expect(await failure(client.setPushConfig(id, webhook))).toBe(-32001)
  expect(await failure(client.send({ text: 'more', taskId: id }))).toBe(-32001)
  expect(await failure(client.send({ text: 'more', contextId }))).toBe(-32020)
  expect(await failure(client.send({ text: 'more', referenceTaskIds: [id] }))).toBe(-32001)
  expect(await failure(client.call('contexts/clear', { context_id: contextId }))).toBe(-32020)
})

test.each(['get', 'events', 'cancel', 'resubscribe'] as const)(
  'neither an agent, another agent, nor another client finds the task of a client or of an agent (%s)',
  async (method) => {
    const name = `client-${randomUUID()}`
    const [client, agents] = [agent.caller(name), delegated(name, [planner])]
    const [own, created] = [await client.send('wait'), await agents.send('wait')]
    const call = (caller: TestCaller, id: string) =>
      failure(method === 'resubscribe' ? caller.resubscribe(id).next() : caller[method](id))
    const others = [
      delegated(name, [booker]),
      delegated(name, [booker, planner]),
      agent.caller(`other-${name}`),
      agent.caller(name.slice(0, -1)),
      delegated(`other-${name}`, [planner]),
    ]
    for (const other of others) expect(await call(other, created.id)).toBe(-32001)
    for (const other of [...others, agents]) expect(await call(other, own.id)).toBe(-32001)
    await client.cancel(own.id)
    await client.cancel(created.id)
  },
)

test('a message of an agent names the parent task, which the task reports with the authenticated agent', async () => {
  const [parentTaskId, rootTaskId] = [randomUUID(), randomUUID()]
  const metadata = { parent_task_id: parentTaskId, root_task_id: rootTaskId, other: 1 }
  const task = await delegated('client', [planner]).sendAndWait({ text: 'hello', metadata })
  expect(task.metadata).toEqual({
    parent: { agent: planner, task_id: parentTaskId },
    root_task_id: rootTaskId,
  })
})

test.each([
  { parent_task_id: 'x'.repeat(1000) },
  { parent_task_id: { agent: planner } },
  { parent_task_id: ['\u001b[2J'] },
  { root_task_id: randomUUID() },
])('malformed ancestors %j count as absent', async (metadata) => {
  const task = await delegated('client', [planner]).sendAndWait({
    text: 'hello',
    metadata: metadata as never,
  })
  expect(task).not.toHaveProperty('metadata')
})

test('a client that calls directly cannot name a parent', async () => {
  const metadata = { parent_task_id: randomUUID(), root_task_id: randomUUID() }
  expect(await agent.caller('alice').sendAndWait({ text: 'hello', metadata })).not.toHaveProperty('metadata')
})

test.each(['/api/start-payment-session', '/api/payment-status/x', '/payments'])(
  'an agent that acts for a client uses no payment route (%s)',
  async (path) => {
    await using paid = await testAgent(
      { executionCost: price, handle: () => 'done' },
      { store: 'memory', identityProvider: agent.identityProvider },
    )
    const act = { sub: gateway, act: { sub: planner } }
    const token = agent.identityProvider.issue('client', { aud: paid.did, act })
    const method = path.startsWith('/api/start') ? 'POST' : 'GET'
    const response = await fetch(`${paid.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
    })
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ error: { data: { reason: 'delegated_token' } } })
  },
)
