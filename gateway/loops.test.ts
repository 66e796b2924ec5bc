import { expect, test } from 'vitest'
import { agent, call, gateway, gatewayForEachTest, post, saying } from './testing.ts'

gatewayForEachTest()

const weather = 'Weather forecast for any city'

/** Registers an agent whose address is this gateway under an unknown host name. */
async function mirror(): Promise<void> {
  const skill = { id: 'all', name: 'Weather forecast', description: weather, tags: ['weather', 'forecast'] }
  await gateway().registry.register({
    name: 'mirror',
    description: weather,
    url: gateway().addresses.local,
    card: { name: 'mirror', description: weather },
    skills: [{ ...skill, input_modes: ['text/plain'], output_modes: ['text/plain'] }],
    owner: 'mirror',
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
}

test('a message that would loop back to the gateway goes to the next agent or fails', async () => {
  await mirror()
  const nobody = await call('message/send', saying('weather forecast'))
  expect([nobody.status, nobody.json.error.data]).toMatchObject([
    503,
    { reason: 'agent_down', tried: [{ agent: 'mirror', outcome: 'busy' }] },
  ])
  const sky = await agent('sky', weather)
  const taken = await call('message/send', saying('weather forecast'))
  expect([taken.status, taken.headers.get('x-agent'), sky.sent().length]).toEqual([200, 'sky', 1])
})

test('a request may pass through the gateway a few times, but not endlessly', async () => {
  await mirror()
  const sky = await agent('sky', weather)
  sky.get = (path) => (path === '/page' ? { page: true } : undefined)
  const through = (times: number) =>
    fetch(`${gateway().addresses.local}${'/agents/mirror'.repeat(times)}/agents/sky/page`)
  expect(await (await through(7)).json()).toEqual({ page: true })
  const refused = await through(500)
  expect(refused.status).toBe(503)
  expect(await refused.json()).toMatchObject({ error: { data: { reason: 'loop' } } })
})

test('the token that the gateway sends to an agent ends a loop at the second pass', async () => {
  await mirror()
  const sky = await agent('sky', weather)
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} })
  expect((await post('/agents/mirror/agents/sky/', body)).status).toBe(401)
  expect(sky.calls).toEqual([])
})

test('an agent receives the Via header of the request, even in queries that the gateway sends', async () => {
  const sky = await agent('sky', weather)
  const via = '1.1 proxy.example'
  await post('/agents/sky/', JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} }), {
    via,
  })
  await call('tasks/get', { task_id: crypto.randomUUID() }, { via })
  expect(sky.calls.map(({ method }) => method)).toEqual(['tasks/list', 'tasks/get'])
  for (const { headers } of sky.calls)
    expect(headers.via).toMatch(/^1\.1 proxy\.example, 1\.1 parley-[\da-f]{16}$/)
})
