import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import type { WireTask } from '@parley/client/internal/client'
import { raw, rpc } from '@parley/tools/testing/raw-http'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

/** A text larger than the operating system's socket buffers. */
const blob = 'y'.repeat(9_900_000)
const env = { ANSWERS_PER_CALLER_MAX_BYTES: '25000000', ANSWERS_MAX_BYTES: '45000000' }
let agent: TestAgent
let large: WireTask
let small: WireTask
let gate = Promise.withResolvers<void>()
const open = new Set<Socket>()
beforeEach(async () => {
  const handle = async ({ text }: { text: string }) => {
    if (text === 'gate') await gate.promise
    return text === 'small' ? 'small' : { blob }
  }
  agent = await testAgent({ handle }, { env })
  large = await agent.caller('alice').sendAndWait('large')
  small = await agent.caller('alice').sendAndWait('small')
})
afterEach(async () => {
  leave()
  await agent[Symbol.asyncDispose]()
})

function leave(): void {
  for (const socket of open) socket.destroy()
  open.clear()
}

/** Sends requests with clients that read the first bytes of the response and then stop. */
function statuses(caller: string, method: string, params: object, count: number): Promise<number[]> {
  const { token } = agent.caller(caller)
  const { host, port } = new URL(agent.url)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(port), '127.0.0.1')
      open.add(socket)
      socket.on('error', () => {})
      socket.write(head + body)
      const [chunk] = (await once(socket, 'data')) as [Buffer]
      socket.pause()
      return Number(/^HTTP\/1\.1 (\d+)/.exec(chunk.toString('latin1'))?.[1])
    }),
  )
}

/** Reads a stream to its end. */
async function endOf(socket: Socket): Promise<'cut off' | 'complete'> {
  let last = ''
  for await (const chunk of socket) {
    last = (last + (chunk as Buffer).toString('latin1')).slice(-200_000)
    if (last.includes(': too many unread bytes')) return 'cut off'
    if (last.includes('"final":true')) return 'complete'
  }
  throw new Error('connection closed before the response')
}

const read = (caller: string, method: string, params: object) =>
  rpc(agent, method, params, { token: agent.caller(caller).token })

const message = (parts: object[]) => ({
  message: { role: 'user', kind: 'message', messageId: randomUUID(), parts },
})
const count = (list: number[], status: number) => list.filter((one) => one === status).length

test.each([
  ['tasks/get', () => ({ id: large.id })],
  ['tasks/list', () => ({})],
  ['tasks/events', () => ({ id: large.id })],
  ['tasks/resubscribe', () => ({ id: large.id, after_sequence: 0 })],
  [
    'message/send',
    () =>
      message([
        { kind: 'text', text: 'small' },
        { kind: 'data', data: { blob } },
      ]),
  ],
] as const)(
  '%s: a caller over its limit of unread responses gets 429 with Retry-After',
  async (method, params) => {
    // The first frame of a stream is small; the artifact is in the second one.
    if (method === 'tasks/resubscribe') await statuses('alice', 'tasks/get', { id: large.id }, 2)
    const responses = await statuses('alice', method, params(), 6)
    const fit = method === 'tasks/resubscribe' ? 6 : 2
    expect([count(responses, 200), count(responses, 429)]).toEqual([fit, 6 - fit])
    const refused = await read('alice', 'tasks/get', { id: large.id })
    expect(refused).toMatchObject({
      status: 429,
      json: { error: { code: -32041, data: { reason: 'unread_answers' } } },
    })
    expect(refused.headers.get('retry-after')).toBe('1')
  },
)

test('a stream whose first event is large is also rejected with 429', async () => {
  await statuses('alice', 'tasks/get', { id: large.id }, 2)
  expect(await read('alice', 'tasks/resubscribe', { id: large.id, after_sequence: 1 })).toMatchObject({
    status: 429,
    json: { error: { data: { reason: 'unread_answers' } } },
  })
})

test('a stream without budget for its next event ends with a comment and can resume from that event', async () => {
  gate = Promise.withResolvers()
  const alice = agent.caller('alice')
  const task = await alice.send('gate')
  const stream = read('alice', 'tasks/resubscribe', { id: task.id })
  await statuses('alice', 'tasks/get', { id: large.id }, 2)
  gate.resolve()
  const { text } = await stream
  expect(text).toContain(': too many unread bytes')
  expect(text).not.toContain(blob)
  leave()
  await vi.waitFor(async () => {
    const again = await read('alice', 'tasks/resubscribe', { id: task.id, after_sequence: 1 })
    expect(again.text).toContain(blob)
    expect(again.text).toMatch(/"final":true/)
  }, 5000)
})

