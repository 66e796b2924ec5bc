import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import {
  Client,
  StreamableHTTPClientTransport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { ClientStep, ClientTarget, TestedClient } from './step.ts'

const sales = path.join(import.meta.dirname, '..', '..', 'examples', 'sales.csv')
const answer = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })),
  isError: z.boolean().optional(),
})
const textBlock = z.looseObject({ type: z.literal('text'), text: z.string() })

interface Call {
  name: string
  arguments?: Record<string, unknown>
}

/** The client answers each question with the value 5. */
async function connect(
  { gateway, token }: ClientTarget,
  mode: VersionNegotiationMode,
  place: string,
): Promise<AsyncDisposable & { client: Client }> {
  const capabilities = { elicitation: { form: {} } }
  const client = new Client(
    { name: 'interop', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode } },
  )
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { answer: '5' } }))
  const authProvider = token === '' ? {} : { authProvider: { token: async () => token } }
  await client.connect(new StreamableHTTPClientTransport(new URL(place, gateway), authProvider))
  return { client, [Symbol.asyncDispose]: () => client.close() }
}

/** Steps of a connected client: name, what it does, and the address if it is not that of the gateway. */
const connected: readonly [name: string, run: (client: Client) => Promise<void>, place?: string][] = [
  [
    'list of tools',
    async (client) => {
      const names = (await client.listTools()).tools.map(({ name }) => name)
      for (const name of [
        'find_agent',
        'ask_best_agent',
        'calculator__calculate',
        'data-analyst__draw-chart',
      ])
        assert.ok(names.includes(name), `${name} is not in ${names.join(', ')}`)
    },
  ],
  ['call', async (client) => assert.match(await textOf(client, calculation('6*7')), /42/)],
  [
    'call at the address of the agent',
    async (client) => assert.match(await textOf(client, { ...calculation('6*7'), name: 'calculate' }), /42/),
    'agents/calculator/mcp',
  ],
  [
    'choice of an agent',
    async (client) => {
      const call = { name: 'find_agent', arguments: { task: 'convert 3 miles to km' } }
      assert.match(await textOf(client, call), /calculator/)
    },
  ],
  [
    'call of the best agent',
    async (client) => {
      const call = { name: 'ask_best_agent', arguments: { text: 'calculate 6*7' } }
      assert.match(await textOf(client, call), /42/)
    },
  ],
  ['question', async (client) => assert.match(await textOf(client, calculation('calculate x^2 + 1')), /26/)],
  [
    'file in, image out',
    async (client) => {
      const file = { name: 'sales.csv', mime_type: 'text/csv', text: await readFile(sales, 'utf8') }
      const call = {
        name: 'data-analyst__draw-chart',
        arguments: { text: 'revenue by month', files: [file] },
      }
      const types = answer.parse(await client.callTool(call)).content.map(({ type }) => type)
      assert.ok(types.includes('image'), `no image in ${types.join(', ')}`)
    },
  ],
  [
    'refused arguments',
    async (client) => {
      const call = { name: 'calculator__calculate', arguments: { text: 5 } }
      assert.equal(answer.parse(await client.callTool(call)).isError, true)
    },
  ],
  [
    'unknown tool',
    async (client) => assert.rejects(client.callTool({ name: 'calculator__unknown' }), /Unknown tool/),
  ],
]

const calculation = (text: string): Call => ({ name: 'calculator__calculate', arguments: { text } })

function stepsIn(mode: VersionNegotiationMode): ClientStep[] {
  const steps = connected.map(([name, run, place = 'mcp']) => ({
    name,
    run: async (target: ClientTarget) => {
      await using connection = await connect(target, mode, place)
      await run(connection.client)
    },
  }))
  const refused = async ({ gateway }: ClientTarget) => {
    await assert.rejects(
      connect({ gateway, token: '' }, mode, 'mcp'),
      /401|unauthorized|authentication required/i,
    )
  }
  return [...steps, { name: 'missing credentials', run: refused }]
}

async function textOf(client: Client, call: Call): Promise<string> {
  const { content, isError } = answer.parse(await client.callTool(call))
  const text = content.map((block) => textBlock.safeParse(block).data?.text ?? '').join('\n')
  assert.notEqual(isError, true, text)
  return text
}

/** npm `@modelcontextprotocol/client`, MIT, in each era of the protocol. */
export const mcpClients: readonly TestedClient[] = [
  { name: '@modelcontextprotocol/client 2.4, 2026-07-28', steps: stepsIn({ pin: '2026-07-28' }) },
  { name: '@modelcontextprotocol/client 2.4, 2025-11-25', steps: stepsIn('legacy') },
]
