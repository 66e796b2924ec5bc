import { numbersFrom } from '@parley/tools/testing/routing-list'
import { ParleyError } from '@parley/wire/errors'
import { expect, test } from 'vitest'
import { samplePushConfig, sampleTask } from './store-webhooks.cases.ts'
import type { PushConfig, WebhookStore } from './webhook-store.ts'

interface Row {
  config: PushConfig
  sender?: string
  /** Whether the claim has expired. */
  over?: boolean
  wanted?: boolean
  /** When the last event of the config was delivered or dropped. */
  closedAt?: number
}

/** A model of the port that runs in a single process. */
class Model {
  readonly rows = new Map<string, Row>()
  readonly #max: number
  #at = 0
  constructor(max: number) {
    this.#max = max
  }

  save(key: string, config: PushConfig, perTaskMax: number): boolean | 'full' {
    const before = this.rows.get(key)
    if (before === undefined) {
      if (this.list(config.task.id).length >= perTaskMax) return false
      while (this.rows.size >= this.#max) {
        const closed = [...this.rows].filter(([, row]) => !row.config.open)
        const [oldest] = closed.sort(([, a], [, b]) => (a.closedAt ?? 0) - (b.closedAt ?? 0))
        if (oldest === undefined) return 'full'
        this.rows.delete(oldest[0])
      }
    }
    this.rows.delete(key)
    this.#put(key, { ...before, config }, true)
    return true
  }

  settle(key: string, revision: string, to: { settled: number; open: boolean }, sender?: string): boolean {
    const row = this.rows.get(key)
    if (row?.config.revision !== revision || (sender !== undefined && row.sender !== sender)) return false
    const { settled, open } = row.config
    if (to.settled < settled || (to.settled === settled && !open)) return false
    this.#put(key, { ...row, config: { ...row.config, ...to } }, open)
    return true
  }

  claim(key: string, sender: string, over: boolean) {
    const row = this.rows.get(key)
    if (row === undefined) return 'absent'
    if (row.sender !== undefined && row.sender !== sender && row.over !== true) {
      row.wanted = true
      return 'anothers'
    }
    Object.assign(row, { sender, over })
    return 'ours'
  }

  renew(key: string, sender: string): boolean {
    const row = this.rows.get(key)
    if (row?.sender !== sender) return false
    row.over = false
    return true
  }

  release(key: string, sender: string): boolean {
    const row = this.rows.get(key)
    if (row?.sender !== sender) return true
    const wanted = row.wanted === true
    delete row.wanted
    if (!wanted) delete row.sender
    return !wanted
  }

  /** Returns the newest config first. */
  list(taskId: string): PushConfig[] {
    const all = [...this.rows.values()].map(({ config }) => config)
    return all.filter(({ task }) => task.id === taskId).reverse()
  }

  open(unclaimed: boolean): string[] {
    const isFree = ({ sender, over }: Row) => sender === undefined || over === true
    const open = [...this.rows].filter(([, row]) => row.config.open && (!unclaimed || isFree(row)))
    return open.map(([key]) => key).sort()
  }

  #put(key: string, row: Row, closes: boolean): void {
    if (!row.config.open && closes) row.closedAt = this.#at += 1
    this.rows.set(key, row)
  }
}

/** Most steps use claims, because claims rarely conflict otherwise. */
const chances = [
  'save',
  'settle',
  'claim',
  'claim',
  'claim',
  'renew',
  'release',
  'release',
  'release',
  'remove',
]

/** Runs random steps in two processes and compares each result with the model. */
export function webhookModelCases(
  open: () => Promise<readonly [WebhookStore & AsyncDisposable, WebhookStore & AsyncDisposable]>,
  { max = Number.POSITIVE_INFINITY, steps }: { max?: number; steps: number },
): void {
  test(`two processes that run ${steps} steps in random order see each other’s changes`, async () => {
    const stores = await open()
    await using _one = stores[0]
    await using _other = stores[1]
    const [tasks, ids] = [[1, 2, 3].map(() => sampleTask()), ['a', 'b', 'c']]
    const senders = ['one', 'other']
    const numbers = numbersFrom(steps)
    const below = (bound: number) => Math.floor(numbers() * bound)
    const pick = <T>(of: readonly T[]): T => of[below(of.length)] as T
    const model = new Model(max)
    for (let step = 0; step < steps; step += 1) {
      const [store, task, id, sender] = [pick(stores), pick(tasks), pick(ids), pick(senders)]
      const [key, at] = [`${task.id} ${id}`, { task, id }]
      const there = model.rows.get(key)
      const [settled, isOpen, over] = [below(5), below(3) > 0, below(6) === 0]
      const revision = below(4) === 0 ? 'another' : (there?.config.revision ?? 'none')
      const to = { settled, open: isOpen, health: samplePushConfig().health }
      const config = samplePushConfig({ ...at, settled, open: isOpen })
      const actions: Record<string, () => [unknown, Promise<unknown>]> = {
        save: () => [model.save(key, config, 2), store.savePushConfig(config, 2).catch(fullOf)],
        settle: () => {
          const by = below(3) === 0 ? undefined : sender
          const told = store.settlePushConfig({ ...at, revision }, to, by)
          return [model.settle(key, revision, to, by), told]
        },
        claim: () => [model.claim(key, sender, over), store.claimPushConfig(at, sender, over ? -1 : 600_000)],
        renew: () => [model.renew(key, sender), store.renewPushConfig(at, sender, 600_000)],
        release: () => [model.release(key, sender), store.releasePushConfig(at, sender)],
        remove: () => {
          const goes = there?.config.revision === revision
          if (goes) model.rows.delete(key)
          return [goes ? there.config : undefined, store.removePushConfig(task, id, revision)]
        },
      }
      const name = pick(chances)
      const [expected, asked] = actions[name]?.() ?? []
      expect({ step, name, told: await asked }).toEqual({ step, name, told: expected })
      expect(await openOf(store, false)).toEqual(model.open(false))
      expect(await openOf(store, true)).toEqual(model.open(true))
    }
  }, 240_000)
}

async function openOf(store: WebhookStore, unclaimed: boolean): Promise<string[]> {
  const found = new Set<string>()
  let cursor: number | undefined = 0
  while (cursor !== undefined) {
    const page: Awaited<ReturnType<WebhookStore['listOpenPushConfigs']>> = await store.listOpenPushConfigs({
      limit: 3,
      cursor,
      unclaimed,
    })
    for (const { task, id } of page.items) found.add(`${task.id} ${id}`)
    cursor = page.nextCursor
  }
  return [...found].sort()
}

function fullOf(error: unknown): 'full' {
  if (error instanceof ParleyError && error.data['reason'] === 'webhooks_full') return 'full'
  throw error
}
