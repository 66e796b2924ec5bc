import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { TestAgent, TestDefinition } from '@parley/agent/testing'
import { testAgent } from '@parley/agent/testing'
import { afterEach } from 'vitest'
import { bearer, gateway, identityProvider } from '../testing.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

export type Era = '2026-07-28' | '2025-11-25'

export interface McpClientOptions extends Pick<ClientOptions, 'capabilities'> {
  path?: string
  caller?: string
}

/** Connects a client of the SDK that speaks one revision. */
export async function mcpClient(era: Era, options: McpClientOptions = {}): Promise<Client> {
  const { path = '/mcp', caller = 'alice', capabilities = {} } = options
  const url = new URL(path, gateway().addresses.public)
  const requestInit = { headers: { authorization: bearer(caller) } }
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities, ...(era === '2026-07-28' && { versionNegotiation: { mode: { pin: era } } }) },
  )
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }))
  open.push({ [Symbol.asyncDispose]: () => client.close() })
  return client
}

/** Starts an agent with one skill for each handler and registers it. */
export async function mcpAgent(
  name: string,
  handle: TestDefinition['handle'],
  skills: object[] = [{}],
  more: object = {},
): Promise<TestAgent> {
  const env = { GATEWAY_URL: gateway().addresses.public }
  const skill = { id: 'run', name: 'Run', description: `Runs ${name}`, tags: [] }
  const modes = { input_modes: ['text/plain'], output_modes: ['text/plain'] }
  const listed = skills.map((one) => ({ ...skill, ...modes, ...one }))
  const authored = listed.map(({ id, name: title, description }) => ({
    id,
    name: title,
    description,
    tags: [],
    inputModes: ['*/*'],
    outputModes: ['*/*'],
  }))
  const definition = { name, skills: authored, handle, ...more }
  const one = await testAgent(definition as TestDefinition, { identityProvider: identityProvider(), env })
  open.push(one)
  const card = await (await fetch(`${one.url}/.well-known/agent.json`)).json()
  await gateway().registry.register({
    name,
    description: `Agent ${name}`,
    url: one.url,
    card: card as never,
    skills: listed as never,
    owner: name,
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  return one
}

/** Posts a message as it is. */
export async function postMcp(body: string, headers: Record<string, string> = {}, path = '/mcp') {
  const response = await fetch(new URL(path, gateway().addresses.public), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: bearer('alice'),
      ...headers,
    },
    body,
  })
  const text = await response.text()
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  const json = (text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : {}) as any
  return { status: response.status, headers: response.headers, text, json }
}

export interface RpcOptions {
  capabilities?: object
  path?: string
  caller?: string
}

const meta = 'io.modelcontextprotocol'
/** What a client declares that supports task handles. */
export const withTasks = { extensions: { [`${meta}/tasks`]: {} } }

/** Sends a request of 2026-07-28 and returns its response. */
export async function rpc(method: string, params: Record<string, unknown>, options: RpcOptions = {}) {
  const { capabilities = {}, path, caller = 'alice' } = options
  const version = '2026-07-28'
  const envelope = { [`${meta}/protocolVersion`]: version, [`${meta}/clientCapabilities`]: capabilities }
  const { _meta, ...rest } = params
  const named = params['name'] ?? params['uri'] ?? params['taskId']
  const headers = {
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(typeof named === 'string' && { 'mcp-name': named }),
    authorization: bearer(caller),
  }
  const body = { ...rest, _meta: { ...envelope, ...(_meta as object) } }
  return postMcp(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: body }), headers, path)
}
