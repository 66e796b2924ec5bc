import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { type GatewayApp, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { type BinduAgent, binduIsThere, startBindu } from '@parley/tools/testing/bindu'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from './testing.ts'

describe.skipIf(!binduIsThere())(
  'an agent of the reference implementation behind the gateway (needs bindu)',
  () => {
    let folder: string
    let gateway: GatewayApp
    let agent: BinduAgent
    const cli = (...argv: string[]) =>
      runCli(argv, { cwd: folder, env: { PUBLIC_URL: gateway.addresses.public, DATA_DIR: 'data' } })

    beforeAll(async () => {
      folder = await mkdtemp(path.join(os.tmpdir(), 'parley-bindu-gateway-'))
      const settings = gatewayConfig({
        PORT: '0',
        DATA_DIR: path.join(folder, 'data'),
        REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
      })
      gateway = await startGatewayApp({ settings, log: makeLog({ level: 'silent', name: 'test' }) })
      agent = await startBindu()
      for (const argv of [
        ['register', agent.url],
        ['admit', 'echo-agent'],
      ]) {
        const { code, stderr } = await cli(...argv)
        if (code !== 0) throw new Error(stderr)
      }
    })
    afterAll(async () => {
      await agent?.[Symbol.asyncDispose]()
      await gateway?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    })

    async function post(request: object) {
      const token = (await cli('token')).stdout.trim()
      const response = await fetch(gateway.addresses.public, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(request),
      })
      return { status: response.status, agent: response.headers.get('x-agent'), json: await response.json() }
    }
    const sending = (text: string) => {
      const parts = [{ kind: 'text', text }]
      return { message: { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts } }
    }

    test('the registry lists its DID, and the gateway resolves the DID to the agent’s document', async () => {
      const entry = await (await fetch(`${gateway.addresses.public}/registry/agents/echo-agent`)).json()
      expect(entry).toMatchObject({
        did: expect.stringMatching(/^did:bindu:/),
        admitted: true,
        verified: false,
      })
      const { did } = entry as { did: string }
      const address = `/did/resolve?did=${encodeURIComponent(did)}`
      const [atGateway, atAgent] = await Promise.all(
        [gateway.addresses.public, agent.url].map(async (base) => (await fetch(base + address)).json()),
      )
      expect(atGateway).toEqual(atAgent)
      expect(atGateway).toMatchObject({ id: did })
    })

    test.each(['echo-agent', '-'])('parley send %s prints its answer', async (name) => {
      const said = await cli('send', name, 'echo this text: Grüße 世界')
      expect(said).toMatchObject({ code: 0, stdout: 'You said: echo this text: Grüße 世界\n' })
    })

    test('POST / and tasks/get of the gateway accept ids that the agent itself would reject', async () => {
      const sent = await post({
        jsonrpc: '2.0',
        id: '1',
        method: 'message/send',
        params: sending('echo this text'),
      })
      expect(sent).toMatchObject({
        status: 200,
        agent: 'echo-agent',
        json: { id: '1', result: { kind: 'task' } },
      })
      const { id } = (sent.json as { result: { id: string } }).result
      const get = { jsonrpc: '2.0', id: 7, method: 'tasks/get', params: { task_id: id } }
      await expect
        .poll(async () => (await post(get)).json)
        .toMatchObject({
          id: 7,
          result: {
            status: { state: 'completed' },
            artifacts: [{ parts: [{ text: 'You said: echo this text' }] }],
          },
        })
      const list = { jsonrpc: '2.0', id: 8, method: 'tasks/list', params: {} }
      expect((await post(list)).status).toBe(200)
    })

    test('/agents/{slug}/ forwards requests unchanged, and the agent’s own rejection is returned', async () => {
      const token = (await cli('token')).stdout.trim()
      const client = new AgentClient({ url: `${gateway.addresses.public}/agents/echo-agent`, token })
      await expect(client.send('echo this text')).rejects.toMatchObject({ code: -32700 })
    })
  },
)
