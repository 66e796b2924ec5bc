import { readFile } from 'node:fs/promises'
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

/** Returns the audience of the token. */
async function audienceOf(token: string): Promise<unknown> {
  const file = await readFile(path.join(folder.path, '.parley', 'dev-client.json'), 'utf8')
  const { client_id, client_secret } = JSON.parse(file) as Record<string, string>
  const said = await fetch(`${gateway.oauthIssuer}/introspect`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
    },
    body: new URLSearchParams({ token }),
  })
  return ((await said.json()) as { aud?: unknown }).aud
}

test('send requests a token for the resource of an external agent', async () => {
  const sent = await cli('send', 'hello', 'Ada', '--no-wait')
  expect(sent).toMatchObject({ code: 0, stdout: `${taskId}\n` })
  expect(tokens).toHaveLength(1)
  expect(await audienceOf(tokens[0] ?? '')).toBe(url())
})

test('watch requests a token for the resource of an external agent', async () => {
  expect((await cli('watch', taskId, '--agent', 'hello')).stderr).toContain('Task not found')
  expect(await audienceOf(tokens[0] ?? '')).toBe(url())
})

test('a token given by the user is sent unchanged, and the error for its rejection explains what to do', async () => {
  const { stdout } = await cli('token')
  const refused = await cli('send', 'hello', 'Ada', '--token', stdout.trim())
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain(`npx parley token --resource ${url()}`)
  expect(tokens).toEqual([])
})

test('parley send with "-" names the external agent that can do the task', async () => {
  const refused = await cli('send', '-', 'Greet people by their name: Ada')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain('Only hello can do this, an external agent')
  expect(tokens).toEqual([])
})
