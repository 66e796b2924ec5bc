import { type ScriptedAnswer, type ScriptedCall, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { runCli } from '../testing.ts'

const version = '2025-11-25'
const modern = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }
const initialize = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
const answers = z.array(
  z.looseObject({
    id: z.number(),
    result: z.unknown().optional(),
    error: z.looseObject({ message: z.string() }).optional(),
  }),
)

/** Runs the bridge with these requests, one after the other, until the server has received all of them. */
async function bridge(
  script: Record<string, (call: ScriptedCall) => ScriptedAnswer>,
  requests: { method: string; params?: object }[],
  argv: string[] = [],
) {
  await using server = await scriptedAgent(script)
  const lines = requests.map((request, id) => `${JSON.stringify({ jsonrpc: '2.0', id, ...request })}\n`)
  const { calls, url } = server
  const given = ['mcp', '--stdio', '--url', url, '--token', 'the-token', ...argv]
  const said = await runCli(given, { stdin: lines.join('') })
  return {
    calls,
    said,
    answers: answers.parse(
      said.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
  }
}

test('mcp --stdio passes each message of the host to the gateway with the token, and its answers to the host', async () => {
  const { answers, calls } = await bridge({ 'tools/list': () => ({ result: { tools: [] } }) }, [
    { method: 'tools/list', params: { _meta: modern } },
  ])
  expect(answers).toEqual([{ jsonrpc: '2.0', id: 0, result: { tools: [] } }])
  expect(calls[0]).toMatchObject({
    path: '/mcp',
    headers: { authorization: 'Bearer the-token', 'mcp-method': 'tools/list' },
  })
})

test('mcp --stdio keeps the session of a 2025 client and ends it with the input', async () => {
  const result = { protocolVersion: version, capabilities: {}, serverInfo: { name: 'server', version: '1' } }
  const { answers, calls } = await bridge(
    {
      initialize: () => ({ result, headers: { 'mcp-session-id': 'one' } }),
      'DELETE /mcp': () => ({ status: 200, body: '' }),
    },
    [{ method: 'initialize', params: initialize }],
  )
  expect(answers).toEqual([{ jsonrpc: '2.0', id: 0, result }])
  const ended = {
    method: 'DELETE /mcp',
    headers: { 'mcp-session-id': 'one', 'mcp-protocol-version': version },
  }
  expect(calls.at(-1)).toMatchObject(ended)
})

test('mcp --stdio names the task of a request in the header that MCP demands', async () => {
  const { calls } = await bridge({ 'tasks/get': () => ({ result: {} }) }, [
    { method: 'tasks/get', params: { taskId: 'task-1', _meta: modern } },
  ])
  expect(calls[0]?.headers['mcp-name']).toBe('task-1')
})

test.each([
  [
    'an error of JSON-RPC',
    { error: { code: -32601, message: 'Unknown method' }, status: 404 },
    'Unknown method',
  ],
  ['another response', { status: 503, body: 'The server stops' }, /\/mcp: .*The server stops/],
  ['a stream without an answer', { frames: [] }, /\/mcp: the connection was closed/],
])('mcp --stdio answers a request that fails with %s', async (_name, answer, message) => {
  const { answers } = await bridge({ 'tools/list': () => answer }, [{ method: 'tools/list' }])
  expect(answers[0]?.error?.message).toMatch(message)
})

test('mcp prints the address and a configuration for each host, and --agent selects one agent', async () => {
  const given = { env: { PORT: '7480', DATA_DIR: '/data' } }
  const { stdout } = await runCli(['mcp', '--agent', 'calculator'], given)
  const url = 'http://127.0.0.1:7480/agents/calculator/mcp'
  expect(stdout).toContain(`claude mcp add --transport http parley ${url}`)
  const { stdout: desktop } = await runCli(
    ['mcp', '--host', 'claude-desktop', '--agent', 'calculator'],
    given,
  )
  const { args, env } = JSON.parse(desktop).mcpServers.parley
  expect(args.slice(1)).toEqual(['mcp', '--stdio', '--url', 'http://127.0.0.1:7480', '--agent', 'calculator'])
  expect(env).toEqual({ DATA_DIR: '/data' })
})

test('mcp names the known hosts if --host is another', async () => {
  const { code, stderr } = await runCli(['mcp', '--host', 'emacs'])
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining('claude-desktop, vscode, cursor'),
  })
})
