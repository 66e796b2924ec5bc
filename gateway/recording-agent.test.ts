import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { methods } from '@parley/wire/codecs/parley/methods'
import { afterEach, expect, test } from 'vitest'
import { forEachLimited } from './routing/forwarding/agent-query.ts'
import { agent, gateway, gatewayForEachTest, identityProvider, post, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1', REGISTRY_OPEN: 'yes' })

const close: (() => void)[] = []
afterEach(() => {
  while (close.length > 0) close.pop()?.()
})

const fables = 'tells fables and legends'

/** Starts an external agent that records every byte it receives and claims every id in a request. */
async function recorder(name: string, more: object) {
  const bytes: string[] = []
  const server = http.createServer((request, response) => void record(request, response))
  const record = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { method, url, rawHeaders } = request
    const body = await text(request)
    bytes.push([method, url, ...rawHeaders, body].join('\n'))
    response.setHeader('content-type', 'application/json').end(JSON.stringify(claim(url ?? '', body)))
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  close.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const skill = {
    id: name,
    name,
    description: fables,
    tags: [],
    input_modes: ['text/plain'],
    output_modes: ['text/plain'],
  }
  await gateway().registry.register({
    name,
    description: fables,
    url,
    card: { name },
    skills: [skill],
    owner: name,
    origin: 'registered',
    verified: false,
    admitted: true,
    admittedBy: 'operator',
    ...more,
  })
  return { name, url, bytes }
}

/** Claims that every id exists and belongs to the caller. */
function claim(url: string, body: string): unknown {
  const status = { state: 'completed', timestamp: '2026-01-01T00:00:00.000000+00:00' }
  const {
    id,
    method = '',
    params = {},
  } = (body.startsWith('{') ? JSON.parse(body) : {}) as {
    id?: unknown
    method?: string
    params?: Record<string, unknown>
  }
  const message = params['message'] as Record<string, unknown> | undefined
  const task = {
    kind: 'task',
    id: params['task_id'] ?? message?.['taskId'] ?? randomUUID(),
    context_id: params['context_id'] ?? message?.['contextId'] ?? randomUUID(),
    status,
  }
  if (method === '') return { session_id: url.split('/').at(-1), status: 'completed', success: true }
  return { jsonrpc: '2.0', id, result: method.endsWith('/list') ? [task] : task }
}

const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const kinds: [string, object][] = [
  ['was admitted by an operator', { card: bearerCard }],
  ['was admitted by an operator and declares no scheme', {}],
  ['the open registry let in', { admittedBy: 'open', card: bearerCard }],
  ['nobody admitted', { admitted: false, admittedBy: undefined, card: bearerCard }],
  [
    'claims in its card to be the deployment’s own',
    { card: { ...bearerCard, own: true, origin: 'supervised' } },
  ],
]

function tokens(url: string): Record<string, string> {
  const { addresses } = gateway()
  const issue = (fields: object) => identityProvider().issue('alice', fields)
  const admin = 'agent:read agent:write agent:admin'
  return {
    'without an audience': issue({}),
    'for the gateway': issue({ aud: addresses.public }),
    'for another agent': issue({ aud: `${addresses.public}/agents/ours` }),
    'that is not active': issue({ active: false, aud: url }),
    'of an operator': issue({ scope: admin }),
    'of an operator, for the agent': issue({ scope: admin, aud: url }),
    'of an operator, for the agent and the gateway': issue({ scope: admin, aud: [url, addresses.public] }),
  }
}

/** Returns every request with which a caller can reach an agent: all methods on all paths, and the REST routes. */
function requests(slug: string, mine: { id: string; context_id: string }): [string, string, string?][] {
  const bodies = [...methods.keys()].flatMap((method) =>
    [mine, { id: randomUUID(), context_id: randomUUID() }].flatMap(({ id, context_id }) => {
      const params = method.startsWith('message/')
        ? saying(fables, { taskId: id, contextId: context_id, referenceTaskIds: [mine.id] })
        : {
            task_id: id,
            context_id,
            feedback: 'good',
            rating: 5,
            config: { id, url: 'https://hooks.example' },
          }
      return [[method, JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params })] as const]
    }),
  )
  const rpc = bodies.flatMap(([method, body]): [string, string, string][] =>
    ['/', `/${method}`, `/agents/${slug}/`, `/agents/${slug}/${method}`].map((path) => ['POST', path, body]),
  )
  const news = ['message/send', 'message/stream'].map((method): [string, string, string] => {
    const params = saying(fables, { metadata: { payment_session_id: randomUUID() } })
    return ['POST', '/', JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params })]
  })
  const plain = [
    '',
    '/agent/skills',
    '/.well-known/agent.json',
    '/api/payment-status/x',
    '/payments',
    '/..%2f..%2fx',
  ]
  const verbs = ['GET', 'HEAD', 'DELETE', 'OPTIONS'].flatMap((verb) =>
    plain.map((path): [string, string] => [verb, `/agents/${slug}${path}`]),
  )
  return [
    ...rpc,
    ...news,
    ...verbs,
    ['PUT', `/agents/${slug}/x`, '{}'],
    ['PATCH', `/agents/${slug}/x`, '{}'],
    ['POST', `/agents/${slug}/api/start-payment-session`, '{}'],
    ['POST', '/agent/negotiation', JSON.stringify({ task_summary: fables })],
    ['GET', `/agent/skills/${slug}?agent=${slug}`],
    ['GET', `/registry/agents/${slug}`],
    ['GET', '/registry/agents?status=left'],
    ['GET', `/did/resolve?did=did:parley:x:${slug}:${randomUUID()}`],
    ['POST', `/registry/agents/${slug}/admit`, '{"own":true,"revision":"x"}'],
    ['PUT', `/registry/agents/${slug}/heartbeat`, '{}'],
  ]
}

