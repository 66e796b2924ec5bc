import {
  agentDeliveryDetail,
  agentDeliveryList,
  type agentDeliveryRow,
  type deliveryDetail,
  type deliveryList,
  type deliveryListQuery,
  resendAnswer,
  type resendSinceIn,
} from '@parley/wire/codecs/answers/operator/deliveries'
import { ParleyError } from '@parley/wire/errors'
import { cleanLine } from '@parley/wire/model/clean-text'
import { timestampOfServer } from '@parley/wire/model/timestamp'
import type { z } from 'zod'
import type { AgentEntry } from '../../registry/entry.ts'
import type { AgentReader } from '../agent-reader.ts'
import { type AgentList, type MergedListSources, readMergedList, requestOf } from '../merged-list.ts'
import { agentsToRead, noSuchAgent } from '../tasks/agents-to-read.ts'
import { isShown, isVisible } from '../tasks/clean-row.ts'
import type { CallerView } from '../view.ts'
import { withoutPaths, withoutSecrets } from './receiver-address.ts'

type AgentRow = z.output<typeof agentDeliveryRow>
type ListQuery = z.output<typeof deliveryListQuery>
type Detail = z.output<typeof deliveryDetail>
type Resent = z.output<typeof resendAnswer>

export interface DeliveriesOptions extends MergedListSources {
  reader: MergedListSources['reader'] & Pick<AgentReader, 'read'>
}

/** A webhook of a task at an agent. */
export interface DeliveryName {
  agent: string
  task: string
  config: string
}

/** A resend of many webhooks writes each of them. */
const resendTimeoutMs = 20_000
const [urlMaxChars, textMaxChars, idMaxChars] = [2048, 500, 200]
const [triesMax, bodiesMax] = [100, 200]

const agentList: AgentList<z.output<typeof agentDeliveryList>, AgentRow> = {
  path: 'operator/deliveries',
  group: 'deliveries.read',
  schema: agentDeliveryList,
  rowsOf: ({ deliveries }) => deliveries,
  clean: cleanRow,
  positionOf: ({ set_at: at, task_id, config_id }) => ({ at, id: `${task_id} ${config_id}` }),
}

/** The webhook deliveries of all agents that a view contains (spec/operator.md#deliveries). */
export class AgentDeliveries {
  readonly #options: DeliveriesOptions

  constructor(options: DeliveriesOptions) {
    this.#options = options
  }

  /** @throws ParleyError InvalidParams, NotFound for an agent that does not exist */
  async list(view: CallerView, query: ListQuery): Promise<z.output<typeof deliveryList>> {
    const { items, next_cursor, unread } = await readMergedList(agentList, this.#options, view, query)
    return { deliveries: items, next_cursor, unread }
  }

  /** @throws ParleyError NotFound, Unavailable */
  async find(view: CallerView, name: DeliveryName): Promise<Detail> {
    const request = requestOf(view, 'deliveries.read', pathOf(name))
    const { value } = await this.#options.reader.read(this.#agent(name), agentDeliveryDetail, request)
    if (!isVisible(view, value.owner)) throw notFound()
    const shown = isShown(view, value.owner)
    const errorOf = (text: string) => cleanLine(shown ? text : withoutPaths(text, value.url), textMaxChars)
    const tries = value.tries
      .slice(0, triesMax)
      .map((one) => ({ ...one, error: one.error === null ? null : errorOf(one.error) }))
    return {
      ...value,
      ...cleanRow(value, view),
      agent: name.agent,
      tries,
      bodies: shown ? value.bodies.slice(0, bodiesMax) : [],
    }
  }

  /** @throws ParleyError NotFound, Conflict, Unavailable */
  async resend(
    view: CallerView,
    name: DeliveryName,
    body: { sequence?: number | undefined },
  ): Promise<Resent> {
    const request = requestOf(view, 'deliveries.resend', `${pathOf(name)}/resend`)
    const entry = this.#agent(name)
    return (await this.#options.reader.read(entry, resendAnswer, { ...request, body })).value
  }

  /** Sends all events again that were dropped in a period, at one agent or at all. */
  async resendSince(
    view: CallerView,
    { agent, owner, ...period }: z.output<typeof resendSinceIn>,
  ): Promise<Resent> {
    if (view.owner !== undefined && owner !== undefined && owner !== view.owner)
      return { configs: 0, events: 0, unread: [] }
    const chosen = await agentsToRead(this.#options, { view, agent, owner: view.owner ?? owner })
    const body = { ...period, ...(owner !== undefined && { owner }) }
    const request = { ...requestOf(view, 'deliveries.resend', '/operator/deliveries/resend'), body }
    const { answers, unread } = await this.#options.reader.readAll(
      resendAnswer,
      { ...request, timeoutMs: resendTimeoutMs },
      { agents: chosen.agents },
    )
    const sum = (field: 'configs' | 'events') => answers.reduce((total, { value }) => total + value[field], 0)
    return {
      configs: sum('configs'),
      events: sum('events'),
      more: answers.some(({ value }) => value.more === true),
      unread: [...unread, ...chosen.unread],
    }
  }

  /** @throws ParleyError NotFound */
  #agent({ agent }: DeliveryName): AgentEntry {
    const entry = this.#options.reader.find(agent)
    if (entry !== undefined) return entry
    if (this.#options.registry.bySlug(agent) === undefined) throw noSuchAgent(agent)
    throw new ParleyError('NotFound', {
      message: `Agent ${agent} is an external agent. Its own operator can read its webhooks.`,
      data: { reason: 'delivery', agent },
    })
  }
}

const pathOf = ({ task, config }: DeliveryName) =>
  `/operator/deliveries/${encodeURIComponent(task)}/${encodeURIComponent(config)}`

/** The row of an agent, without what the view does not show. An agent may have sent any text. */
function cleanRow<Row extends AgentRow>(given: Row, view: CallerView): Row {
  const row = isShown(view, given.owner) ? given : { ...given, ...withoutSecrets(given) }
  const dropped = Object.entries(row.dropped).slice(0, 20)
  return {
    ...row,
    config_id: cleanLine(row.config_id, idMaxChars),
    task_id: cleanLine(row.task_id, idMaxChars),
    url: cleanLine(row.url, urlMaxChars),
    dialect: row.dialect === null ? null : cleanLine(row.dialect, 40),
    last_error: row.last_error === null ? null : cleanLine(row.last_error, textMaxChars),
    dropped: Object.fromEntries(dropped.map(([reason, count]) => [cleanLine(reason, 40), count])),
    set_at: timestampOfServer(row.set_at),
  }
}

const notFound = () =>
  new ParleyError('NotFound', { message: 'Webhook not found', data: { reason: 'delivery' } })
