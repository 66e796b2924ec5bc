import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, bob, RegistrationGateway } from './testing.ts'

let house: RegistrationGateway

beforeEach(async () => {
  house = await RegistrationGateway.open()
})

afterEach(() => house[Symbol.asyncDispose]())

test('whoever takes over a DID, slug or address is refused with -32043, and it is logged', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice })
  await house.join(agent.url, await house.carol())
  const mallory = await house.registered(bob)
  const sameSlug = await house.playAgent({ identity: bob })
  const sameDid = await house.playAgent({ identity: alice, name: 'other', challenge: 'no route' })
  for (const [url, reason] of [
    [sameSlug.url, 'slug'],
    [sameDid.url, 'owner'],
    [agent.url, 'owner'],
  ] as const) {
    const { status, error } = await house.join(url, mallory, bob)
    expect([status, error.code, error.data.reason]).toEqual([409, -32043, reason])
  }
  expect(house.gateway.registry.find(alice.did)).toMatchObject({ url: agent.url, owner: 'dev-client' })
  const told = house.logged.filter((line) => line.includes('registry.register') && line.includes('Conflict'))
  expect(told).toHaveLength(3)
  expect(told[0]).toContain(bob.did)
  expect(told[0]).toContain(sameSlug.url)
  expect(house.logged.find((line) => line.includes('registry.register'))).toContain(
    `stranger at ${agent.url}`,
  )
})

test('a stranger that came under the DID of another, but not its key, leaves it neither name nor past', async () => {
  await house.start({ REGISTRY_OPEN: 'no' })
  const squatter = await house.playAgent({ identity: alice, name: 'Bad name', challenge: 'no route' })
  const { json } = await house.join(squatter.url, await house.registered(bob))
  expect(json).toMatchObject({ did: alice.did, slug: 'bad-name', verified: false })
  const admin = await house.operator()
  await house.send('POST', '/registry/agents/bad-name/quarantine', admin)
  const agent = await house.playAgent({ identity: alice, name: 'Good name' })
  const joined = await house.join(agent.url, await house.registered(alice), alice)
  expect(joined.status).toBe(201)
  expect(joined.json).toMatchObject({ slug: 'good-name', verified: true, admitted: false, quarantine: null })
  expect(house.gateway.registry.all()).toHaveLength(1)
})

test('the client that is the DID takes the entry over from whoever posted its address', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice })
  const stranger = await house.carol()
  await house.join(agent.url, stranger)
  const beat = (token: string) => house.send('PUT', '/registry/agents/stranger/heartbeat', token, {})
  expect((await beat(stranger)).status).toBe(200)
  const own = await house.registered(alice)
  expect((await house.join(agent.url, own, alice)).status).toBe(200)
  expect((await beat(stranger)).status).toBe(404)
  expect((await house.send('DELETE', '/registry/agents/stranger', stranger)).status).toBe(404)
  expect((await house.join(agent.url, stranger)).error.data.reason).toBe('owner')
  expect((await beat(own)).status).toBe(200)
})

test('the name of a folder of agents/ is no stranger’s, though its agent cannot be started', async () => {
  const agentsDir = path.join(house.folder, 'agents')
  await mkdir(path.join(agentsDir, 'Stranger'), { recursive: true })
  await writeFile(path.join(agentsDir, 'Stranger', 'agent.ts'), '')
  await writeFile(path.join(agentsDir, 'Stranger', 'settings.json'), '{"required":["NEVER_SET"]}')
  await house.start({}, {}, { agentsDir })
  const agent = await house.playAgent({ identity: alice })
  const { status, error } = await house.join(agent.url, await house.carol())
  expect([status, error.data.reason]).toEqual([409, 'slug'])
})
