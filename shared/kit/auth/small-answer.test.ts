import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { expect, test } from 'vitest'
import { SmallAnswer } from './small-answer.ts'

async function server(listener: RequestListener) {
  const http = createServer(listener)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const pool = new Pool(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, { connections: 1 })
  return {
    ask(answer: SmallAnswer) {
      pool.dispatch({ method: 'GET', path: '/' }, answer)
      return answer.received
    },
    async [Symbol.asyncDispose]() {
      await pool.destroy()
      http.closeAllConnections()
      http.close()
    },
  }
}

test('an answer is its status and its text, however it is cut into pieces', async () => {
  await using there = await server((_request, response) => {
    const bytes = Buffer.from('grüß dich')
    response.writeHead(201)
    response.write(bytes.subarray(0, 3))
    setImmediate(() => response.end(bytes.subarray(3)))
  })
  expect(await there.ask(new SmallAnswer(100))).toEqual({ status: 201, text: 'grüß dich' })
})

test('an answer that is too large is refused before it is all there, and the next one is heard', async () => {
  let asked = 0
  await using there = await server((_request, response) => {
    asked += 1
    if (asked > 1) response.end('small')
    // The first one never ends.
    else response.write('x'.repeat(101))
  })
  await expect(there.ask(new SmallAnswer(100))).rejects.toThrow('too large')
  expect((await there.ask(new SmallAnswer(100))).text).toBe('small')
})

test('a connection that breaks rejects', async () => {
  await using there = await server((request) => request.socket.destroy())
  await expect(there.ask(new SmallAnswer(100))).rejects.toThrow('other side closed')
})

test('an answer that is given up rejects: before it is asked for, and while it drips', async () => {
  await using there = await server((_request, response) => void response.write('x'))
  const early = new SmallAnswer(100)
  early.giveUp(new Error('too late'))
  await expect(there.ask(early)).rejects.toThrow('too late')
  const dripping = new SmallAnswer(100)
  const received = there.ask(dripping)
  setImmediate(() => dripping.giveUp(new Error('too late')))
  await expect(received).rejects.toThrow('too late')
})

test('giving up before anybody waits is told to who waits later', async () => {
  const answer = new SmallAnswer(100)
  answer.giveUp(new Error('too late'))
  // A rejection that nobody has taken by now would end the process.
  await new Promise((resolve) => setImmediate(resolve))
  await expect(answer.received).rejects.toThrow('too late')
})
