import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { testAgent } from '@parley/agent/testing'
import { afterEach, expect, test } from 'vitest'
import { assistantOf } from './assistant.ts'

let close: (() => void) | undefined
afterEach(() => close?.())

/** Repeats the latest message and records the requests. Responds 500 to the message `fail`. */
async function parrot() {
  const asked: { role: string; content: string }[][] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { messages } = JSON.parse(body) as { messages: { role: string; content: string }[] }
      asked.push(messages)
      const newest = messages.at(-1)?.content ?? ''
      if (newest === 'fail') return response.writeHead(500).end('secret of the endpoint')
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const content of ['You said: ', newest]) {
        response.write(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`)
      }
      response.write(`data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }] })}\n\n`)
      response.write(
        `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } })}\n\n`,
      )
      return response.end('data: [DONE]\n\n')
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  close = () => {
    server.closeAllConnections()
    server.close()
  }
  const agent = assistantOf({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    apiKey: undefined,
    model: 'parrot-1',
    systemPrompt: '',
    timeoutMs: 5_000,
    historyCharacters: 5_000,
  })
  return { asked, agent }
}

test('remembers the conversation and counts its tokens over HTTP', async () => {
  const { agent, asked } = await parrot()
  await using server = await testAgent(agent)
  const alice = server.caller('alice')
  const first = await alice.sendAndWait('one')
  expect(first.artifacts).toMatchObject([{ parts: [{ text: 'You said: one' }] }])
  await alice.sendAndWait({ text: 'two', contextId: first.context_id })
  expect(asked[1]).toEqual([
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'You said: one' },
    { role: 'user', content: 'two' },
  ])
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  expect(metrics).toMatch(/agent_llm_tokens_total\{[^}]*direction="input"[^}]*\} 14/)
  expect(metrics).toMatch(/agent_llm_tokens_total\{[^}]*model="parrot-1"[^}]*\} 6/)
})

test('keeps the callers’ conversations apart and reports the reason for a failed task over HTTP', async () => {
  const { agent, asked } = await parrot()
  await using server = await testAgent(agent)
  await server.caller('alice').sendAndWait('one')
  const failed = await server.caller('bob').sendAndWait('fail')
  expect(asked[1]).toEqual([{ role: 'user', content: 'fail' }])
  expect(failed.status.state).toBe('failed')
  expect(failed.status.message?.parts).toEqual([
    { kind: 'text', text: 'The model endpoint has a fault (HTTP 500). Try again later.' },
  ])
})