test('buffered artifact pieces of a stream count as unread, and streams beyond the limit are closed', async () => {
  leave()
  await agent[Symbol.asyncDispose]()
  let made = 0
  const handle = async function* () {
    for (let piece = 0; piece < 90; piece += 1) yield blob.slice(0, 100_000)
    made += 1
  }
  agent = await testAgent({ handle }, { env })
  const params = message([{ kind: 'text', text: 'pieces' }])
  expect(await statuses('alice', 'message/stream', params, 6)).toEqual(Array(6).fill(200))
  await vi.waitFor(() => expect(made).toBe(6), { timeout: 15_000 })
  const ends: string[] = []
  for (const socket of open) ends.push(await endOf(socket))
  expect(ends).toContain('cut off')
})

test('beyond the process limit, other callers receive 503 with Retry-After, but small responses still succeed', async () => {
  const [bob, carol] = [agent.caller('bob'), agent.caller('carol')]
  const theirs = { bob: await bob.sendAndWait('large'), carol: await carol.sendAndWait('large') }
  expect(await statuses('alice', 'tasks/get', { id: large.id }, 2)).toEqual([200, 200])
  expect(await statuses('bob', 'tasks/get', { id: theirs.bob.id }, 2)).toEqual([200, 200])
  const refused = await read('carol', 'tasks/get', { id: theirs.carol.id })
  expect(refused).toMatchObject({
    status: 503,
    json: { error: { code: -32042, data: { reason: 'unread_answers' } } },
  })
  expect(refused.headers.get('retry-after')).toBe('2')
  expect(await raw(agent, { path: '/health', method: 'GET' })).toMatchObject({ status: 200 })
  expect(await read('alice', 'tasks/get', { id: small.id })).toMatchObject({ status: 200 })
  expect((await carol.sendAndWait('small')).status.state).toBe('completed')
})

test('hundreds of unread responses hold no more memory than the limit, and all of it is released', async () => {
  const responses = await statuses('alice', 'tasks/get', { id: large.id }, 300)
  expect([count(responses, 200), count(responses, 429)]).toEqual([2, 298])
  leave()
  await vi.waitFor(
    async () => {
      leave()
      expect(await statuses('alice', 'tasks/get', { id: large.id }, 2)).toEqual([200, 200])
    },
    { timeout: 5000, interval: 200 },
  )
})

test.each([
  ['a file', { kind: 'file', file: { name: 'a "b".bin', mimeType: 'x/y', bytes: 'QUJD'.repeat(150_000) } }],
  ['a non-ASCII text', { kind: 'text', text: '✓ "\\\u2028 😀'.repeat(60_000) }],
  [
    'a data object with metadata',
    { kind: 'data', data: { rows: ['z'.repeat(400_000)] }, metadata: { a: 1 } },
  ],
] as const)('%s stored separately from its task is returned complete by every method', async (_, part) => {
  const sent = await read('carol', 'message/send', message([{ kind: 'text', text: 'small' }, part]))
  const { id } = sent.json.result as WireTask
  const parts = sent.json.result.history[0].parts
  await agent.caller('carol').wait(id)
  const got = await read('carol', 'tasks/get', { id })
  expect(got.json.result.history[0].parts).toEqual(parts)
  const list = await read('carol', 'tasks/list', {})
  expect(list.json.result[0]).toMatchObject(got.json.result)
})

test('a large artifact is identical in tasks/get, tasks/events and a stream', async () => {
  const got = await read('alice', 'tasks/get', { id: large.id })
  const [artifact] = got.json.result.artifacts
  expect(artifact.parts[0].data).toEqual({ blob })
  const { events } = (await read('alice', 'tasks/events', { id: large.id })).json.result
  expect(events.find((event: { kind: string }) => event.kind === 'artifact-update').artifact).toEqual(
    artifact,
  )
  const { text } = await read('alice', 'tasks/resubscribe', { id: large.id, after_sequence: 0 })
  const frame = text.split('\n\n').find((block) => block.includes('artifact-update')) ?? ''
  expect(JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '').artifact).toEqual(artifact)
})
