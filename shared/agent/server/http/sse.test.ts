import { connect, type Socket } from 'node:net'
import type { InProcessEventBus } from '@parley/engine/events/in-process'
import type { Frame, FrameWriter } from '@parley/wire/codecs/codec'
import { afterEach, expect, test, vi } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'
import { eventStream } from './sse.ts'

afterEach(() => {
  vi.useRealTimers()
})

const never = new AbortController().signal
const writer: FrameWriter<Frame> = { write: (frame) => frame, writePart: (part) => part }

/** Frames that the test emits. */
function handMade() {
  const waiting: ((step: IteratorResult<Frame, void>) => void)[] = []
  let returned = false
  const frames: AsyncIterable<Frame> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise((resolve) => waiting.push(resolve)),
      return: () => {
        returned = true
        return Promise.resolve({ done: true, value: undefined })
      },
    }),
  }
  const say = (step: IteratorResult<Frame, void>) => waiting.shift()?.(step)
  return { frames, say, wasReturned: () => returned }
}

test('a numbered frame has an id line and a data line; a frame without a number has only a data line', async () => {
  const { frames, say } = handMade()
  const text = eventStream(frames, { writer, stopping: never })
  const first = text.next()
  say({ done: false, value: { id: 0, data: { text: 'a\nb\r\n\u2028' } } })
  expect((await first).value).toBe('id: 0\ndata: {"text":"a\\nb\\r\\n\u2028"}\n\n')
  const second = text.next()
  say({ done: false, value: { data: {} } })
  expect((await second).value).toBe('data: {}\n\n')
  const end = text.next()
  say({ done: true, value: undefined })
  expect((await end).done).toBe(true)
})

test('a stream sends a comment line every 15 s without losing a frame', async () => {
  vi.useFakeTimers()
  const { frames, say } = handMade()
  const text = eventStream(frames, { writer, stopping: never })
  for (let i = 0; i < 3; i += 1) {
    const next = text.next()
    await vi.advanceTimersByTimeAsync(15_000)
    expect((await next).value).toMatch(/^: [^\n]*\n\n$/)
  }
  const next = text.next()
  say({ done: false, value: { id: 1, data: 'x' } })
  expect((await next).value).toBe('id: 1\ndata: "x"\n\n')
})

test('stopping the server sends committed frames and ends the stream with a comment', async () => {
  const { frames, wasReturned } = handMade()
  const stopping = new AbortController()
  const text = eventStream(frames, { writer, stopping: stopping.signal })
  const next = text.next()
  stopping.abort()
  expect((await next).value).toMatch(/^: /)
  expect((await text.next()).done).toBe(true)
  expect(wasReturned()).toBe(true)
})

test('a slow reader is disconnected to limit its buffer, and can continue from its last event number', async () => {
  const flow = Promise.withResolvers<void>()
  await using agent = await testAgent({
    async *handle() {
      await flow.promise
      for (let i = 0; i < 3500; i += 1) {
        yield `${i} `.padEnd(8192, '.')
        if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
    },
  })
  const alice = agent.caller('alice')
  const task = await alice.send('go')
  const socket = await pausedReader(agent, alice.token, task.id)
  flow.resolve()
  expect((await alice.wait(task.id)).status.state).toBe('completed')
  const text = await readToEnd(socket)
  expect(text).toContain(': the client reads too slowly')
  expect(text).not.toContain('"state":"completed"')
  const rest = await Array.fromAsync(alice.resubscribe(task.id, 1))
  expect(rest.map(({ sequence }) => sequence)).toEqual([2, 3])
  await expect.poll(() => (agent.app.services.bus as InProcessEventBus).topics).toBe(0)
})

/** Reads the first frame and then stops reading. */
async function pausedReader(agent: TestAgent, token: string, taskId: string): Promise<Socket> {
  const { port } = new URL(agent.url)
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: '1',
    method: 'tasks/resubscribe',
    params: { task_id: taskId },
  })
  const head = `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${body.length}\r\n\r\n`
  const socket = connect(Number(port), '127.0.0.1', () => socket.write(head + body))
  await new Promise<void>((resolve) => {
    socket.once('data', () => {
      socket.pause()
      resolve()
    })
  })
  return socket
}

async function readToEnd(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
