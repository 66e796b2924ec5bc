import { describe, expect, test } from 'vitest'
import { bearer, gateway, gatewayForEachTest, identityProvider, restart } from '../testing.ts'
import { mcpAgent, mcpClient, postMcp, rpc } from './testing.ts'

gatewayForEachTest()

const request = (method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const listTools = request('tools/list')
const envelope = (version: string) => ({
  _meta: {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
  },
})
const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }

test('malformed and mismatched requests have the errors of the protocol', async () => {
  const errors: [string, Record<string, string>, number, number][] = [
    ['{', {}, 400, -32700],
    ['[]', {}, 400, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"x","params":{"__proto__":{}}}', {}, 400, -32600],
    [request('tools/list', envelope('2027-01-01')), { 'mcp-protocol-version': '2027-01-01' }, 400, -32022],
    [request('tools/list', envelope('2026-07-28')), { ...modern, 'mcp-method': 'tools/call' }, 400, -32020],
    [request('tools/list', envelope('2026-07-28')), {}, 400, -32020],
    [request('tools/list'), modern, 400, -32602],
    [request('unknown', envelope('2026-07-28')), { ...modern, 'mcp-method': 'unknown' }, 404, -32601],
    [listTools, { 'content-type': 'text/plain' }, 415, -32000],
  ]
  for (const [body, headers, status, code] of errors) {
    const answer = await postMcp(body, headers)
    expect([body, answer.status, answer.json.error?.code]).toEqual([body, status, code])
  }
  expect((await postMcp(`"${'x'.repeat(11 * 1024 * 1024)}"`)).status).toBe(413)
  const get = await fetch(`${gateway().addresses.public}/mcp`, {
    headers: { authorization: bearer('alice') },
  })
  expect(get.status).toBe(405)
})

test('both eras are served on one connection, and a batch of the earlier one', async () => {
  const [old, recent] = [await postMcp(listTools), await rpc('tools/list', {})]
  expect(old.text).toContain('find_agent')
  expect(recent.json.result).toMatchObject({ cacheScope: 'private', ttlMs: expect.any(Number) })
  expect(old.text).not.toContain('cacheScope')
  const batch = await postMcp(`[${listTools},{"jsonrpc":"2.0","method":"notifications/initialized"}]`)
  expect([batch.status, batch.text.includes('ask_best_agent')]).toEqual([200, true])
})

test('an unknown tool is an error of the protocol, and a refused call a result with its faults and the next step', async () => {
  await mcpAgent('echo', () => 'x')
  const unknown = await rpc('tools/call', { name: 'echo__nothing', arguments: {} })
  expect(unknown.json.error).toMatchObject({ code: -32602, message: expect.stringContaining('tools/list') })
  const { result } = (await rpc('tools/call', { name: 'echo__run', arguments: { txt: 'typo' } })).json
  expect(result).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/"txt".*Correct the arguments/) }],
  })
})

test('the list has pages, with cursors that only their caller may use', async () => {
  const skills = Array.from({ length: 300 }, (_, at) => ({ id: `skill-${String(at).padStart(3, '0')}` }))
  await mcpAgent('many', () => 'x', skills)
  const list = async (params: object, options = {}) => (await rpc('tools/list', { ...params }, options)).json
  const first = (await list({})).result
  const second = (await list({ cursor: first.nextCursor })).result
  const names = [...first.tools, ...second.tools].map(({ name }: { name: string }) => name)
  expect([names.length, new Set(names).size, second.nextCursor]).toEqual([305, 305, undefined])
  const refused = { error: { code: -32602 } }
  expect(await list({ cursor: first.nextCursor }, { caller: 'mallory' })).toMatchObject(refused)
  expect(await list({ cursor: first.nextCursor }, { path: '/agents/many/mcp' })).toMatchObject(refused)
  expect(await list({ cursor: 'forged' })).toMatchObject(refused)
})

