import { ownsFor } from '@parley/kit/auth/caller'
import { ParleyError } from '@parley/wire/errors'
import { jsonOf } from '@parley/wire/model/json-text'
import { millisOf, type Timestamp } from '@parley/wire/model/timestamp'
import type { Store, TaskRecord } from '../store/store.ts'
import type { EventRange, ListedPushConfig, PushConfig } from '../store/webhook-store.ts'
import { countEvents } from './event-ranges.ts'
import type { Registrations } from './registrations.ts'

/**
 * `failing`: the next event failed and will be retried. `dropped`: an event was dropped and not delivered later. `pending`:
 * there are events to deliver. `delivered`: all events were delivered.
 */
export type DeliveryState = 'delivered' | 'pending' | 'failing' | 'dropped'

/** A config with the progress of its deliveries. */
export interface Delivery {
  config: PushConfig
  /** The number of events of the task. */
  events: number
  state: DeliveryState
}

export interface DeliveryFilter {
  /** The client ID of the owner. The tasks that agents created for it are included. */
  owner?: string | undefined
  state?: DeliveryState | undefined
  /** The time of registration: at or after, and before. */
  since?: Timestamp | undefined
  until?: Timestamp | undefined
}

export interface DeliveriesOptions {
  registrations: Registrations
  store: Pick<Store, 'countEvents' | 'loadTask'>
}

/** Number of configs read together, that one page examines, and of which one request resends events. */
const [batchSize, scanMax, resentMax] = [200, 20_000, 2000]

type Source = 'stored' | 'memory'
const sources: readonly Source[] = ['stored', 'memory']
/** Where the list continues in each of the two stores. */
type Position = Partial<Record<Source, string>>
const positionForm = { stored: /^\d{1,16}$/, memory: /^(\d{1,16}|(open|closed) \d{1,16})$/ }

/** The webhook deliveries of all owners, for operators (spec/operator.md#deliveries). */
export class Deliveries {
  readonly #options: DeliveriesOptions

  constructor(options: DeliveriesOptions) {
    this.#options = options
  }

  /**
   * Lists the configs registered last first. A page ends when it is full or has examined 20,000 configs.
   * @throws ParleyError InvalidParams
   */
  async list({
    limit,
    cursor,
    ...filter
  }: DeliveryFilter & { limit: number; cursor?: string | undefined }): Promise<{
    items: Delivery[]
    nextCursor?: string
  }> {
    const items: Delivery[] = []
    let at = positionIn(cursor)
    for (let examined = 0; examined < scanMax; ) {
      const page = await this.#examine(at, filter, limit - items.length)
      items.push(...page.items)
      examined += page.examined
      at = page.at
      if (page.isLast) return { items }
      if (items.length >= limit) break
    }
    return { items, nextCursor: Buffer.from(JSON.stringify(at)).toString('base64url') }
  }

  /** Returns the configs of a task, or an empty list for the task of another owner. */
  async ofTask(taskId: string, owner?: string): Promise<Delivery[]> {
    const task = await this.#task(taskId, owner)
    if (task === undefined) return []
    const configs = await this.#options.registrations.list(task)
    return configs.map((config) => deliveryOf(config, task.events.length))
  }

