import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { expect, test } from 'vitest'
import { RegistrationGateway } from './registration/testing.ts'

test.skipIf(!hasMongodb)(
  'a gateway without a relay reaches the relay of another gateway (needs mongod)',
  async () => {
    await using stack = new AsyncDisposableStack()
    const mongodb = stack.use(await startMongodb())
    const one = stack.use(await RegistrationGateway.open())
    const other = stack.use(await RegistrationGateway.open())
    const env = {
      STORE_URL: mongodb.newUrl(),
      DATA_DIR: path.join(one.folder, 'data'),
      PARLEY_EMBEDDED_OAUTH: 'yes',
    }
    await one.start(env, {}, { agentsDir: path.join(one.folder, 'agents') })
    await other.start({ ...env, PUBLIC_URL: one.gateway.addresses.public })
    const foreign = stack.use(
      await startForeignAgent((_request, reply) =>
        reply.result({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } }),
      ),
    )
    foreign.card = {
      name: 'Greeter',
      description: 'Greets people',
      version: '2.0.0',
      supportedInterfaces: [
        { url: `${foreign.url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ],
      capabilities: {},
      skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }],
    }
    const post = async (route: string, token: string, body: object) =>
      fetch(`${one.gateway.addresses.public}${route}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    expect((await post('/registry/agents', await one.carol(), { url: foreign.url })).status).toBe(201)
    expect((await post('/registry/agents/greeter/admit', await one.operator(), {})).status).toBe(200)
    await expect.poll(() => other.gateway.registry.find('greeter')?.admitted, { timeout: 10_000 }).toBe(true)
    for (const { gateway } of [one, other]) {
      const url = `${gateway.addresses.local}/agents/greeter/`
      const caller = new AgentClient({ url, token: await one.carol() })
      const { id } = await caller.send('hello')
      const task = await caller.wait(id, { signal: AbortSignal.timeout(30_000) })
      expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Hi' }] } })
    }
  },
  120_000,
)
