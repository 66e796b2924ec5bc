import { randomUUID } from 'node:crypto'
import net, { type AddressInfo } from 'node:net'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Attempt, Deliverer, type DelivererOptions, type Delivery } from './deliverer.ts'

const allowed = parseAllowedHosts('127.0.0.0/8')
/** The requested delays between attempts. */
let waits: number[] = []
let open: AsyncDisposableStack
beforeEach(() => {
  waits = []
  open = new AsyncDisposableStack()
})
afterEach(() => open.disposeAsync())

test('a receiver that fails twice gets an event in three attempts, each with the same bytes and id', async () => {
  const receiver = open.use(
    await WebhookReceiver.start({ answer: ({ attempt }) => (attempt < 3 ? 503 : 200) }),
  )
  const attempts: Attempt[] = []
  const { body, id } = event()
  const result = await deliverer().deliver({
    url: receiver.url,
    body,
    onAttempt: (attempt) => attempts.push(attempt),
  })
  expect(result).toEqual({ outcome: 'delivered', attempts: 3, lastStatus: 200 })
  expect(attempts).toMatchObject([
    { number: 1, status: 503, error: 'The receiver responded with 503' },
    { number: 2, status: 503 },
    { number: 3, status: 200 },
  ])
  expect(attempts.every(({ durationMs }) => durationMs > 0)).toBe(true)
  expect(receiver.posts.map((post) => [post.event.event_id, post.body.equals(body)])).toEqual([
    [id, true],
    [id, true],
    [id, true],
  ])
  expect(waits).toEqual([750, 1500])
})

test('sends the token verbatim in both headers, omits the headers without a token, and sends a JSON body', async () => {
  const receiver = open.use(await WebhookReceiver.start())
  const sender = deliverer()
  const token = 'a+b/c==, "d" ~!'
  await sender.deliver({ url: receiver.url, token, body: event().body })
  await sender.deliver({ url: receiver.url, body: event().body })
  const [first, second] = receiver.posts.map(({ headers }) => headers)
  expect(first).toMatchObject({
    authorization: `Bearer ${token}`,
    'x-a2a-notification-token': token,
    'content-type': 'application/json',
  })
  expect(second).not.toHaveProperty('authorization')
  expect(second).not.toHaveProperty('x-a2a-notification-token')
})

describe('response status', () => {
  test.each([200, 201, 202, 204, 205, 226, 299])('delivers the event if the status is %i', async (status) => {
    expect(await deliverTo({ answer: status })).toEqual({
      outcome: 'delivered',
      attempts: 1,
      lastStatus: status,
    })
  })

  test.each([429, 500, 501, 502, 503, 504, 599])(
    'drops the event after three attempts if the status is %i',
    async (status) => {
      expect(await deliverTo({ answer: status })).toMatchObject({
        outcome: 'dropped',
        attempts: 3,
        lastStatus: status,
        reason: 'exhausted',
      })
    },
  )

  test.each([400, 401, 403, 404, 408, 410, 413, 422, 425, 451, 499])(
    'drops the event without a retry if the status is %i',
    async (status) => {
      expect(await deliverTo({ answer: status })).toEqual({
        outcome: 'dropped',
        attempts: 1,
        lastStatus: status,
        lastError: `The receiver responded with ${status}`,
        reason: 'rejected',
      })
    },
  )

  test.each([300, 301, 302, 303, 304, 307, 308])('%i: dropped and not followed', async (status) => {
    const elsewhere = open.use(await WebhookReceiver.start())
    const answer = { status, headers: { location: elsewhere.url } }
    expect(await deliverTo({ answer })).toMatchObject({ outcome: 'dropped', attempts: 1, reason: 'redirect' })
    expect(elsewhere.connections).toBe(0)
  })
})

test.each([
  [
    'a connection that is closed without a response',
    'cut',
    'The connection was lost before the end of the response',
  ],
  ['an answer that does not come', 'hang', 'No complete response within 150 ms'],
] as const)('%s: three attempts, then dropped', async (_title, answer, error) => {
  const result = await deliverTo({ answer }, { timeoutMs: 150 })
  expect(result).toEqual({ outcome: 'dropped', attempts: 3, lastError: error, reason: 'exhausted' })
})

test('makes three attempts if the port is closed or the host name is unknown', async () => {
  const probe = net.createServer()
  await new Promise<void>((listening) => probe.listen(0, '127.0.0.1', listening))
  const { port } = probe.address() as AddressInfo
  await new Promise((closed) => probe.close(closed))
  const { body } = event()
  expect(await deliverer().deliver({ url: `http://127.0.0.1:${port}/`, body })).toEqual({
    outcome: 'dropped',
    attempts: 3,
    lastError: 'The host could not be reached',
    reason: 'exhausted',
  })
  const resolver = () => Promise.reject(new Error('ENOTFOUND'))
  const unknown = await deliverer({ resolver }).deliver({ url: 'http://hook.example/', body })
  expect(unknown).toMatchObject({ attempts: 3, lastError: 'The host name was not found' })
})

