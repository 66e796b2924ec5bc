import { McpServer } from '@modelcontextprotocol/server'
import { startMcpServer } from '@parley/tools/testing/mcp-server'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { agentOf, disposed, message } from './mcp-agents.cases.ts'

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

function build(): McpServer {
  const server = new McpServer(
    { name: 'desk', version: '2.0.0', title: 'Desk' },
    { capabilities: { tools: {} } },
  )
  server.registerTool(
    'add-numbers',
    {
      description: 'Adds two numbers',
      inputSchema: z.object({ a: z.number().describe('the first'), b: z.number() }),
    },
    ({ a, b }) => ({ ...text(`{"sum":${a + b}}`), structuredContent: { sum: a + b } }),
  )
  server.registerTool(
    'shout',
    { description: 'Upper case', inputSchema: z.object({ phrase: z.string() }) },
    ({ phrase }) => text(phrase.toUpperCase()),
  )
  server.registerTool('time', { description: 'The current time of the clock' }, () => text('noon'))
  server.registerTool('break', { description: 'Fails' }, () => ({ ...text('out of paper'), isError: true }))
  server.registerTool('media', { description: 'All kinds of content' }, () => ({
    content: [
      { type: 'text', text: 'see\u001b[31m below' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
      {
        type: 'resource',
        resource: { uri: 'file:///a/notes.md', mimeType: 'text/markdown', text: '# Notes' },
      },
      { type: 'resource', resource: { uri: 'file:///a/b.bin', blob: 'aGk=' } },
      { type: 'resource_link', uri: 'https://example.com/x.pdf', name: 'x.pdf', mimeType: 'application/pdf' },
      { type: 'resource_link', uri: 'note://1', name: 'note' },
    ],
  }))
  server.registerTool('count', { description: 'Counts' }, async (ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken
    if (progressToken !== undefined)
      await ctx.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress: 1, total: 2, message: 'half' },
      })
    return text('done')
  })
  return server
}

const parts = (task: { artifacts?: { parts: unknown[] }[] }) => task.artifacts?.flatMap((one) => one.parts)

describe.each(['modern', 'legacy'] as const)('a %s server', (era) => {
  const start = async () => agentOf(disposed(await startMcpServer(build, era)).url)

  test('runs a tool with the data of a message as its arguments, and repeats no structured content as text', async () => {
    const { caller, session } = await start()
    const task = await caller.sendAndWait(message('add-numbers', { a: 2, b: 3 }))
    expect(session.info).toMatchObject({ era, name: 'desk', title: 'Desk', version: '2.0.0' })
    expect(task.status.state).toBe('completed')
    expect(parts(task)).toMatchObject([{ kind: 'data', data: { sum: 5 } }])
  })

  test('runs a tool with a text if its schema has one required field', async () => {
    const { caller } = await start()
    const task = await caller.sendAndWait(message('shout', 'hello'))
    expect(parts(task)).toMatchObject([{ text: 'HELLO' }])
  })

  test('names the missing fields, and runs the tool with the answer', async () => {
    const { caller } = await start()
    const asked = await caller.sendAndWait(message('add-numbers', 'Please.'))
    expect(asked.status).toMatchObject({
      state: 'input-required',
      message: {
        parts: [
          { text: 'The tool add-numbers requires:\n- a (number): the first\n- b (number)' },
          { data: { tool: 'add-numbers', missing: ['a', 'b'], schema: { required: ['a', 'b'] } } },
        ],
      },
    })
    const again = await caller.sendAndWait(message(undefined, { a: 1 }, asked.id))
    expect(again.status).toMatchObject({ state: 'input-required' })
    const task = await caller.sendAndWait(message(undefined, '41', asked.id))
    expect(parts(task)).toMatchObject([{ data: { sum: 42 } }])
  })

  test('returns texts, files, resources and links in their order', async () => {
    const { caller } = await start()
    const task = await caller.sendAndWait('media')
    expect(parts(task)).toMatchObject([
      { kind: 'text', text: 'see below' },
      { kind: 'file', file: { name: 'image-2.png', mime_type: 'image/png', bytes: 'aGk=' } },
      { kind: 'file', file: { mime_type: 'audio/wav' } },
      { kind: 'text', text: '# Notes' },
      { kind: 'file', file: { name: 'b.bin', bytes: 'aGk=' } },
      { kind: 'file', file: { uri: 'https://example.com/x.pdf', mime_type: 'application/pdf' } },
      { kind: 'text', text: 'note (note://1)' },
    ])
  })

  test('fails the task with the text of an error of the tool', async () => {
    const { caller } = await start()
    const { status } = await caller.sendAndWait('break')
    expect(status).toMatchObject({ state: 'failed', message: { parts: [{ text: 'out of paper' }] } })
  })
})
