import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { agentTaskList } from '@parley/wire/codecs/answers/operator/tasks'
import { hasUnsafeCharacters } from '@parley/wire/model/clean-text'
import { Agent } from 'undici'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import type { AgentEntry } from '../registry/entry.ts'
import { AgentReader, type AgentReaderOptions, type OperatorRequest } from './agent-reader.ts'

const upstream = new Agent()
const open: http.Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})
afterAll(() => upstream.destroy())

const operator = { client: 'root', texts: true }
const list: OperatorRequest = { group: 'tasks.read', path: '/operator/tasks', operator }
const nothing = { tasks: [], next_cursor: null }

async function agentAt(
  handle: http.RequestListener,
  slug = 'calc',
  more: Partial<AgentEntry> = {},
): Promise<AgentEntry> {
  const server = http.createServer(handle)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(server)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    ...({ id: slug, slug, url, origin: 'supervised', admitted: true, status: 'ready' } as AgentEntry),
    ...more,
  }
}

function readerOf(entries: AgentEntry[], options: Partial<AgentReaderOptions> = {}): AgentReader {
  return new AgentReader({
    registry: {
      admitted: () => entries.filter(({ admitted }) => admitted),
      bySlug: (slug) => entries.find((entry) => entry.slug === slug),
    },
    dispatcherFor: () => upstream,
    statements: { for: async (entry, group) => `statement-${entry.slug}-${group}` },
    ...options,
  })
}

