import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, expect, test, vi } from 'vitest'
import { Membership, type MembershipOptions } from './membership.ts'

const did = 'did:parley:alice:agent:11111111-2222-4333-8444-555555555555'
const path = `/registry/agents/${encodeURIComponent(did)}`
const stack: AsyncDisposable[] = []
afterEach(async () => {
  while (stack.length > 0) await stack.pop()?.[Symbol.asyncDispose]()
})

/** A gateway that accepts every request and records `METHOD path`. */
async function gateway(
  answer: (line: string, response: ServerResponse) => void = (_, response) => response.end('{}'),
) {
  const told: string[] = []
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const line = `${request.method} ${request.url}`
      told.push(line)
      answer(line, response)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.push({
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  })
  return { told, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

async function member(gatewayUrl: string, more: Partial<MembershipOptions> = {}): Promise<Membership> {
  const membership = new Membership({
    gatewayUrl,
    signer: { did, key: keyPairFromSeed(randomBytes(32)) },
    tokens: { get: async () => 'token', forget: () => {} },
    clientIsDid: true,
    registers: true,
    log: makeLog({ level: 'silent', name: 'test' }),
    ...more,
  })
  stack.push(membership)
  membership.start({ url: 'http://127.0.0.1:1', figures: () => ({}) })
  return membership
}

const beaten = (told: string[]) =>
  vi.waitUntil(() => told.includes(`PUT ${path}/heartbeat`), { timeout: 100_000, interval: 10 })
const farewells = (told: string[]) => told.filter((line) => line.startsWith('DELETE'))

test('one of several processes removes its own entry once and waits until every gateway process has applied the removal', async () => {
  const heard = new Map<string, number>()
  const { told, url } = await gateway((line, response) => {
    heard.set(line, performance.now())
    response.end('{}')
  })
  const replicaId = randomUUID()
  const farewell = `DELETE ${path}?replica_id=${replicaId}`
  const membership = await member(url, { replicaId })
  await beaten(told)
  await membership.leaveFirst()
  // Other gateway processes apply a change within 2 s, and no request is refused before then.
  expect(performance.now() - (heard.get(farewell) ?? 0)).toBeGreaterThanOrEqual(2000)
  expect(farewells(told)).toEqual([farewell])
  await membership[Symbol.asyncDispose]()
  expect(farewells(told)).toHaveLength(1)
})

test('an agent with one process removes its whole entry last', async () => {
  const { told, url } = await gateway()
  const membership = await member(url)
  await beaten(told)
  await membership.leaveFirst()
  expect(farewells(told)).toEqual([])
  await membership[Symbol.asyncDispose]()
  expect(farewells(told)).toEqual([`DELETE ${path}`])
})

test('a supervised process, or one that was never registered, removes no entry', async () => {
  const refuses = await gateway((_, response) => response.writeHead(503).end('{}'))
  const { told, url } = await gateway()
  const supervised = await member(url, { replicaId: randomUUID(), registers: false })
  const unknown = await member(refuses.url, { replicaId: randomUUID() })
  await vi.waitUntil(() => refuses.told.length > 0, { timeout: 100_000, interval: 10 })
  for (const membership of [supervised, unknown]) {
    await membership.leaveFirst()
    await membership[Symbol.asyncDispose]()
  }
  expect([...farewells(told), ...farewells(refuses.told)]).toEqual([])
})

test('a gateway that disconnects or refuses the removal does not delay the stop', async () => {
  const broken = await gateway((line, response) =>
    line.startsWith('DELETE') ? response.destroy() : response.end('{}'),
  )
  const membership = await member(broken.url, { replicaId: randomUUID() })
  await beaten(broken.told)
  await membership.leaveFirst()
  expect(farewells(broken.told)).toHaveLength(1)
})

test('no heartbeat follows the removal', async () => {
  const { told, url } = await gateway()
  const membership = await member(url, { replicaId: randomUUID(), everyMs: 20 })
  await beaten(told)
  await membership.leaveFirst()
  expect(told.at(-1)).toMatch(/^DELETE/)
})