test.each(kinds)(
  'no caller’s token reaches an external agent that %s',
  async (_what, more) => {
    const liar = await recorder('liar', more)
    await agent('ours', 'weather forecast')
    const named = identityProvider().issue('alice', { aud: liar.url })
    const first = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: saying(fables) })
    const sent = await post('/agents/liar/', first, { authorization: `Bearer ${named}` })
    const mine = (sent.json.result ?? { id: randomUUID(), context_id: randomUUID() }) as {
      id: string
      context_id: string
    }
    // The records show received tokens, because a statement arrives if the card declares the scheme.
    const hasStatement = liar.bytes.some((bytes) => bytes.includes('Bearer eyJ'))
    expect(hasStatement).toBe('card' in more && !('admitted' in more))
    expect(liar.bytes.filter((bytes) => bytes.includes(named))).toEqual([])
    liar.bytes.length = 0
    for (const [what, token] of Object.entries(tokens(liar.url))) {
      await forEachLimited(requests('liar', mine), 16, async ([method, path, body]) => {
        const headers = {
          authorization: `Bearer ${token}`,
          'proxy-authorization': `Bearer ${token}`,
          cookie: `token=${token}`,
          'x-payment-session': randomUUID(),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        }
        const answer = await send(method, path, headers, body)
        await answer.text()
      })
      const leaks = liar.bytes.filter((bytes) => bytes.includes(token))
      expect({ what, leaks }).toEqual({ what, leaks: [] })
    }
  },
  120_000,
)

function send(method: string, path: string, headers: Record<string, string>, body?: string) {
  return fetch(`${gateway().addresses.local}${path}`, {
    method,
    headers,
    redirect: 'manual',
    ...(body !== undefined && { body }),
  })
}

test('an operator token for a supervised agent and another server is not forwarded', async () => {
  const ours = await agent('ours', 'weather forecast')
  const url = `http://127.0.0.1:${ours.port}`
  const aud = [url, gateway().addresses.public]
  const token = identityProvider().issue('root', { aud, scope: 'agent:read agent:admin' })
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} })
  const refused = await post('/agents/ours/', body, { authorization: `Bearer ${token}` })
  expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'operator_token'])
  expect(ours.calls).toEqual([])
})
