import path from 'node:path'
import { gatewayIdentity, type Identity } from '@parley/kit/did/identity'
import { signNextKey } from '@parley/kit/did/key-link'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { RegistrationGateway } from './testing.ts'

const known = { timeout: 100_000, interval: 50 }
const seed = (byte: number) => Buffer.alloc(32, byte)

/** Returns an agent's identity before its key was rotated, after that, and after the old key was retired. */
function lives(byte: number): { old: Identity; now: Identity; retired: Identity } {
  const [first, second] = [keyPairFromSeed(seed(byte)), keyPairFromSeed(seed(byte + 100))]
  const named = { author: 'alice', name: `agent${byte}` }
  const next = {
    publicKeyBase58: second.publicKeyBase58,
    signature: signNextKey(first, second.publicKeyBase58),
  }
  const as = (retired: boolean) =>
    gatewayIdentity({
      ...named,
      seed: seed(byte + 100),
      history: [{ publicKeyBase58: first.publicKeyBase58, ...(retired && { retired: true as const }) }, next],
    })
  return { old: gatewayIdentity({ ...named, seed: seed(byte) }), now: as(false), retired: as(true) }
}

describe.skipIf(!hasMongodb)('agents that register at two gateways (needs mongod)', () => {
  let mongodb: MongodbServer
  let one: RegistrationGateway
  let other: RegistrationGateway
  const stack = new AsyncDisposableStack()

  beforeAll(async () => {
    mongodb = stack.use(await startMongodb())
    one = stack.use(await RegistrationGateway.open())
    other = stack.use(await RegistrationGateway.open())
    const env = {
      STORE_URL: mongodb.newUrl(),
      RATE_LIMIT_PER_MINUTE: '0',
      DATA_DIR: path.join(one.folder, 'data'),
      REGISTRY_OPEN: 'no',
      PARLEY_EMBEDDED_OAUTH: 'yes',
    }
    await one.start(env)
    await other.start({ ...env, PUBLIC_URL: one.gateway.addresses.public })
  })
  afterAll(() => stack.disposeAsync())

  const at = (
    deployment: RegistrationGateway,
    method: string,
    route: string,
    bearer: string,
    body?: object,
  ) =>
    fetch(`${deployment.gateway.addresses.local}${route}`, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const join = async (deployment: RegistrationGateway, url: string, bearer: string) => {
    const answer = await at(deployment, 'POST', '/registry/agents', bearer, { url })
    const json = (await answer.json()) as { id?: string; error?: { data: { reason: string } } }
    return { status: answer.status, id: json.id, reason: json.error?.data.reason }
  }
  const keysOf = (deployment: RegistrationGateway, { did }: Identity) =>
    deployment.gateway.registry.find(did)?.keys

  test('an agent that registers with both gateways has one entry and keeps a concurrent admission', async () => {
    const [carol, admin] = [await one.carol(), await one.operator()]
    for (let byte = 10; byte < 15; byte += 1) {
      const { old } = lives(byte)
      const agent = await one.serveAgent({ identity: old, name: `agent ${byte}` })
      const came = await Promise.all([join(one, agent.url, carol), join(other, agent.url, carol)])
      expect(came.map(({ status }) => status).filter((status) => status !== 200 && status !== 201)).toEqual(
        [],
      )
      expect(new Set(came.map(({ id }) => id)).size).toBe(1)
      const slug = `agent-${byte}`
      const [admitted, again] = await Promise.all([
        at(one, 'POST', `/registry/agents/${slug}/admit`, admin),
        join(other, agent.url, carol),
      ])
      expect([admitted.status, again.status]).toEqual([200, 200])
      for (const deployment of [one, other])
        await vi.waitFor(() => expect(deployment.gateway.registry.find(slug)?.admitted).toBe(true), known)
    }
  })

  test('the newer key wins if an agent registers before and after a key rotation in any order', async () => {
    const carol = await one.carol()
    for (let byte = 20; byte < 25; byte += 1) {
      const { old, now } = lives(byte)
      const script = { identity: old, name: `agent ${byte}` }
      const before = await one.serveAgent(script)
      const after = await one.serveAgent({ ...script, identity: now })
      expect((await join(one, before.url, carol)).status).toBe(201)
      const [changed] = await Promise.all([join(one, after.url, carol), join(other, before.url, carol)])
      expect(changed.status).toBe(200)
      // The other gateway may still have an outdated entry, which must not overwrite the newer one.
      const late = await join(other, before.url, carol)
      expect([late.status, late.reason]).toEqual([409, 'key'])
      for (const deployment of [one, other])
        await vi.waitFor(() => expect(keysOf(deployment, now)).toContain(now.key.publicKeyBase58), known)
    }
  })

  test('a key that was retired at one gateway is refused at the other', async () => {
    const carol = await one.carol()
    const { old, now, retired } = lives(30)
    const before = await one.serveAgent({ identity: now, name: 'agent 30' })
    const after = await one.serveAgent({ identity: retired, name: 'agent 30' })
    expect((await join(one, before.url, carol)).status).toBe(201)
    expect((await join(one, after.url, carol)).status).toBe(200)
    const late = await join(other, before.url, carol)
    expect([late.status, late.reason]).toEqual([409, 'key'])
    for (const deployment of [one, other])
      await vi.waitFor(() => expect(keysOf(deployment, now)).not.toContain(old.key.publicKeyBase58), known)
  })
})
