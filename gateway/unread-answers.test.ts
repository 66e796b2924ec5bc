import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { agent, bearer, call, gateway, gatewayForEachTest, saying } from './testing.ts'

gatewayForEachTest({ ANSWERS_PER_CALLER_MAX_BYTES: '25000000', ANSWERS_MAX_BYTES: '45000000' })

/** Larger than what the operating system buffers for a client that does not read. */
const blob = 'y'.repeat(9_900_000)
const open = new Set<Socket>()
afterEach(() => {
  for (const socket of open) socket.destroy()
  open.clear()
})

/** Sends requests whose clients read the first bytes of the response and then stop. */
function statuses(count: number, method: string, params: () => object): Promise<number[]> {
  const { host, port } = new URL(gateway().addresses.public)
  return Promise.all(
    Array.from({ length: count }, async () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: params() })
      const socket = connect(Number(port), '127.0.0.1')
      open.add(socket)
      socket.on('error', () => {})
      socket.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${bearer('alice')}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      )
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      socket.pause()
      return Number(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1])
    }),
  )
}

const count = (list: number[], status: number) => list.filter((one) => one === status).length
const status = { state: 'submitted', timestamp: '2026-11-22T00:00:00.000000+00:00' }
const largeTask = () => ({
  id: randomUUID(),
  context_id: randomUUID(),
  kind: 'task',
  status,
  history: [blob],
})
const weather = 'Weather forecast for any city'

test('requests for merged lists that a caller does not read get 429 with Retry-After beyond the limit', async () => {
  const sky = await agent('sky', weather)
  await call('message/send', saying('weather forecast'))
  sky.on['tasks/list'] = () => [largeTask()]
  // The requests are sequential, because an agent has two seconds for its response.
  const answered: number[] = []
  while (answered.length < 5) answered.push(...(await statuses(1, 'tasks/list', () => ({}))))
  expect(answered).toEqual([200, 200, 429, 429, 429])
  const refused = await call('tasks/list', {})
  expect(refused).toMatchObject({ status: 429, json: { error: { data: { reason: 'unread_answers' } } } })
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(await fetch(`${gateway().addresses.public}/health`)).toMatchObject({ status: 200 })
})

test('large messages whose responses a caller does not read are rejected before an agent gets them', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = largeTask
  const large = () => saying(`weather forecast ${blob}`)
  const answered = await statuses(6, 'message/send', large)
  expect([count(answered, 200), count(answered, 429)]).toEqual([2, 4])
  expect(sky.sent()).toHaveLength(2)
})

test('a response beyond the memory budget leaves the outcome unknown, and the 503 names the key for repeating the message', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = largeTask
  expect(await statuses(2, 'message/send', () => saying('weather forecast'))).toEqual([200, 200])
  const refused = await call('message/send', saying('weather forecast'))
  expect(refused).toMatchObject({ status: 503, json: { error: { data: { agent: 'sky' } } } })
  expect(sky.sent()).toHaveLength(3)
})

test('unread responses to tasks/get are not rejected, because streamed responses are not buffered', async () => {
  const sky = await agent('sky', weather)
  const task = (await call('message/send', saying('weather forecast'))).json.result
  sky.on['tasks/get'] = () => ({ ...largeTask(), id: task.id })
  expect(await statuses(6, 'tasks/get', () => ({ task_id: task.id }))).toEqual(Array(6).fill(200))
  expect((await call('tasks/list', {})).status).toBe(200)
})
