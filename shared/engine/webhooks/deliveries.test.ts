import { expect, test } from 'vitest'
import type { Delivery, DeliveryResult } from './deliverer.ts'
import { Deliveries } from './deliveries.ts'
import { asNew, endedTask, fixture, inline } from './dispatcher-fixture.cases.ts'

/** A started dispatcher with a receiver that drops the events in `refused` and fails those in `retried` once. */
async function started() {
  const refused = new Set<number>()
  const sent: string[] = []
  let hold: Promise<void> | undefined
  const deliver = async ({ body, onAttempt }: Delivery): Promise<DeliveryResult> => {
    const { sequence, event_id: id } = JSON.parse(body.toString())
    await hold
    sent.push(`${id} ${sequence}`)
    const isRefused = refused.has(sequence)
    const error = isRefused && { error: 'The receiver responded with 400' }
    const status = isRefused ? 400 : 200
    onAttempt?.({ number: 1, durationMs: 7, status, willRetry: false, ...error })
    const last = { attempts: 1, lastStatus: status }
    return isRefused ? { outcome: 'dropped', reason: 'rejected', ...last } : { outcome: 'delivered', ...last }
  }
  const { store, open } = await fixture({ deliverer: { deliver } })
  const { dispatcher, registrations } = open()
  const deliveries = new Deliveries({ registrations, store })
  const send = async (more: { id?: string; longRunning?: boolean; owner?: string } = {}) => {
    const { before, after } = await endedTask(store, undefined, more.owner)
    const config = inline(more.id ?? 'c')
    await registrations.set(after, config, { ...asNew, longRunning: more.longRunning ?? true })
    dispatcher.committed(before, after)
    await expect.poll(() => dispatcher.isBusy()).toBe(false)
    return after
  }
  const settled = () => expect.poll(() => dispatcher.isBusy()).toBe(false)
  const holdUntil = (promise: Promise<void> | undefined) => {
    hold = promise
  }
  return { refused, sent, deliveries, send, settled, holdUntil, dispatcher }
}

const day = '2026-01-01T00:00:00Z'

test.each([true, false])(
  'dropped events of an ended task are sent again in order and with their ids (long_running %s)',
  async (longRunning) => {
    const { refused, sent, deliveries, send, settled } = await started()
    for (const sequence of [1, 3]) refused.add(sequence)
    const task = await send({ longRunning })
    const dropped = await deliveries.find(task.id, 'c')
    expect(dropped).toMatchObject({ state: 'dropped', events: 3, config: { open: false, settled: 3 } })
    expect(dropped.config.health).toMatchObject({ dropped: { rejected: 2 }, delivered: 1 })
    refused.clear()
    sent.length = 0
    expect(await deliveries.resend(task.id, 'c', {})).toBe(2)
    await settled()
    expect(sent).toEqual(['e1 1', 'e3 3'])
    const { state, config } = await deliveries.find(task.id, 'c')
    expect([state, config.open, config.settled, config.resend]).toEqual(['delivered', false, 3, undefined])
    expect(config.health.tries?.map(({ sequence, status }) => [sequence, status])).toEqual([
      [1, 400],
      [2, 200],
      [3, 400],
      [1, 200],
      [3, 200],
    ])
  },
)

test('all events from a sequence number on are sent again, by default the last one', async () => {
  const { sent, deliveries, send, settled } = await started()
  const { id } = await send()
  sent.length = 0
  expect(await deliveries.resend(id, 'c', { sequence: 2 })).toBe(2)
  await settled()
  expect(await deliveries.resend(id, 'c', {})).toBe(1)
  await settled()
  expect(sent).toEqual(['e2 2', 'e3 3', 'e3 3'])
})

test('of two operators who send the same events again at the same time, one succeeds', async () => {
  const { refused, sent, deliveries, send, settled, holdUntil } = await started()
  refused.add(2)
  const { id } = await send()
  const { promise, resolve } = Promise.withResolvers<void>()
  holdUntil(promise)
  sent.length = 0
  const results = await Promise.allSettled([1, 2].map(() => deliveries.resend(id, 'c', {})))
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  await expect(deliveries.resend(id, 'c', {})).rejects.toMatchObject({
    error: 'Conflict',
    data: { reason: 'resend_in_progress' },
  })
  expect(await deliveries.resendDropped({ since: day })).toEqual({ configs: 0, events: 0, more: false })
  resolve()
  await settled()
  expect(sent).toEqual(['e2 2'])
})

