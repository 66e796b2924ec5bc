import { setTimeout as wait } from 'node:timers/promises'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, onTestFinished, test } from 'vitest'
import { alice, bob } from '../store/sample-record.cases.ts'
import { Deliverer, type DelivererOptions } from './deliverer.ts'
import { asNew, endedTask, fixture } from './dispatcher-fixture.cases.ts'
import type { DispatcherOptions } from './dispatcher-options.ts'

/** Starts one server for every host name. The `dead*` hosts accept a POST and never respond. */
async function receivers(options: Partial<DispatcherOptions> & { posts?: DelivererOptions } = {}) {
  const { posts, ...limits } = options
  const receiver = await WebhookReceiver.start({
    answer: ({ headers }) => (headers.host?.startsWith('dead') === true ? 'hang' : 200),
  })
  const allowed = parseAllowedHosts('127.0.0.0/8')
  const resolver = async () => ['127.0.0.1']
  // No request times out during a test.
  const deliverer = new Deliverer({ allowed, resolver, timeoutMs: 600_000, ...posts })
  const { store, open } = await fixture({ deliverer, ...limits })
  const { dispatcher, registrations } = open()
  onTestFinished(async () => {
    await dispatcher.drain(0)
    await deliverer[Symbol.asyncDispose]()
    await receiver[Symbol.asyncDispose]()
  })
  const owe = async (owner: string, host: string, text?: string) => {
    const { before, after } = await endedTask(store, text, owner)
    const url = `http://${host}.example:${receiver.port}/`
    await registrations.set(after, { id: 'c', url }, asNew)
    dispatcher.committed(before, after)
  }
  const cameTo = (host: string) =>
    receiver.posts.filter(({ headers }) => headers.host?.startsWith(`${host}.`) === true)
  /** Waits until no further request is sent, because the remaining ones wait for hanging receivers. */
  const settled = async () => {
    for (let seen = -1; seen !== receiver.posts.length; await wait(500)) seen = receiver.posts.length
  }
  return { owe, cameTo, settled, receiver }
}

const numbersOf = (posts: { event: { sequence: number } }[]) => posts.map(({ event }) => event.sequence)

test("an owner with 700 hanging receivers on 700 hosts does not delay another owner's deliveries", async () => {
  const { owe, cameTo, settled } = await receivers()
  for (let i = 0; i < 700; i += 1) await owe(alice, `dead${i}`)
  await settled()
  await owe(bob, 'bob')
  await expect.poll(() => numbersOf(cameTo('bob')), { timeout: 10_000 }).toEqual([1, 2, 3])
}, 60_000)

test("one owner's undelivered bytes do not delay another owner's large events", async () => {
  const { owe, cameTo, settled } = await receivers({ bytesMax: 2 * 1024 * 1024 })
  const large = 'x'.repeat(100_000)
  for (let i = 0; i < 60; i += 1) await owe(alice, `dead${i}`, large)
  await settled()
  await owe(bob, 'bob', large)
  await expect.poll(() => numbersOf(cameTo('bob')), { timeout: 10_000 }).toEqual([1, 2, 3])
}, 60_000)

test("one owner's stored webhooks beyond the memory limit leave capacity for another owner", async () => {
  const { owe, cameTo, settled } = await receivers({ queuesMax: 100 })
  for (let i = 0; i < 150; i += 1) await owe(alice, `dead${i}`)
  await settled()
  await owe(bob, 'bob')
  await expect.poll(() => numbersOf(cameTo('bob')), { timeout: 10_000 }).toEqual([1, 2, 3])
}, 60_000)
