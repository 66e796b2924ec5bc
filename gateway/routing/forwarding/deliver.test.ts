import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { AnswerBudget } from '@parley/kit/process/answer-budget'
import Fastify from 'fastify'
import { Agent } from 'undici'
import { afterEach, expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { type Delivery, deliver } from './deliver.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.()
})

type Answer = (response: http.ServerResponse, time: number) => void

/** Sends one message to an agent that responds with `answer`. Resolves with the outcome and the reported signals. */
async function delivered(answer: Answer, limits: Partial<Delivery> = {}) {
  let times = 0
  const agent = http.createServer((request, response) => {
    times += 1
    request.resume().once('end', () => answer(response, times))
  })
  await once(agent.listen(0, '127.0.0.1'), 'listening')
  open.push(
    () => agent.close(),
    () => agent.closeAllConnections(),
  )
  const upstream = new Agent()
  open.push(() => upstream.destroy())
  const origin = `http://127.0.0.1:${(agent.address() as AddressInfo).port}`
  const target = {
    entry: { id: 'sky', slug: 'sky' } as AgentEntry,
    upstream,
    origin,
    path: '/',
    authorization: undefined,
  }
  const signs: string[] = []
  const reportSignal: Delivery['reportSignal'] = (_id, sign) => void signs.push(sign)
  const front = Fastify()
  open.push(() => front.close())
  front.post('/', async (request, reply) => {
    const body = Buffer.from('{}')
    const claim = new AnswerBudget({ callerMaxBytes: 2 ** 30, processMaxBytes: 2 ** 30 }).open('alice')
    const { kind } = await deliver(target, {
      request,
      reply,
      sent: { body },
      key: 'k',
      reportSignal,
      claim,
      ...limits,
    })
    return { kind }
  })
  const response = await fetch(await front.listen({ port: 0, host: '127.0.0.1' }), { method: 'POST' })
  const { kind } = (await response.json()) as { kind: string }
  return { kind, signs, times }
}

const busy = (reason: string) => JSON.stringify({ error: { code: -32042, data: { reason } } })
const say =
  (status: number, text: string): Answer =>
  (response) =>
    void response.writeHead(status).end(text)

test.each<[string, Answer, string, string[]]>([
  ['answers', say(200, '{}'), 'answered', ['answered']],
  ['rejects the message', say(400, '{}'), 'answered', ['answered']],
  ['fails', say(500, '{}'), 'answered', ['failed']],
  ['reports a full queue', say(503, busy('queue_full')), 'not taken', ['answered']],
  // If all processes of an agent share the failed storage, ejecting the agent would turn a clear 503 into a
  // permanent failure.
  ['reports failed storage', say(503, busy('storage')), 'answered', ['answered']],
  [
    'fails with a JSON-RPC error and the status 200',
    say(200, '{"error":{"code":-32603}}'),
    'answered',
    ['failed'],
  ],
  [
    'reports another error with the status 200',
    say(200, '{"error":{"code":-32004}}'),
    'answered',
    ['answered'],
  ],
  ['responds with 503 without a reason', say(503, 'try later'), 'answered', ['answered']],
])('an agent that %s', async (_what, answer, kind, signs) => {
  expect(await delivered(answer)).toEqual({ kind, signs, times: 1 })
})

test('an agent that breaks the connection gets the message again, and its failure counts only once', async () => {
  const answer: Answer = (response, time) => (time < 4 ? response.destroy() : say(200, '{}')(response, time))
  expect(await delivered(answer)).toEqual({ kind: 'answered', signs: ['failed', 'answered'], times: 4 })
})

test.each<[string, (response: http.ServerResponse) => void, number]>([
  ['answers', (response) => void response.end('{}'), 1],
  ['breaks the connection', (response) => void response.destroy(), 2],
])(
  'an unresponsive agent counts as failed once while the gateway awaits its response; then it %s',
  async (_what, end, times) => {
    const signs: string[] = []
    const wasSilent = Promise.withResolvers<void>()
    const reportSignal: Delivery['reportSignal'] = (_id, sign) => {
      signs.push(sign)
      wasSilent.resolve()
    }
    const silent: Answer = (response, time) => {
      void wasSilent.promise.then(() => (time === 1 ? end(response) : response.end('{}')))
    }
    expect(await delivered(silent, { silentMs: 20, reportSignal })).toMatchObject({ kind: 'answered', times })
    expect(signs).toEqual(['failed', 'answered'])
  },
)

test('an agent that answers a blocking send when its task has ended is not unresponsive', async () => {
  const late: Answer = (response) => void setTimeout(() => response.end('{}'), 200)
  expect(await delivered(late, { silentMs: 20, waits: true })).toEqual({
    kind: 'answered',
    signs: ['answered'],
    times: 1,
  })
})

test('a repeated message may wait for its task for longer than messages are repeated', async () => {
  const answer: Answer = (response, time) =>
    time === 1 ? response.destroy() : void setTimeout(() => response.end('{}'), 600)
  const limits = { repeatMs: 300, waits: true }
  expect(await delivered(answer, limits)).toMatchObject({ kind: 'answered', times: 2 })
})
