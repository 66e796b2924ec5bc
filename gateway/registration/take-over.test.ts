import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, bob, RegistrationGateway } from './testing.ts'

let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})

afterEach(() => deployment[Symbol.asyncDispose]())

test('an attempt to take over a DID, slug or address is refused with -32043 and logged', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  await deployment.join(agent.url, await deployment.carol())
  const mallory = await deployment.registered(bob)
  const sameSlug = await deployment.serveAgent({ identity: bob })
  const sameDid = await deployment.serveAgent({ identity: alice, name: 'other', challenge: 'no route' })
  for (const [url, reason] of [
    [sameSlug.url, 'slug'],
    [sameDid.url, 'owner'],
    [agent.url, 'owner'],
  ] as const) {
    const { status, error } = await deployment.join(url, mallory, bob)
    expect([status, error.code, error.data.reason]).toEqual([409, -32043, reason])
  }
  expect(deployment.gateway.registry.find(alice.did)).toMatchObject({ url: agent.url, owner: 'dev-client' })
  const told = deployment.logged.filter(
    (line) => line.includes('registry.register') && line.includes('Conflict'),
  )
  expect(told).toHaveLength(3)
  expect(told[0]).toContain(bob.did)
  expect(told[0]).toContain(sameSlug.url)
  expect(deployment.logged.find((line) => line.includes('registry.register'))).toContain(
    `external at ${agent.url}`,
  )
})

test('the real agent inherits neither the name nor the history of an entry with its stolen DID', async () => {
  await deployment.start({ REGISTRY_OPEN: 'no' })
  const squatter = await deployment.serveAgent({ identity: alice, name: 'Bad name', challenge: 'no route' })
  const { json } = await deployment.join(squatter.url, await deployment.registered(bob))
  expect(json).toMatchObject({ did: alice.did, slug: 'bad-name', verified: false })
  const admin = await deployment.operator()
  await deployment.send('POST', '/registry/agents/bad-name/quarantine', admin)
  const agent = await deployment.serveAgent({ identity: alice, name: 'Good name' })
  const joined = await deployment.join(agent.url, await deployment.registered(alice), alice)
  expect(joined.status).toBe(201)
  expect(joined.json).toMatchObject({ slug: 'good-name', verified: true, admitted: false, quarantine: null })
  expect(deployment.gateway.registry.all()).toHaveLength(1)
})

test('the client whose id is the DID takes over an entry registered by another client', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  const external = await deployment.carol()
  await deployment.join(agent.url, external)
  const beat = (token: string) => deployment.send('PUT', '/registry/agents/external/heartbeat', token, {})
  expect((await beat(external)).status).toBe(200)
  const own = await deployment.registered(alice)
  expect((await deployment.join(agent.url, own, alice)).status).toBe(200)
  expect((await beat(external)).status).toBe(404)
  expect((await deployment.send('DELETE', '/registry/agents/external', external)).status).toBe(404)
  expect((await deployment.join(agent.url, external)).error.data.reason).toBe('owner')
  expect((await beat(own)).status).toBe(200)
})

test('the folder names in agents/ are reserved even if the agent cannot start', async () => {
  const agentsDir = path.join(deployment.folder, 'agents')
  await mkdir(path.join(agentsDir, 'External'), { recursive: true })
  await writeFile(path.join(agentsDir, 'External', 'agent.ts'), '')
  await writeFile(path.join(agentsDir, 'External', 'settings.json'), '{"required":["NEVER_SET"]}')
  await deployment.start({}, {}, { agentsDir })
  const agent = await deployment.serveAgent({ identity: alice })
  const { status, error } = await deployment.join(agent.url, await deployment.carol())
  expect([status, error.data.reason]).toEqual([409, 'slug'])
})
