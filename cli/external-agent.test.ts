import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { type GatewayApp, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { runCli, temporaryFolder } from './testing.ts'

const folder = temporaryFolder()
let gateway: GatewayApp
/** The tokens that the external agent received. */
const tokens: string[] = []
const server = createServer((request, response) => void answer(request, response))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const said = await text(request)
  // This is the gateway's health check.
  if (said === '') return void response.end('{}')
  const { id, method } = JSON.parse(said) as { id: unknown; method: string }
  tokens.push((request.headers.authorization ?? '').replace('Bearer ', ''))
  const status = { state: 'completed', timestamp: '2026-01-01T00:00:00.000000+00:00' }
  const task = { id: taskId, context_id: taskId, kind: 'task', status, artifacts: [], history: [] }
  const error = { code: -32001, message: 'Task not found', data: {} }
  const outcome = method === 'message/send' ? { result: task } : { error }
  response.writeHead('error' in outcome ? 404 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
}

const taskId = crypto.randomUUID()
const cli = (...argv: string[]) =>
  runCli(argv, { cwd: folder.path, env: { PUBLIC_URL: gateway.addresses.public, DATA_DIR: '.parley' } })

beforeAll(async () => {
  const settings = gatewayConfig({
    PORT: '0',
    DATA_DIR: path.join(folder.path, '.parley'),
    REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
  })
  gateway = await startGatewayApp({ settings, log: makeLog({ level: 'silent', name: 'test' }) })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const skill = { id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }
  await gateway.registry.register({
    name: 'hello',
    description: 'Greets people by their name',
    url: url(),
    card: { name: 'hello', securitySchemes: { oauth: { type: 'oauth2' } } },
    skills: [{ ...skill, input_modes: ['text/plain'], output_modes: ['text/plain'] }],
    owner: 'somebody',
    origin: 'registered',
    verified: false,
    admitted: true,
    admittedBy: 'operator',
  })
})
beforeEach(() => tokens.splice(0))
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
  folder[Symbol.dispose]()
})

const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

test.each([
  ['send', ['send', 'hello', 'Ada', '--no-wait']],
  ['send with "-"', ['send', '-', 'Greet people by their name: Ada', '--no-wait']],
  ['watch', ['watch', taskId, '--agent', 'hello']],
])('%s reaches an external agent, which receives an exchanged token', async (_what, command) => {
  await cli(...command)
  expect(tokens).toEqual([expect.stringMatching(/^pxt_/)])
})

test('a token given by the user is exchanged too, and the error for its rejection explains what to do', async () => {
  const token = async (...more: string[]) => (await cli('token', ...more)).stdout.trim()
  expect(await cli('send', 'hello', 'Ada', '--no-wait', '--token', await token())).toMatchObject({ code: 0 })
  expect(tokens.splice(0)).toEqual([expect.stringMatching(/^pxt_/)])
  const other = await token('--resource', 'https://other.example')
  const refused = await cli('send', 'hello', 'Ada', '--token', other)
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain(`npx parley token --resource ${url()}`)
  expect(tokens).toEqual([])
})
