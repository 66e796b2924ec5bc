import { randomUUID } from 'node:crypto'
import { timestamp } from '@parley/wire/model/timestamp'
import { describe, expect, test } from 'vitest'
import type { EventRange, PushConfig, TaskKey, WebhookStore } from './webhook-store.ts'

export const sampleTask = (given: Partial<TaskKey> = {}): TaskKey => ({
  id: randomUUID(),
  owner: 'did:parley:alice:agent:1',
  createdAt: timestamp(),
  ...given,
})

export const samplePushConfig = (given: Partial<PushConfig> = {}): PushConfig => ({
  task: sampleTask(),
  id: randomUUID(),
  revision: randomUUID(),
  setAt: timestamp(),
  url: 'https://example.com/hook',
  longRunning: true,
  settled: 0,
  open: true,
  health: { attempts: 0, delivered: 0, dropped: {} },
  ...given,
})

/**
 * Tests the guarantees of every adapter.
 * @param open returns a new, empty store
 */
export function webhookStoreCases(name: string, open: () => Promise<WebhookStore & AsyncDisposable>): void {
  describe(`${name} for push configs`, () => {
    test('a config is found unchanged by its task and id', async () => {
      await using store = await open()
      const config = samplePushConfig({
        name: 'a client’s own id',
        token: 'secret',
        authentication: { type: 'http', scheme: 'bearer' },
        credentials: { scheme: 'Basic', credentials: 'dTpw' },
        dialect: 'another',
      })
      expect(await store.savePushConfig(config, 5)).toBe(true)
      expect(await store.findPushConfig(config.task, config.id)).toEqual(config)
      expect(await store.listPushConfigs(config.task)).toEqual([config])
    })

    test.each<[string, Partial<TaskKey>]>([
      ['id', { id: 'other' }],
      ['owner', { owner: 'did:parley:bob:agent:2' }],
      ['creation', { createdAt: 'other' }],
    ])('a task with another %s does not have the config', async (_what, other) => {
      await using store = await open()
      const config = samplePushConfig()
      await store.savePushConfig(config, 5)
      const task = { ...config.task, ...other }
      expect(await store.findPushConfig(task, config.id)).toBeUndefined()
      expect(await store.listPushConfigs(task)).toEqual([])
      expect(await store.removePushConfig(task, config.id)).toBeUndefined()
      const settlement = { settled: 1, open: true, health: config.health }
      expect(await store.settlePushConfig({ ...config, task }, settlement)).toBe(false)
      expect(await store.findPushConfig(config.task, config.id)).toEqual(config)
    })

    test('events are sent again once per request, which keeps a closed config open until they are settled', async () => {
      await using store = await open()
      const config = samplePushConfig({ settled: 3, open: false })
      await store.savePushConfig(config, 5)
      expect(await store.resendPushConfig({ ...config, revision: 'old' }, [[1, 1]])).toBe(false)
      const both = await Promise.all([1, 2].map(() => store.resendPushConfig(config, [[1, 2]])))
      expect(both.filter(Boolean)).toHaveLength(1)
      const read = () => store.findPushConfig(config.task, config.id)
      expect(await read()).toMatchObject({ settled: 3, open: true, resend: [[1, 2]] })
      const { health } = config
      const resent = (before: EventRange[], after: EventRange[]) =>
        store.settlePushConfig(config, { settled: 3, open: true, health, resend: { before, after } })
      expect(await resent([[2, 2]], [])).toBe(false)
      expect(await resent([[1, 2]], [[2, 2]])).toBe(true)
      expect(await resent([[1, 2]], [[2, 2]])).toBe(false)
      expect(await store.settlePushConfig(config, { settled: 4, open: false, health })).toBe(true)
      expect(await read()).toMatchObject({ settled: 4, open: true, resend: [[2, 2]] })
      const last = { settled: 4, open: true, health, resend: { before: [[2, 2] as EventRange], after: [] } }
      expect(await store.settlePushConfig(config, last)).toBe(true)
      expect(await store.settlePushConfig(config, { settled: 4, open: false, health })).toBe(true)
      expect(await read()).toEqual({ ...config, settled: 4, open: false })
    })

    test('the configs of all tasks are listed page by page, each once', async () => {
      await using store = await open()
      const configs = [1, 2, 3, 4].map((i) => samplePushConfig({ open: i !== 2 }))
      for (const config of configs) await store.savePushConfig(config, 5)
      const first = await store.listAllPushConfigs({ limit: 3 })
      const rest = await store.listAllPushConfigs({ limit: 3, cursor: first.at(-1)?.cursor })
      expect([first.length, rest.length]).toEqual([3, 1])
      const listed = [...first, ...rest].map(({ config }) => config)
      expect(listed.filter(({ open: isOpen }) => isOpen)).toEqual(configs.filter((one) => one.open).reverse())
      expect(new Set(listed.map(({ id }) => id)).size).toBe(4)
      expect(await store.listAllPushConfigs({ limit: 3, cursor: rest.at(-1)?.cursor })).toEqual([])
    })

    test('the newest config comes first, even if it replaced another one', async () => {
      await using store = await open()
      const task = sampleTask()
      const [one, two] = [samplePushConfig({ task }), samplePushConfig({ task })]
      for (const config of [one, two]) await store.savePushConfig(config, 5)
      expect(await store.listPushConfigs(task)).toEqual([two, one])
      const again = { ...one, revision: randomUUID(), url: 'https://example.com/new' }
      await store.savePushConfig(again, 5)
      expect(await store.listPushConfigs(task)).toEqual([again, two])
    })

    test('a task with the maximum number of configs accepts only replacements', async () => {
      await using store = await open()
      const task = sampleTask()
      const [one, two, three] = [1, 2, 3].map(() => samplePushConfig({ task })) as [
        PushConfig,
        PushConfig,
        PushConfig,
      ]
      for (const config of [one, two]) await store.savePushConfig(config, 2)
      expect(await store.savePushConfig(three, 2)).toBe(false)
      expect(await store.savePushConfig({ ...one, revision: 'new' }, 2)).toBe(true)
      expect(await store.listPushConfigs(task)).toEqual([{ ...one, revision: 'new' }, two])
    })

    test('a removal returns the removed config, and a repeated removal returns nothing', async () => {
      await using store = await open()
      const config = samplePushConfig()
      await store.savePushConfig(config, 5)
      expect(await store.removePushConfig(config.task, config.id, 'another revision')).toBeUndefined()
      expect(await store.removePushConfig(config.task, config.id)).toEqual(config)
      expect(await store.removePushConfig(config.task, config.id)).toBeUndefined()
      expect(await store.listPushConfigs(config.task)).toEqual([])
    })

    test('the settled number never decreases and applies to one revision', async () => {
      await using store = await open()
      const config = samplePushConfig()
      await store.savePushConfig(config, 5)
      const health = { attempts: 3, delivered: 1, dropped: { status: 1 }, lastStatus: 404 }
      expect(await store.settlePushConfig(config, { settled: 2, open: true, health })).toBe(true)
      expect(await store.settlePushConfig(config, { settled: 1, open: true, health })).toBe(false)
      const replaced = { ...config, revision: 'earlier' }
      expect(await store.settlePushConfig(replaced, { settled: 3, open: true, health })).toBe(false)
      expect(await store.settlePushConfig(config, { settled: 2, open: false, health })).toBe(true)
      expect(await store.settlePushConfig(config, { settled: 2, open: false, health })).toBe(false)
      expect(await store.findPushConfig(config.task, config.id)).toEqual({
        ...config,
        settled: 2,
        open: false,
        health,
      })
    })
  })
}

