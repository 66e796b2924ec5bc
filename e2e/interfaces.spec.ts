import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { TestWallet } from '@parley/tools/testing/paid-agent'
import { expect } from '@playwright/test'
import type { PaymentRequired } from '@x402/core/types'
import OpenAI from 'openai'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

const root = path.join(import.meta.dirname, '..')
let folder: string
let deployment: Deployment
let token: string
let client: Client

test.beforeAll(async ({ backends }) => {
  folder = await mkdtemp(path.join(tmpdir(), 'parley-e2e-agents-'))
  for (const name of ['calculator', 'data-analyst', 'forecaster', 'summarizer'])
    await symlink(path.join(root, 'agents', name), path.join(folder, name))
  await addParrot()
  deployment = await Deployment.start(backends, {}, folder)
  token = (await deployment.parley('token')).stdout.trim()
  client = new Client({ name: 'e2e', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  const authProvider = { token: async () => token }
  await client.connect(
    new StreamableHTTPClientTransport(new URL('mcp', `${deployment.url}/`), { authProvider }),
  )
})
test.afterAll(async () => {
  await client?.close()
  await deployment?.remove()
  await rm(folder, { recursive: true, force: true })
})

/** A folder with an MCP server that the gateway starts and calls on its standard input and output. */
async function addParrot(): Promise<void> {
  const parrot = path.join(folder, 'parrot')
  await mkdir(parrot)
  await cp(path.join(root, 'tools', 'testing', 'stdio-mcp-server.mjs'), path.join(parrot, 'server.mjs'))
  const manifest = [
    'name: parrot',
    'description: Repeats phrases',
    'handler: {mcp: {command: node, args: [server.mjs]}}',
    'skills: [{id: repeat, tool: repeat_phrase, description: Says a phrase again}]',
    'settings: {allow: [processes]}',
  ]
  await writeFile(path.join(parrot, 'agent.yaml'), manifest.join('\n'))
}

const sales = async () => ({
  name: 'sales.csv',
  mime_type: 'text/csv',
  text: await readFile(path.join(root, 'examples', 'sales.csv'), 'utf8'),
})

test('an MCP client lists the skills of every agent as tools', async () => {
  const { tools } = await client.listTools()
  const names = tools.map(({ name }) => name)
  expect(names).toEqual(
    expect.arrayContaining([
      'find_agent',
      'ask_best_agent',
      'calculator__calculate',
      'data-analyst__draw-chart',
      'forecaster__forecast-series',
      'summarizer__summarize',
    ]),
  )
})

test('an MCP client sends a CSV file to data-analyst and receives the chart as an image', async () => {
  const call = { text: 'revenue by month', files: [await sales()] }
  const { content } = await client.callTool({ name: 'data-analyst__draw-chart', arguments: call })
  const image = content.find(({ type }) => type === 'image')
  expect(image).toMatchObject({ mimeType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/) })
})

test('an MCP client receives the terms of forecaster, pays with x402 and receives the forecast', async () => {
  const call = {
    name: 'forecaster__forecast-series',
    arguments: { text: 'the next 6 months', files: [await sales()] },
  }
  const unpaid = await client.callTool(call)
  expect(unpaid).toMatchObject({ isError: true, structuredContent: { x402Version: 2 } })
  const terms = unpaid.structuredContent as unknown as PaymentRequired
  const payment = await new TestWallet().client.createPaymentPayload(terms)
  const paid = await client.callTool({ ...call, _meta: { 'x402/payment': payment } })
  expect(paid.isError).not.toBe(true)
  expect(paid._meta).toMatchObject({ 'x402/payment-response': { success: true } })
  const types = paid.content.map((block) => ('resource' in block ? block.resource.mimeType : block.type))
  expect(types).toEqual(expect.arrayContaining(['application/pdf', 'text/csv']))
})

test('a chat client receives a streamed answer of the agent that the gateway chooses', async () => {
  const openai = new OpenAI({ baseURL: `${deployment.url}/v1`, apiKey: token })
  const stream = await openai.chat.completions.create({
    model: 'auto',
    messages: [{ role: 'user', content: 'calculate 12 * (3 + 4)' }],
    stream: true,
  })
  let text = ''
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? ''
  expect(text).toContain('84')
})

test('parley token --long-lived prints the key of a chat client', async () => {
  const { stdout } = await deployment.parley('token', '--long-lived', '--name', 'chat')
  const openai = new OpenAI({ baseURL: `${deployment.url}/v1`, apiKey: stdout.trim() })
  const ids = (await openai.models.list()).data.map(({ id }) => id)
  expect(ids).toEqual(expect.arrayContaining(['auto', 'calculator', 'summarizer']))
})

test('a stdio MCP server is an agent that is ranked, and called with the schema of its tool', async () => {
  const { stdout } = await deployment.parley('negotiate', '--json', 'say a phrase again')
  expect(JSON.parse(stdout).candidates[0]).toMatchObject({ agent: { slug: 'parrot' } })
  const { tools } = await client.listTools()
  const tool = tools.find(({ name }) => name === 'parrot__repeat')
  expect(tool?.inputSchema).toMatchObject({
    properties: { phrase: { type: 'string' } },
    required: ['phrase'],
  })
  const { content } = await client.callTool({ name: 'parrot__repeat', arguments: { phrase: 'good morning' } })
  expect(content[0]).toEqual({ type: 'text', text: 'good morning' })
})
