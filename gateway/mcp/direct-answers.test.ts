import { expect, test } from 'vitest'
import { gatewayForEachTest } from '../testing.ts'
import { directRequestIn } from './direct-answers.ts'
import { mcpAgent, rpc } from './testing.ts'

gatewayForEachTest()

/** The library serves requests with metadata that it does not know. */
const other = { _meta: { 'com.example/other': 1 } }
const ids = /[0-9a-f]{8}-[0-9a-f-]{27}|task_[\w-]+|ctx_[\w-]+/g

async function answerTo(method: string, params: Record<string, unknown>, capabilities: object) {
  const { status, headers, json } = await rpc(method, params, { capabilities })
  const state = json.result?.requestState === undefined ? {} : { requestState: 'state' }
  const result = json.result && { ...json.result, ...state }
  const text = JSON.stringify({ ...json, ...(result && { result }) }).replace(ids, 'id')
  return [status, headers.get('content-type'), headers.get('cache-control'), JSON.parse(text)]
}

test('an answer without the library is the same as that of the library', async () => {
  await mcpAgent('echo', ({ text }) => `echo ${text}`)
  await mcpAgent('failing', () => Promise.reject(new Error('broken')))
  await mcpAgent('asking', ({ ask }) => ask('Which color?'))
  const text = { arguments: { text: 'hello' } }
  const requests: [string, Record<string, unknown>, object?][] = [
    ['tools/list', {}],
    ['tools/list', { cursor: 'unknown' }],
    ['tools/call', { name: 'echo__run', ...text }],
    ['tools/call', { name: 'echo__run', arguments: { wrong: 1 } }],
    ['tools/call', { name: 'echo__run', arguments: [] }],
    ['tools/call', { name: 'failing__run', ...text }],
    ['tools/call', { name: 'asking__run', ...text }],
    ['tools/call', { name: 'asking__run', ...text }, { elicitation: {} }],
    ['tools/call', { name: 'get_task', arguments: { task_id: 'none' } }],
    ['tools/call', { name: 'unknown' }],
  ]
  for (const [method, params, capabilities = {}] of requests)
    expect(await answerTo(method, params, capabilities)).toEqual(
      await answerTo(method, { ...params, ...other }, capabilities),
    )
})

test('only complete requests of 2026-07-28 without further fields are answered without the library', () => {
  const version = '2026-07-28'
  const key = (name: string) => `io.modelcontextprotocol/${name}`
  const _meta = { [key('protocolVersion')]: version, [key('clientCapabilities')]: {} }
  const headers = {
    'content-type': 'application/json',
    'mcp-protocol-version': version,
    'mcp-method': 'tools/call',
    'mcp-name': 'echo__run',
  }
  const params = { _meta, name: 'echo__run' }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
  const read = (changed: object, given: unknown) =>
    directRequestIn({ method: 'POST', headers: { ...headers, ...changed } }, given)
  expect(read({}, body)).toEqual(body)
  const refused: [object, unknown][] = [
    [{ 'mcp-protocol-version': undefined }, body],
    [{ 'mcp-protocol-version': '2025-11-25' }, body],
    [{ 'mcp-method': 'tools/list' }, body],
    [{ 'mcp-method': undefined }, body],
    [{ 'mcp-name': 'other' }, body],
    [{ 'mcp-name': undefined }, body],
    [{ 'content-type': 'text/plain' }, body],
    [{}, [body]],
    [{}, { ...body, id: null }],
    [{}, { ...body, id: 1.5 }],
    [{}, { ...body, jsonrpc: '1.0' }],
    [{}, { ...body, method: 'tools/list' }],
    [{}, { ...body, params: { name: 'echo__run' } }],
    [{}, { ...body, params: { ...params, requestState: 'state' } }],
    [{}, { ...body, params: { ...params, inputResponses: {} } }],
    [{}, { ...body, params: { ...params, _meta: { ..._meta, progressToken: 1 } } }],
    [{}, { ...body, params: { ...params, _meta: { ..._meta, 'x402/payment': {} } } }],
    [{}, { ...body, params: { ...params, _meta: { ..._meta, [key('protocolVersion')]: '2025-11-25' } } }],
    [{}, { ...body, params: { ...params, _meta: { ..._meta, [key('clientCapabilities')]: 1 } } }],
    [{}, { ...body, params: { ...params, _meta: { ..._meta, [key('clientInfo')]: 'me' } } }],
  ]
  for (const [changed, given] of refused)
    expect([changed, read(changed, given)]).toEqual([changed, undefined])
})