describe('authorization', () => {
  const tokenFor = (aud: string) => ({
    authorization: `Bearer ${identityProvider().issue('alice', { aud })}`,
  })

  test('a token for another resource is refused, with the address of the metadata', async () => {
    await mcpAgent('echo', () => 'x')
    const base = gateway().addresses.public
    for (const [aud, path] of [
      ['https://other.example', '/mcp'],
      [`${base}/agents/echo/mcp`, '/mcp'],
      [`${base}/mcp`, '/agents/echo/mcp'],
    ] as const) {
      const { status, headers } = await postMcp(listTools, tokenFor(aud), path)
      expect([aud, status]).toEqual([aud, 401])
      expect(headers.get('www-authenticate')).toContain(`/.well-known/oauth-protected-resource${path}`)
    }
    for (const [aud, path] of [
      [`${base}/mcp`, '/mcp'],
      [base, '/mcp'],
      [`${base}/agents/echo/mcp`, '/agents/echo/mcp'],
    ] as const)
      expect([aud, (await postMcp(listTools, tokenFor(aud), path)).status]).toEqual([aud, 200])
  })

  test('a call requires agent:write, and the challenge names it', async () => {
    const authorization = bearer('alice', 'agent:read')
    const called = request('tools/call', { name: 'ask_best_agent', arguments: { text: 'x' } })
    const { status, headers } = await postMcp(called, { authorization })
    expect([status, headers.get('www-authenticate')]).toEqual([403, expect.stringContaining('agent:write')])
    expect((await postMcp(listTools, { authorization })).status).toBe(200)
  })

  test('an agent that the caller may not see has no tools and no address', async () => {
    await mcpAgent('secret', () => 'x')
    const { id } = gateway().registry.bySlug('secret') ?? {}
    const rules = [{ effect: 'allow' as const, callers: ['client:bob'] }]
    const changed = { changedAt: '2026-11-22T10:00:00.000000+00:00', changedBy: 'operator' }
    await gateway().registry.setPolicy(id ?? '', { default: 'deny', rules, ...changed }, () => {})
    const asBob = await postMcp(listTools, { authorization: bearer('bob') })
    expect(asBob.text).toContain('secret__run')
    expect((await postMcp(listTools)).text).not.toContain('secret')
    const hidden = await postMcp(listTools, {}, '/agents/secret/mcp')
    const unknown = await postMcp(listTools, {}, '/agents/unknown/mcp')
    expect([hidden.status, hidden.json.error]).toEqual([404, unknown.json.error])
    const called = await rpc('tools/call', { name: 'secret__run', arguments: { text: 'x' } })
    expect(called.json.error).toMatchObject({ code: -32602 })
  })

  test('pages of other sites may not send requests', async () => {
    expect((await postMcp(listTools, { origin: 'https://evil.example' })).status).toBe(403)
    expect((await postMcp(listTools, { origin: gateway().addresses.public })).status).toBe(200)
  })
})

test('a client that listens is notified when a tool is added', async () => {
  const client = await mcpClient('2026-07-28')
  const changed = Promise.withResolvers<void>()
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve())
  const subscription = await client.listen({ toolsListChanged: true })
  await mcpAgent('echo', () => 'x')
  expect(subscription.honoredFilter).toEqual({ toolsListChanged: true })
  await changed.promise
  await subscription.close()
})

test('each request of a batch counts for the limit of the caller', async () => {
  await restart({ RATE_LIMIT_PER_MINUTE: '5' })
  const batch = (count: number) => postMcp(`[${Array.from({ length: count }, () => listTools).join()}]`)
  expect((await batch(4)).status).toBe(200)
  expect((await batch(4)).status).toBe(429)
})

test('a caller has a limited number of subscriptions, which others do not share', async () => {
  const url = new URL('/mcp', gateway().addresses.public)
  const listen = { notifications: { toolsListChanged: true }, ...envelope('2026-07-28') }
  const headers = { ...modern, 'mcp-method': 'subscriptions/listen' }
  const more = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const leave = new AbortController()
  const subscribe = (caller: string) =>
    fetch(url, {
      method: 'POST',
      headers: { ...headers, ...more, authorization: bearer(caller) },
      body: request('subscriptions/listen', listen),
      signal: leave.signal,
    })
  const opened = await Promise.all(Array.from({ length: 65 }, () => subscribe('alice')))
  const statuses = opened.map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(64)
  expect(statuses.filter((status) => status === 429)).toHaveLength(1)
  expect((await subscribe('bob')).status).toBe(200)
  leave.abort()
})