test('honours Retry-After up to 5 s', async () => {
  const headers = [{ 'retry-after': '3' }, { 'retry-after': '3600' }, {}]
  const result = await deliverTo({
    answer: ({ attempt }) => ({ status: attempt === 3 ? 200 : 429, headers: headers[attempt - 1] ?? {} }),
  })
  expect([result.outcome, waits]).toEqual(['delivered', [3000, 5000]])
})

describe('a signal that aborts a delivery', () => {
  test('aborts before anything was sent', async () => {
    const receiver = open.use(await WebhookReceiver.start())
    const delivery = { url: receiver.url, body: event().body, signal: AbortSignal.abort() }
    expect(await deliverer().deliver(delivery)).toEqual({ outcome: 'aborted', attempts: 0 })
    expect(receiver.connections).toBe(0)
  })

  test('aborts during an attempt', async () => {
    const receiver = open.use(await WebhookReceiver.start({ answer: 'hang' }))
    const abort = new AbortController()
    const result = deliverer().deliver({ url: receiver.url, body: event().body, signal: abort.signal })
    await receiver.waitFor(1)
    abort.abort()
    expect(await result).toEqual({ outcome: 'aborted', attempts: 0 })
  })

  test('aborts between attempts, and the result is that of the last attempt', async () => {
    const receiver = open.use(await WebhookReceiver.start({ answer: 503 }))
    const abort = new AbortController()
    const sender = open.use(new Deliverer({ allowed }))
    const onAttempt = () => abort.abort()
    const delivery = { url: receiver.url, body: event().body, signal: abort.signal, onAttempt }
    expect(await sender.deliver(delivery)).toMatchObject({
      outcome: 'aborted',
      attempts: 1,
      lastStatus: 503,
    })
    expect(receiver.posts.length).toBe(1)
  })

  test('aborts while the delivery waits for a slot', async () => {
    const receiver = open.use(await WebhookReceiver.start({ answer: 'hang' }))
    const sender = deliverer({ perHostMax: 1 })
    const [holding, waiting] = [new AbortController(), new AbortController()]
    const first = sender.deliver({ url: receiver.url, body: event().body, signal: holding.signal })
    await receiver.waitFor(1)
    const second = sender.deliver({ url: receiver.url, body: event().body, signal: waiting.signal })
    waiting.abort()
    expect(await second).toEqual({ outcome: 'aborted', attempts: 0 })
    holding.abort()
    expect((await first).outcome).toBe('aborted')
    expect(sender.inFlight).toBe(0)
  })
})

test('delivers many events to one receiver over few connections', async () => {
  const receiver = open.use(await WebhookReceiver.start())
  const sender = deliverer({ perHostMax: 4 })
  const results = await Promise.all(
    Array.from({ length: 200 }, () => sender.deliver({ url: receiver.url, body: event().body })),
  )
  expect(new Set(results.map(({ outcome }) => outcome))).toEqual(new Set(['delivered']))
  expect(receiver.events.length).toBe(200)
  expect(receiver.connections).toBeLessThanOrEqual(4)
})

test('does not count the wait for a slot towards the request timeout', async () => {
  const receiver = open.use(await WebhookReceiver.start({ answer: { status: 200, afterMs: 300 } }))
  const sender = deliverer({ perHostMax: 1, timeoutMs: 4000 })
  const results = await Promise.all(
    Array.from({ length: 15 }, () => sender.deliver({ url: receiver.url, body: event().body })),
  )
  expect(results).toEqual(results.map(() => ({ outcome: 'delivered', attempts: 1, lastStatus: 200 })))
})

test('hanging receivers do not delay another receiver, even if they exceed the limit per host', async () => {
  const dead = await Promise.all(Array.from({ length: 3 }, () => WebhookReceiver.start({ answer: 'hang' })))
  for (const receiver of dead) open.use(receiver)
  const quick = open.use(await WebhookReceiver.start())
  const sender = deliverer({ perHostMax: 2, totalMax: 12 })
  const abort = new AbortController()
  const hanging = dead.flatMap(({ url }) =>
    Array.from({ length: 20 }, () => sender.deliver({ url, body: event().body, signal: abort.signal })),
  )
  const result = await sender.deliver({ url: quick.url, body: event().body })
  expect([result.outcome, sender.inFlight]).toEqual(['delivered', 3])
  abort.abort()
  expect(new Set((await Promise.all(hanging)).map(({ outcome }) => outcome))).toEqual(new Set(['aborted']))
})

function deliverer(options: DelivererOptions = {}): Deliverer {
  const wait = async (ms: number) => waits.push(ms)
  return open.use(new Deliverer({ allowed, wait, random: () => 0.5, ...options }))
}

async function deliverTo(
  script: Parameters<typeof WebhookReceiver.start>[0],
  options: DelivererOptions = {},
  more: Partial<Delivery> = {},
) {
  const receiver = open.use(await WebhookReceiver.start(script))
  return deliverer(options).deliver({ url: receiver.url, body: event().body, ...more })
}

function event(): { id: string; body: Buffer } {
  const id = randomUUID()
  return { id, body: Buffer.from(JSON.stringify({ event_id: id, sequence: 1, text: 'é ☃' })) }
}
