import { randomUUID } from 'node:crypto'
import { hasServers, type Servers, startServers } from '@parley/tools/testing/agent-processes'
import { KillableAgent } from '@parley/tools/testing/killable-agent'
import { encoded, price, requirements, TestWallet } from '@parley/tools/testing/paid-agent'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const source = `export default {
  name: 'paid', description: 'is paid in test money', executionCost: ${JSON.stringify(price)},
  skills: [{ id: 'work', name: 'Work', description: 'Works' }], handle: ({ text }) => text,
}`

interface Answer {
  status: number
  body: {
    result?: { id: string }
    session_id?: string
    capture_url?: string
    status?: string
    tx_hash?: string
  }
}

describe.skipIf(!hasServers)('payments to several processes (needs mongod, redis-server)', () => {
  let servers: Servers
  beforeAll(async () => {
    servers = await startServers()
  })
  afterAll(() => servers[Symbol.asyncDispose]())

  async function twoProcesses() {
    await using stack = new AsyncDisposableStack()
    const urls = { STORE_URL: servers.mongodb.newUrl(), REDIS_URL: servers.redis.url }
    const first = stack.use(await KillableAgent.start(source, urls))
    const second = stack.use(await first.another())
    const [token, operator] = [
      first.identityProvider.issue('alice'),
      first.identityProvider.issue('operator', { scope: 'agent:admin' }),
    ]
    const request = async (
      url: string,
      body: object | undefined,
      headers = {},
      as = token,
    ): Promise<Answer> => {
      const response = await fetch(url, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${as}`, ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as Answer['body'] }
    }
    /** Sends the same payment ten times, five times to each process, and each time for a different task. */
    const sendTen = (headers: Record<string, string>) =>
      Promise.all(
        Array.from({ length: 10 }, (_, i) => {
          const parts = [{ kind: 'text', text: `${i}` }]
          const message = { role: 'user', kind: 'message', messageId: randomUUID(), parts }
          const body = { jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } }
          return request(i % 2 === 0 ? first.url : second.url, body, headers)
        }),
      )
    const earned = async () => {
      const { body } = await request(`${second.url}/payments?state=earned`, undefined, {}, operator)
      return (body as unknown as { payments: { tx_hash: string }[] }).payments
    }
    const open = stack.move()
    return { first, second, request, sendTen, earned, [Symbol.asyncDispose]: () => open.disposeAsync() }
  }

  test('one signed transfer sent to both processes pays for one task and is earned once', async () => {
    await using agents = await twoProcesses()
    const payment = await new TestWallet().pay({ ...requirements })
    const answers = await agents.sendTen({ 'x-payment': encoded(payment) })
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    // The payment has been used, or another request is using it.
    expect(answers.filter(({ status }) => status === 402 || status === 409)).toHaveLength(9)
    await expect.poll(async () => (await agents.earned()).length).toBe(1)
  })

  test('a session that is paid in one process and spent in both pays for only one task', async () => {
    await using agents = await twoProcesses()
    const { body: session } = await agents.request(`${agents.first.url}/api/start-payment-session`, {})
    const status = (url: string, query = '') =>
      agents.request(`${url}/api/payment-status/${session.session_id}${query}`, undefined)
    const waiting = status(agents.second.url, '?wait=true')
    const payment = await new TestWallet().pay({ ...requirements })
    const paid = await agents.request(session.capture_url ?? '', {}, { 'x-payment': encoded(payment) })
    expect(paid.status).toBe(200)
    // A caller that waits in the other process is notified.
    expect((await waiting).body.status).toBe('completed')
    const answers = await agents.sendTen({ 'x-payment-session': session.session_id ?? '' })
    expect(answers.filter(({ status: code }) => code === 200)).toHaveLength(1)
    expect(answers.filter(({ status: code }) => code === 402 || code === 409)).toHaveLength(9)
    await expect.poll(async () => (await agents.earned()).length).toBe(1)
  })
})