test('an event that is being delivered is not sent a second time by a resend', async () => {
  const { sent, deliveries, send, holdUntil, settled } = await started()
  const { promise, resolve } = Promise.withResolvers<void>()
  holdUntil(promise)
  const sending = send()
  await expect.poll(async () => (await deliveries.list({ limit: 5 })).items.length).toBe(1)
  const [pending] = (await deliveries.list({ limit: 5 })).items
  expect(pending?.state).toBe('pending')
  const { id } = pending?.config.task ?? { id: '' }
  for (const sequence of [undefined, 1, 3])
    await expect(
      deliveries.resend(id, 'c', sequence === undefined ? {} : { sequence }),
    ).rejects.toMatchObject({ error: 'Conflict', data: { reason: 'not_settled' } })
  resolve()
  await sending
  await settled()
  expect(sent).toEqual(['e1 1', 'e2 2', 'e3 3'])
})

test('all events that were dropped since a time are sent again, for one owner or for all', async () => {
  const { refused, sent, deliveries, send, settled } = await started()
  refused.add(2)
  for (const [owner, longRunning] of [
    ['alice', true],
    ['bob', false],
    ['bob', true],
  ] as const)
    await send({ owner, longRunning })
  refused.clear()
  sent.length = 0
  const later = new Date(Date.now() + 60_000).toISOString()
  expect(await deliveries.resendDropped({ since: later })).toMatchObject({ configs: 0 })
  expect(await deliveries.resendDropped({ since: day, until: day })).toMatchObject({ configs: 0 })
  expect(await deliveries.resendDropped({ owner: 'bob', since: day })).toMatchObject({
    configs: 2,
    events: 2,
  })
  await settled()
  expect(await deliveries.resendDropped({ since: day })).toMatchObject({ configs: 1, events: 1 })
  await settled()
  expect(sent).toEqual(['e2 2', 'e2 2', 'e2 2'])
  expect((await deliveries.list({ limit: 9, state: 'dropped' })).items).toEqual([])
})

test('configs of all owners and both kinds are listed newest first, page by page, by owner and by state', async () => {
  const { refused, deliveries, send } = await started()
  const tasks: string[] = []
  for (let i = 0; i < 5; i += 1) {
    if (i === 3) refused.add(1)
    tasks.push((await send({ owner: i % 2 === 0 ? 'alice' : 'bob', longRunning: i < 2 })).id)
  }
  const pages: string[] = []
  for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
    const page = await deliveries.list({ limit: 2, cursor })
    pages.push(...page.items.map(({ config }) => config.task.id))
    cursor = page.nextCursor
  }
  expect(pages).toEqual(tasks.toReversed())
  const ids = async (filter: object) =>
    (await deliveries.list({ limit: 9, ...filter })).items.map(({ config }) => config.task.id)
  expect(await ids({ owner: 'bob' })).toEqual([tasks[3], tasks[1]])
  expect(await ids({ state: 'dropped' })).toEqual([tasks[4], tasks[3]])
  expect(await ids({ until: day })).toEqual([])
  expect((await deliveries.ofTask(tasks[0] ?? '', 'bob')).length).toBe(0)
  expect((await deliveries.ofTask(tasks[0] ?? '', 'alice')).length).toBe(1)
})

test.each(['x', 'e30x', Buffer.from('{"stored":"1;DROP"}').toString('base64url'), '"', 'W10'])(
  'a forged cursor %s is refused or starts the list again',
  async (cursor) => {
    const { deliveries } = await started()
    const read = deliveries.list({ limit: 2, cursor })
    await expect(
      read.then(
        ({ items }) => items,
        ({ error }: { error: string }) => error,
      ),
    ).resolves.toSatisfy((result) => result === 'InvalidParams' || Array.isArray(result))
  },
)

test('the newest 20 attempts are kept', async () => {
  const { deliveries, send, settled } = await started()
  const { id } = await send()
  for (let i = 0; i < 10; i += 1) {
    await deliveries.resend(id, 'c', { sequence: 1 })
    await settled()
  }
  const { health } = (await deliveries.find(id, 'c')).config
  expect([health.attempts, health.tries?.length, health.tries?.at(-1)?.sequence]).toEqual([33, 20, 3])
})