const answering =
  (body: unknown, status = 200): http.RequestListener =>
  (_request, response) => {
    response.statusCode = status
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
const reasonsOf = async (reader: AgentReader) => (await reader.readAll(agentTaskList, list)).unread

test('an answer is validated, and the request carries a statement for this agent and group', async () => {
  const seen: (string | undefined)[] = []
  const entry = await agentAt((request, response) => {
    seen.push(request.method, request.url, request.headers.authorization)
    response.setHeader('x-parley-time', new Date(Date.now() + 60_000).toISOString())
    response.end(JSON.stringify({ ...nothing, added_later: 1 }))
  })
  const { value, clockSkewMs = 0 } = await readerOf([entry]).read(entry, agentTaskList, list)
  expect(value).toEqual(nothing)
  expect(seen).toEqual(['GET', '/operator/tasks', 'Bearer statement-calc-tasks.read'])
  expect(clockSkewMs).toBeGreaterThan(50_000)
})

test('supervised and relayed agents and those admitted with own are readable; others are not', async () => {
  const entry = await agentAt(answering(nothing))
  const { origin: _, ...rest } = entry
  const registered = { ...rest, origin: 'registered' as const, verified: true }
  const own = { ...registered, id: 'own', slug: 'own', own: true, admittedBy: 'root' }
  const relay = { url: 'https://foreign.example' } as NonNullable<AgentEntry['relay']>
  const relayed = { ...registered, id: 'relayed', slug: 'relayed', relay }
  const external = { ...registered, id: 'external', slug: 'external' }
  const unproven = { ...own, id: 'unproven', slug: 'unproven', verified: false }
  const dismissed = { ...entry, id: 'dismissed', slug: 'dismissed', admitted: false }
  const reader = readerOf([entry, own, relayed, external, unproven, dismissed])
  expect(reader.readable().map(({ slug }) => slug)).toEqual(['calc', 'own', 'relayed'])
  expect(['own', 'external', 'dismissed', 'none'].map((slug) => reader.find(slug)?.slug)).toEqual([
    'own',
    undefined,
    undefined,
    undefined,
  ])
  await expect(reader.read(external, agentTaskList, list)).rejects.toMatchObject({
    error: 'Unavailable',
    data: { reason: 'agent_unread', agent: 'external' },
  })
})

test.each<[string, http.RequestListener, RegExp]>([
  ['another form', answering({ tasks: 'all of them' }), /another form/],
  ['no JSON', answering('<html>'), /another form/],
  [
    'a value of another type in a row',
    answering({ tasks: [{ task_id: {} }], next_cursor: null }),
    /another form/,
  ],
  ['more than the maximum size', answering({ ...nothing, more: 'x'.repeat(3000) }), /too large/],
  ['an endless answer', (_request, response) => endless(response), /too large/],
  ['nothing in time', () => {}, /did not answer in time/],
  ['only headers in time', (_request, response) => void response.writeHead(200).write('{'), /in time/],
  ['nothing, and closes the connection', (request) => void request.socket.destroy(), /closed the connection/],
  ['HTTP 500', answering({ error: { code: -32603, message: 'no' } }, 500), /HTTP 500/],
  ['HTTP 404 without an error', answering('not found', 404), /no operator API/],
  [
    'that it has no such route',
    answering({ error: { code: -32040, message: '', data: { reason: 'route' } } }, 404),
    /no operator API/,
  ],
  ['HTTP 401', answering({ error: { code: -32010, message: 'no' } }, 401), /refused the gateway’s statement/],
  ['HTTP 429', answering({ error: { code: -32041, message: 'no' } }, 429), /too many requests/],
  [
    'a redirect',
    (_request, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    /HTTP 302/,
  ],
])('an agent that sends %s is unread, with the reason', async (_what, handle, reason) => {
  const bad = await agentAt(handle, 'bad')
  const good = await agentAt(answering(nothing), 'good')
  const reader = readerOf([bad, good], { answerMaxBytes: 2000, timeoutMs: 300 })
  const { answers, unread } = await reader.readAll(agentTaskList, list)
  expect(answers.map(({ entry }) => entry.slug)).toEqual(['good'])
  expect(unread).toEqual([{ agent: 'bad', reason: expect.stringMatching(reason) }])
})

function endless(response: http.ServerResponse): void {
  const more = () => void response.write('[1,'.repeat(1000), () => setImmediate(more))
  response.on('error', () => {})
  response.writeHead(200)
  more()
}

test('errors that the request caused are passed on, with a clean and bounded message', async () => {
  const message = `Task \u001B[31mnot found\u202E ${'x'.repeat(5000)}`
  const entry = await agentAt(answering({ error: { code: -32001, message, data: { stack: 'secret' } } }, 404))
  const failure = await readerOf([entry])
    .read(entry, agentTaskList, list)
    .catch((error: unknown) => error)
  expect(failure).toMatchObject({ error: 'TaskNotFound', data: { agent: 'calc' } })
  expect([hasUnsafeCharacters(String(failure)), String(failure).includes('secret')]).toEqual([false, false])
  expect(String(failure).length).toBeLessThan(400)
})

test('an agent that missed the deadline is not requested again for 5 s', async () => {
  let requests = 0
  const entry = await agentAt(() => {
    requests += 1
  })
  const reader = readerOf([entry], { timeoutMs: 100 })
  await reasonsOf(reader)
  expect(await reasonsOf(reader)).toMatchObject([{ reason: expect.stringContaining('a moment ago') }])
  expect(requests).toBe(1)
  const later = Date.now() + 6000
  vi.useFakeTimers({ toFake: ['Date'], now: later })
  await reasonsOf(reader)
  vi.useRealTimers()
  expect(requests).toBe(2)
})

test('agents that are starting, unreachable or quarantined receive no request; a relayed one does', async () => {
  let requests = 0
  const entry = await agentAt((_request, response) => {
    requests += 1
    response.end(JSON.stringify(nothing))
  })
  const [starting, down, quarantined, ejected] = ['starting', 'down', 'quarantined', 'ejected'].map(
    (slug) => ({
      ...entry,
      id: slug,
      slug,
    }),
  )
  const quarantine = { since: '2026-11-22T00:00:00Z', reason: 'bad answers' }
  const agents = [
    { ...starting, status: 'starting' },
    { ...down, status: 'unreachable' },
    { ...quarantined, quarantine: { ...quarantine, by: 'root' } },
    { ...ejected, quarantine },
  ] as AgentEntry[]
  const { answers, unread } = await readerOf(agents).readAll(agentTaskList, list)
  expect(answers.map(({ entry: { slug } }) => slug)).toEqual(['ejected'])
  expect(unread.map(({ agent, reason }) => [agent, reason.replace(/^Agent \S+ /, '')])).toEqual([
    ['starting', 'is starting. Try again.'],
    ['down', 'does not answer. Check its process and its log.'],
    ['quarantined', 'is quarantined and receives no requests. Release it to read its entries.'],
  ])
  expect(requests).toBe(1)
})

test('at most 16 agents are read at a time, and those that are not read in time are unread', async () => {
  let [running, most] = [0, 0]
  const entry = await agentAt((_request, response) => {
    running += 1
    most = Math.max(most, running)
    setTimeout(() => {
      running -= 1
      response.end(JSON.stringify(nothing))
    }, 40)
  })
  const agents = Array.from({ length: 50 }, (_, index) => ({ ...entry, id: `a${index}`, slug: `a${index}` }))
  const all = await readerOf(agents).readAll(agentTaskList, list)
  expect([all.answers.length, all.unread.length, most]).toEqual([50, 0, 16])
  const hurried = await readerOf(agents, { totalTimeoutMs: 60 }).readAll(agentTaskList, list)
  expect(hurried.unread.length).toBeGreaterThan(0)
  expect(hurried.answers.length + hurried.unread.length).toBe(50)
  const few = await readerOf(agents, { agentsMax: 10 }).readAll(agentTaskList, list)
  expect([few.answers.length, few.unread.length]).toEqual([10, 40])
  expect(few.unread[0]?.reason).toContain('At most 10 agents')
})
