import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { startMcpServer, startScriptedMcpServer } from '@parley/tools/testing/mcp-server'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agentOf, disposed, message } from './mcp-agents.cases.ts'

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })
const size = z.object({ size: z.enum(['small', 'large']) })

function shop(era: 'modern' | 'legacy'): McpServer {
  const server = new McpServer({ name: 'shop', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.registerTool(
    'order',
    { description: 'Orders', inputSchema: z.object({ item: z.string() }) },
    async ({ item }, ctx) => {
      if (era === 'modern') {
        const given = acceptedContent(ctx.mcpReq.inputResponses, 'size', size)
        if (given !== undefined) return text(`${given.size} ${item} ${String(ctx.mcpReq.requestState())}`)
        return inputRequired({
          inputRequests: { size: inputRequired.elicit({ message: 'Which size?', requestedSchema: size }) },
          requestState: 'kept',
        })
      }
      const schema = {
        type: 'object' as const,
        properties: { size: { type: 'string' as const, enum: ['small', 'large'] } },
        required: ['size'],
      }
      const { action, content } = await ctx.mcpReq.elicitInput({
        message: 'Which size?',
        requestedSchema: schema,
      })
      return text(action === 'accept' ? `${String(content?.['size'])} ${item} kept` : `${action} ${item}`)
    },
  )
  return server
}

describe.each(['modern', 'legacy'] as const)('a %s server that requests input', (era) => {
  const start = async () => agentOf(disposed(await startMcpServer(() => shop(era), era)).url)

  test('pauses the task with its question, and receives the answer with the next message', async () => {
    const { caller } = await start()
    const paused = await caller.sendAndWait(message('order', { item: 'mug' }))
    expect(paused.status).toMatchObject({
      state: 'input-required',
      message: {
        parts: [
          { text: 'Which size?\n- size (one of small, large)' },
          { data: { input_requests: [{ message: 'Which size?' }] } },
        ],
      },
    })
    const wrong = await caller.sendAndWait(message(undefined, { size: 'huge' }, paused.id))
    expect(JSON.stringify(wrong.status)).toContain(
      'The answer does not fit: size must be one of small, large.',
    )
    const task = await caller.sendAndWait(message(undefined, 'large', paused.id))
    expect(task).toMatchObject({
      status: { state: 'completed' },
      artifacts: [{ parts: [{ text: 'large mug kept' }] }],
    })
  })
})

test('a caller declines the request of a legacy server', async () => {
  const { caller } = await agentOf(disposed(await startMcpServer(() => shop('legacy'), 'legacy')).url)
  const paused = await caller.sendAndWait(message('order', { item: 'mug' }))
  const task = await caller.sendAndWait(message(undefined, { action: 'decline' }, paused.id))
  expect(task).toMatchObject({ artifacts: [{ parts: [{ text: 'decline mug' }] }] })
})

const tools = [{ name: 'build', description: 'Builds', inputSchema: { type: 'object' } }]
const listed = { resultType: 'complete', tools, ttlMs: 0, cacheScope: 'private' }
const handle = (status: string, more: object = {}) => ({
  taskId: 'build-1',
  status,
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
  ttlMs: null,
  pollIntervalMs: 1,
  ...more,
})

/** A server with a task that continues when `state` changes. */
async function builder(options: { dataDir?: string } = {}) {
  const state: { task: object } = { task: handle('working', { statusMessage: 'compiling' }) }
  const server = disposed(
    await startScriptedMcpServer(({ method }, reply) => {
      if (method === 'tools/list') reply.result(listed)
      else if (method === 'tools/call') reply.result({ resultType: 'task', ...handle('working') })
      else if (method === 'tasks/get') reply.result({ resultType: 'complete', ...state.task })
      else reply.result({ resultType: 'complete' })
    }, 'modern'),
  )
  return { ...(await agentOf(server.url, options)), server, state }
}

test('a task handle of the server is followed: progress, a request for input, the answer and the result', async () => {
  const { caller, server, state } = await builder()
  const { id } = await caller.send(message('build', {}))
  await expect.poll(() => server.requests.some(({ method }) => method === 'tasks/get')).toBe(true)
  const form = { type: 'object', properties: { branch: { type: 'string' } }, required: ['branch'] }
  const request = {
    method: 'elicitation/create',
    params: { message: 'Which branch?', requestedSchema: form },
  }
  state.task = handle('input_required', { inputRequests: { 'q-1': request } })
  await expect.poll(async () => (await caller.get(id)).status.state).toBe('input-required')
  await caller.send(message(undefined, 'main', id))
  const update = () => server.requests.find(({ method }) => method === 'tasks/update')
  await expect.poll(update).toMatchObject({
    params: {
      taskId: 'build-1',
      inputResponses: { 'q-1': { action: 'accept', content: { branch: 'main' } } },
    },
  })
  state.task = handle('completed', { result: { content: [{ type: 'text', text: 'built' }] } })
  const task = await caller.wait(id, { signal: AbortSignal.timeout(10_000) })
  expect(task).toMatchObject({ status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'built' }] }] })
})

test('a task handle is followed after a restart, without another call', async () => {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), 'parley-mcp-'))
  const { caller, server, state, stop } = await builder({ dataDir })
  const { id } = await caller.send(message('build', {}))
  await expect.poll(() => server.requests.some(({ method }) => method === 'tasks/get')).toBe(true)
  await stop()
  state.task = handle('completed', { result: { content: [{ type: 'text', text: 'built' }] } })
  const next = await agentOf(server.url, { dataDir })
  const task = await next.caller.wait(id, { signal: AbortSignal.timeout(10_000) })
  expect(task).toMatchObject({ status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'built' }] }] })
  expect(server.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(1)
  await next.stop()
  await rm(dataDir, { recursive: true })
})

test.each([
  [handle('failed', { error: { code: -1, message: 'disk full' } }), 'disk full'],
  [
    handle('cancelled', { statusMessage: 'by the operator' }),
    'The server canceled the task: by the operator',
  ],
])('a task that ends as %j fails with the reason', async (end, reason) => {
  const { caller, state } = await builder()
  state.task = end
  const { status } = await caller.sendAndWait(message('build', {}))
  expect(status).toMatchObject({ state: 'failed', message: { parts: [{ text: reason }] } })
})

test('the cancellation of a call is reported to a legacy server', async () => {
  const server = disposed(
    await startScriptedMcpServer(({ method }, reply) => {
      if (method === 'tools/list') reply.result({ tools })
    }),
  )
  const { caller } = await agentOf(server.url)
  const { id } = await caller.send(message('build', {}))
  const received = (name: string) => server.requests.find(({ method }) => method === name)
  await expect.poll(() => received('tools/call')).toBeDefined()
  await caller.cancel(id)
  await expect
    .poll(() => received('notifications/cancelled')?.params['requestId'])
    .toBe(received('tools/call')?.id)
})