/** Tests adapters whose configs survive the process. */
export function openPushConfigCases(open: () => Promise<WebhookStore & AsyncDisposable>): void {
  test('open configs are listed page by page in order of registration, without their tokens', async () => {
    await using store = await open()
    const configs = Array.from({ length: 7 }, () => samplePushConfig({ token: 'secret' }))
    for (const config of configs) await store.savePushConfig(config, 5)
    const [closed] = configs.splice(3, 1) as [PushConfig]
    await store.settlePushConfig(closed, { settled: 1, open: false, health: closed.health })
    const listed: unknown[] = []
    let cursor: number | undefined
    do {
      const page = await store.listOpenPushConfigs({ limit: 2, ...(cursor !== undefined && { cursor }) })
      expect(page.items.length).toBeLessThanOrEqual(2)
      listed.push(...page.items)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(listed).toEqual(configs.map(({ task, id, url, settled }) => ({ task, id, url, settled })))
  })
}

/** Tests adapters in which several processes deliver events. */
export function claimCases(open: () => Promise<WebhookStore & AsyncDisposable>): void {
  test('only one sender holds a config until it releases the config or its claim expires', async () => {
    await using store = await open()
    const config = samplePushConfig()
    expect(await store.claimPushConfig(config, 'a', 60_000)).toBe('absent')
    await store.savePushConfig(config, 5)
    expect(await store.claimPushConfig(config, 'a', 60_000)).toBe('ours')
    expect(await store.releasePushConfig(config, 'a')).toBe(true)
    expect(await store.claimPushConfig(config, 'b', 60_000)).toBe('ours')
    expect(await store.claimPushConfig(config, 'a', 60_000)).toBe('anothers')
    expect(await store.claimPushConfig(config, 'b', 1)).toBe('ours')
    await expect.poll(() => store.claimPushConfig(config, 'a', 60_000)).toBe('ours')
    expect(await store.claimPushConfig(config, 'b', 60_000)).toBe('anothers')
  })

  test('a release reports once that another process wanted the config, and has no effect without a claim', async () => {
    await using store = await open()
    const config = samplePushConfig()
    await store.savePushConfig(config, 5)
    await store.claimPushConfig(config, 'a', 60_000)
    expect(await store.releasePushConfig(config, 'b')).toBe(true)
    expect(await store.claimPushConfig(config, 'b', 60_000)).toBe('anothers')
    expect(await store.releasePushConfig(config, 'a')).toBe(false)
    expect(await store.claimPushConfig(config, 'a', 60_000)).toBe('ours')
    expect(await store.releasePushConfig(config, 'a')).toBe(true)
    expect(await store.claimPushConfig(config, 'b', 60_000)).toBe('ours')
  })

  test('a sender can renew even an expired claim if no other sender has had it since', async () => {
    await using store = await open()
    const config = samplePushConfig()
    await store.savePushConfig(config, 5)
    expect(await store.renewPushConfig(config, 'a', 1)).toBe(false)
    await store.claimPushConfig(config, 'a', 1)
    expect(await store.renewPushConfig(config, 'a', 1)).toBe(true)
    await expect.poll(() => store.claimPushConfig(config, 'b', 60_000)).toBe('ours')
    expect(await store.renewPushConfig(config, 'a', 60_000)).toBe(false)
    await store.releasePushConfig(config, 'b')
    expect(await store.renewPushConfig(config, 'a', 60_000)).toBe(false)
  })

  test('a sender without a claim cannot settle events', async () => {
    await using store = await open()
    const config = samplePushConfig()
    await store.savePushConfig(config, 5)
    const settlement = { settled: 1, open: true, health: config.health }
    expect(await store.settlePushConfig(config, settlement, 'a')).toBe(false)
    await store.claimPushConfig(config, 'a', 1)
    await expect.poll(() => store.claimPushConfig(config, 'b', 60_000)).toBe('ours')
    expect(await store.settlePushConfig(config, settlement, 'a')).toBe(false)
    expect(await store.settlePushConfig(config, settlement, 'b')).toBe(true)
  })

  test('open configs without a sender can be listed, and a replaced config keeps its sender', async () => {
    await using store = await open()
    const [free, claimed, over] = [1, 2, 3].map(() => samplePushConfig()) as [
      PushConfig,
      PushConfig,
      PushConfig,
    ]
    for (const config of [free, claimed, over]) await store.savePushConfig(config, 5)
    await store.claimPushConfig(claimed, 'a', 60_000)
    await store.savePushConfig({ ...claimed, revision: 'new' }, 5)
    await store.claimPushConfig(over, 'a', 1)
    const unclaimed = async () =>
      (await store.listOpenPushConfigs({ limit: 5, unclaimed: true })).items.map(({ id }) => id)
    await expect.poll(unclaimed).toEqual([free.id, over.id])
    expect((await store.listOpenPushConfigs({ limit: 5 })).items).toHaveLength(3)
  })
}