  /** @throws ParleyError NotFound */
  async find(taskId: string, configId: string, owner?: string): Promise<Delivery & { task: TaskRecord }> {
    const task = await this.#task(taskId, owner)
    const config = task && (await this.#options.registrations.find(task, configId))
    if (task === undefined || config === undefined || configId === '') throw notFound()
    return { ...deliveryOf(config, task.events.length), task }
  }

  /**
   * Sends settled events again, in order: from `sequence` on, or by default those that were dropped, or else the last one.
   * Returns the number of events.
   * @throws ParleyError NotFound, Conflict if no event is settled or events are already being sent again
   */
  async resend(taskId: string, configId: string, given: { owner?: string; sequence?: number }) {
    const { config } = await this.find(taskId, configId, given.owner)
    const { settled } = config
    const from = given.sequence ?? settled
    if (settled === 0 || from > settled)
      throw conflict(
        'This event has not been settled yet, so it will be delivered without a resend',
        'not_settled',
      )
    const lost = given.sequence === undefined ? lostOf(config) : []
    const events: EventRange[] = lost.length > 0 ? lost : [[from, settled]]
    if (!(await this.#options.registrations.resend(config, events)))
      throw conflict('Events of this webhook are already being sent again', 'resend_in_progress')
    return countEvents(events)
  }

  /**
   * Sends all events again that were dropped in a period, of at most 2,000 configs. `more` means that there are more configs.
   * Configs of which events are already being sent again are left out.
   */
  async resendDropped({ owner, since, until }: { owner?: string; since: Timestamp; until?: Timestamp }) {
    const period = {
      from: millisOf(since),
      to: until === undefined ? Number.POSITIVE_INFINITY : millisOf(until),
    }
    const resent = { configs: 0, events: 0, more: false }
    for (let at: Position = {}, isLast = false; !isLast; ) {
      const page = await this.#examine(at, { owner, state: 'dropped' }, batchSize)
      for (const { config } of page.items) {
        const events = lostOf(config, period)
        if (events.length === 0) continue
        if (resent.configs >= resentMax) return { ...resent, more: true }
        if (!(await this.#options.registrations.resend(config, events))) continue
        resent.configs += 1
        resent.events += countEvents(events)
      }
      at = page.at
      isLast = page.isLast
    }
    return resent
  }

  /** Examines the next configs of both stores until `limit` of them pass the filter, or a batch is examined. */
  async #examine(from: Position, filter: DeliveryFilter, limit: number) {
    const { registrations, store } = this.#options
    const heads = await Promise.all(
      sources.map(async (source) => {
        const found = await registrations.listAll(source, { limit: batchSize, cursor: from[source] })
        return { source, found, isLast: found.length < batchSize, next: 0 }
      }),
    )
    const at = { ...from }
    const chosen: PushConfig[] = []
    let examined = 0
    while (chosen.length < limit) {
      // A source with an empty batch may have further configs that come first.
      if (heads.some(({ found, next, isLast }) => next >= found.length && !isLast)) break
      const [head] = heads
        .filter(({ found, next }) => next < found.length)
        .sort((a, b) => (setAt(a.found[a.next]) < setAt(b.found[b.next]) ? 1 : -1))
      const listed = head?.found[head.next]
      if (head === undefined || listed === undefined) break
      head.next += 1
      examined += 1
      at[head.source] = listed.cursor
      if (matches(listed.config, filter)) chosen.push(listed.config)
    }
    const counts = await store.countEvents([...new Set(chosen.map(({ task }) => task.id))])
    const items = chosen
      .map((config) => deliveryOf(config, counts.get(config.task.id) ?? config.settled))
      .filter(({ state }) => filter.state === undefined || state === filter.state)
    return {
      items,
      at,
      examined,
      isLast: heads.every(({ found, next, isLast }) => isLast && next >= found.length),
    }
  }

  async #task(id: string, owner: string | undefined): Promise<TaskRecord | undefined> {
    const task = await this.#options.store.loadTask(id)
    const isVisible = owner === undefined || (task !== undefined && ownsFor({ id: owner }, task.owner))
    return isVisible ? task : undefined
  }
}

const setAt = (listed: ListedPushConfig | undefined) => listed?.config.setAt ?? ''

function matches({ task, setAt: at }: PushConfig, { owner, since, until }: DeliveryFilter): boolean {
  if (owner !== undefined && !ownsFor({ id: owner }, task.owner)) return false
  if (since !== undefined && millisOf(at) < millisOf(since)) return false
  return until === undefined || millisOf(at) < millisOf(until)
}

function deliveryOf(config: PushConfig, events: number): Delivery {
  return { config, events, state: deliveryState(config, events) }
}

/** @param events the number of events of the task */
export function deliveryState({ settled, resend, health }: PushConfig, events: number): DeliveryState {
  const { tries, lost = [], dropped } = health
  const isPending = resend !== undefined || settled < events
  if (isPending && tries?.at(-1)?.retryMs !== undefined) return 'failing'
  // Earlier versions stored only the number of dropped events.
  const wasDropped = tries === undefined && Object.values(dropped).some((count) => count > 0)
  if (resend === undefined && (lost.length > 0 || wasDropped)) return 'dropped'
  return isPending ? 'pending' : 'delivered'
}

/** Returns the settled events that were dropped in the period. */
function lostOf(
  { health: { lost = [] }, settled }: PushConfig,
  period = { from: 0, to: Number.POSITIVE_INFINITY },
) {
  return lost
    .filter(([from, , at]) => from <= settled && at >= period.from && at < period.to)
    .map(([from, to]): EventRange => [from, Math.min(to, settled)])
}

/** @throws ParleyError InvalidParams */
function positionIn(cursor: string | undefined): Position {
  if (cursor === undefined) return {}
  const json = jsonOf(Buffer.from(cursor, 'base64url').toString('utf8'))
  const position: Position = {}
  const values = typeof json === 'object' && json !== null ? Object.entries(json) : [['', '']]
  for (const [name, value] of values) {
    const source = sources.find((one) => one === name)
    if (source === undefined || typeof value !== 'string' || !positionForm[source].test(value))
      throw new ParleyError('InvalidParams', {
        data: { issues: [{ path: 'cursor', message: 'not a cursor of this list' }] },
      })
    position[source] = value
  }
  return position
}

const notFound = () =>
  new ParleyError('NotFound', { message: 'Webhook not found', data: { reason: 'delivery' } })

const conflict = (message: string, reason: string) =>
  new ParleyError('Conflict', { message, data: { reason } })
