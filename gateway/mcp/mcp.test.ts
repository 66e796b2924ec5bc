import { once } from 'node:events'
import { progress } from '@parley/agent'
import { describe, expect, test } from 'vitest'
import { agent, gatewayForEachTest } from '../testing.ts'
import { type Era, mcpAgent, mcpClient, postMcp, rpc } from './testing.ts'

gatewayForEachTest({ MCP_TASK_AFTER_MS: '300', MCP_ANSWER_AFTER_MS: '600' })

const eras: Era[] = ['2026-07-28', '2025-11-25']

describe.each(eras)('a client of %s', (era) => {
  test('lists the tools of all agents and calls one', async () => {
    await mcpAgent('echo', ({ text }) => `echo ${text}`)
    await mcpAgent('weather', () => 'sunny', [{ id: 'today', name: 'Today', description: 'The weather' }])
    const client = await mcpClient(era)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      'find_agent',
      'ask_best_agent',
      'get_task',
      'answer_task',
      'cancel_task',
      'echo__run',
      'weather__today',
    ])
    expect(tools.at(-1)).toMatchObject({ title: 'Today', description: 'From agent weather: The weather' })
    const result = await client.callTool({ name: 'echo__run', arguments: { text: 'hello' } })
    expect(result.content[0]).toEqual({ type: 'text', text: 'echo hello' })
    expect(result._meta).toMatchObject({ 'parley/agent': 'echo', 'parley/state': 'completed' })
    expect(result.isError).toBeUndefined()
  })

  test('at the address of an agent, the tools are its skills', async () => {
    await mcpAgent('echo', ({ text }) => `echo ${text}`)
    await mcpAgent('other', () => 'other')
    const client = await mcpClient(era, { path: '/agents/echo/mcp' })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['get_task', 'answer_task', 'cancel_task', 'run'])
    const result = await client.callTool({ name: 'run', arguments: { text: 'hello' } })
    expect(result.content[0]).toMatchObject({ text: 'echo hello' })
  })

  test('a call that takes long returns the ID of its task, and get_task its result', async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    await mcpAgent('slow', () => promise)
    const client = await mcpClient(era)
    const first = await client.callTool({ name: 'slow__run', arguments: { text: 'go' } })
    expect(first.content[0]).toMatchObject({ text: expect.stringContaining('still running') })
    const task_id = first._meta?.['parley/task_id']
    resolve('done')
    await expect
      .poll(async () => (await client.callTool({ name: 'get_task', arguments: { task_id } })).content[0])
      .toMatchObject({ text: 'done' })
  })

  test('a call reports the progress of the agent', async () => {
    await mcpAgent('steps', async function* ({ signal }) {
      for (const step of ['one', 'two']) {
        yield progress(step)
        await new Promise((resolve) => setTimeout(resolve, 1100))
        signal.throwIfAborted()
      }
      yield 'done'
    })
    const client = await mcpClient(era)
    const messages: (string | undefined)[] = []
    const onprogress = ({ message }: { message?: string | undefined }) => messages.push(message)
    await client.callTool({ name: 'steps__run', arguments: { text: 'go' } }, { onprogress })
    expect(messages).toContain('one')
  })
})

test('a call with progress of an agent that does not answer fails with the next step', async () => {
  const skill = { id: 'run', name: 'Run', description: 'Runs', tags: [], input_modes: [], output_modes: [] }
  const silent = await agent('silent', 'Never answers', { skills: [skill] })
  silent.on['message/stream'] = ({ response }) => once(response, 'close')
  const params = { name: 'silent__run', arguments: { text: 'go' }, _meta: { progressToken: 1 } }
  const { text } = await rpc('tools/call', params)
  expect(text).toContain('look for its task before you repeat it')
})

test('a request without a token is refused with the address of the metadata', async () => {
  const { status, headers } = await postMcp('{}', { authorization: '' })
  expect(status).toBe(401)
  expect(headers.get('www-authenticate')).toContain('/.well-known/oauth-protected-resource/mcp')
})
