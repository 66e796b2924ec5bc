import { expect, test } from 'vitest'
import { agent, gateway, gatewayForEachTest, restart } from '../testing.ts'

gatewayForEachTest()

async function get(route: string) {
  const response = await fetch(`${gateway().addresses.public}${route}`)
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

test('the card of a gateway with an identity contains its DID and uses the last part of the DID as its id', async () => {
  await restart({
    SERVICE_GATEWAY_DID_SEED: Buffer.alloc(32, 9).toString('base64'),
    SERVICE_GATEWAY_AUTHOR: 'ops@example.com',
    SERVICE_GATEWAY_NAME: 'front',
  })
  const { json: document } = await get('/.well-known/did.json')
  const did = document['id'] as string
  const { json } = await get('/.well-known/agent.json')
  expect(json).toMatchObject({ id: did.split(':').at(-1), did, name: 'parley' })
})

test('a gateway without an identity has a UUID in its card that stays the same after a restart at the same address', async () => {
  const first = (await get('/.well-known/agent.json')).json
  expect(first['id']).toMatch(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/)
  expect(first).not.toHaveProperty('did')
  const { port } = new URL(gateway().addresses.public)
  await restart({ PORT: port })
  expect((await get('/.well-known/agent.json')).json['id']).toBe(first['id'])
})

test('GET /agent/skills/{id} at the gateway finds a skill by every listed id and name', async () => {
  await agent('poet', 'Writes poems')
  await agent('painter', 'Paints pictures', {
    skills: [
      {
        id: 'draw/fast',
        name: 'Draw fast',
        description: 'Draws',
        tags: ['art'],
        input_modes: [],
        output_modes: [],
        documentation_path: '/agent/skills/draw%2Ffast/documentation',
      },
    ],
  })
  const { json: list } = await get('/agent/skills')
  const skills = list['skills'] as Record<string, string>[]
  expect(new Set(skills.map(({ id }) => id))).toEqual(new Set(['draw/fast', 'poet']))
  for (const listed of skills) {
    for (const key of [listed['id'], listed['name']]) {
      const { status, json } = await get(`/agent/skills/${encodeURIComponent(key ?? '')}`)
      expect([status, json]).toMatchObject([200, listed])
    }
  }
  expect((await get('/agent/skills/poet')).json).toMatchObject({ agent: 'poet', has_documentation: false })
  expect((await get('/agent/skills/draw%2Ffast')).json).toMatchObject({
    agent: 'painter',
    has_documentation: true,
    documentation_path: '/agents/painter/agent/skills/draw%2Ffast/documentation',
  })
})

test('?agent= selects one of several agents that list the same skill id', async () => {
  await agent('poet', 'Writes poems', { slug: 'poet' })
  const skill = {
    id: 'poet',
    name: 'Other poet',
    description: '',
    tags: [],
    input_modes: [],
    output_modes: [],
  }
  await agent('bard', 'Sings', { skills: [skill] })
  expect((await get('/agent/skills/poet?agent=bard')).json).toMatchObject({
    agent: 'bard',
    name: 'Other poet',
  })
  expect((await get('/agent/skills/poet?agent=poet')).json).toMatchObject({ agent: 'poet', name: 'poet' })
  expect((await get('/agent/skills/poet')).status).toBe(200)
  const missing = await get('/agent/skills/poet?agent=nobody')
  expect(missing).toMatchObject({ status: 404, json: { error: { code: -32030 } } })
})

test('a request for a skill that no admitted agent lists returns -32030', async () => {
  await agent('external', 'Does things', { admitted: false })
  for (const id of ['nothing', 'external', '__proto__', '%20']) {
    const { status, json } = await get(`/agent/skills/${id}`)
    expect([id, status, (json['error'] as { code: number }).code]).toEqual([id, 404, -32030])
  }
})
