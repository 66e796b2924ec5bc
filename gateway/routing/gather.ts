import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isObject } from '../../shared/jsonrpc/envelope.ts'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import { type AnswerClaim, isBudgetRefusal } from '../../shared/process/answer-budget.ts'
import { contextsList, parseParams, tasksList } from '../../shared/protocol/params.ts'
import type { Cursors } from '../../shared/store/cursor.ts'
import { isStranger } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { targetOf, type WayTo } from './agent-target.ts'
import { type Asked, askAgent, atOnce, questionHeaders, rpcBody } from './ask-agent.ts'
import { headersFor } from './relay.ts'
import type { RoutingStore } from './routing-store.ts'

export interface GatherOptions {
  registry: Registry
  store: RoutingStore
  cursors: Cursors
  wayTo: WayTo
  /** For each agent's answer. Default 2 s. */
  answerMs?: number
}

export interface Gathered {
  items: unknown[]
  cursor: string | undefined
  /** Slugs of the agents that did not answer. */
  incomplete: string[]
}

export interface List {
  method: 'tasks/list' | 'contexts/list'
  params: Record<string, unknown>
  owner: string
  request: FastifyRequest
  /** The request as it came: its first page is asked for with the very bytes, so that a signature holds. */
  body: Buffer
  /** Holds what is gathered. */
  claim: AnswerClaim
}

/** How far one agent's list was read: behind `last` of the page that its `cursor` opens. */
const standing = z.tuple([z.string(), z.string().nullable(), z.string().nullable()])
type Standing = z.output<typeof standing>
const standings = z.array(standing)

/** What may still be held. */
interface Room {
  bytes: number
  /** What is held already. */
  held: number
}

/** An agent's list, as far as it is here. */
interface Line {
  entry: AgentEntry
  items: Item[]
  taken: number
  /** Which cursor opened the page of the newest item taken, and that item. */
  page: { cursor: string | null; next: string | null }
  last: string | null
  failed: boolean
}

interface Item {
  id: string
  at: string
  json: unknown
}

/** Agents of one caller that are asked, the ones used last; a cursor names them all, and must fit into a header. */
const agentsMax = 32
const askedAtOnce = 8
/** All that is held at a time of one list. */
const heldMaxBytes = 64 * 1024 * 1024
/** Of an agent that nobody has looked at: reading a long answer holds up everybody. */
const strangerMaxBytes = 8 * 1024 * 1024
const cursorIn = z.string().max(12_000).optional()

/** `tasks/list` and `contexts/list` over the agents at which the caller has something, newest first. */
export class Gather {
  readonly #options: GatherOptions

  constructor(options: GatherOptions) {
    this.#options = options
  }

  /** @throws ParleyError InvalidParams */
  async list(list: List): Promise<Gathered> {
    const { cursor: given, ...rest } = list.params
    const schema = list.method === 'tasks/list' ? tasksList : contextsList
    const { limit } = parseParams(schema, rest)
    const cursor = parseParams(z.object({ cursor: cursorIn }), { cursor: given ?? undefined }).cursor
    const lines = await this.#lines(list, cursor)
    const room = { bytes: heldMaxBytes, held: 0 }
    await atOnce(lines, askedAtOnce, (line) => this.#read(line, { ...list, room }, cursor === undefined))
    const items = merge(lines, limit)
    const left = lines.filter(
      (line) => line.failed || line.taken < line.items.length || line.page.next !== null,
    )
    const goesOn = lines.some(
      (line) => !line.failed && (line.taken < line.items.length || line.page.next !== null),
    )
    const incomplete = lines.flatMap(({ failed, entry }) => (failed ? [entry.slug] : []))
    return { items, incomplete, cursor: goesOn ? this.#seal(list, left) : undefined }
  }

  async #lines({ method, owner }: List, cursor: string | undefined): Promise<Line[]> {
    const { registry, store, cursors } = this.#options
    const known = await store.agentsOf(owner, agentsMax)
    const from: Standing[] =
      cursor === undefined ? known.map((id) => [id, null, null]) : opened(cursors, method, owner, cursor)
    return from.flatMap(([id, page, last]) => {
      const entry = registry.find(id)
      if (entry === undefined) return []
      return { entry, items: [], taken: 0, page: { cursor: page, next: null }, last, failed: false }
    })
  }

  /** One page; a second one where the first was read to its end before. */
  async #read(line: Line, list: List & { room: Room }, isFirst: boolean): Promise<void> {
    const signal = AbortSignal.timeout(this.#options.answerMs ?? 2000)
    try {
      for (let pages = 0; pages < 2; pages += 1) {
        const asked = await this.#ask(line, list, isFirst && pages === 0, signal)
        if (!Array.isArray(asked.result)) throw new Error(`answered ${asked.status}`)
        const all = asked.result.map((json) => itemOf(json, list.method))
        const at = line.last === null ? -1 : all.findIndex(({ id }) => id === line.last)
        line.items = all.slice(at + 1)
        const next = asked.headers['x-next-cursor']
        line.page.next = typeof next === 'string' ? next : null
        if (line.items.length > 0 || line.page.next === null) return
        line.page = { cursor: line.page.next, next: null }
        line.last = null
      }
    } catch (error) {
      // No agent is at fault, and the list may be read again.
      if (isBudgetRefusal(error)) throw error
      line.failed = true
      line.items = []
    }
  }

  async #ask(
    line: Line,
    { room, ...list }: List & { room: Room },
    asItCame: boolean,
    signal: AbortSignal,
  ): Promise<Asked> {
    const target = targetOf(line.entry, '/', this.#options.wayTo)
    const { method, params, request, body, claim } = list
    const ownMax = isStranger(line.entry) ? strangerMaxBytes : room.bytes
    const grew = (bytes: number) => claim.reserve((room.held += bytes))
    const options = { signal, answerMaxBytes: Math.min(room.bytes, ownMax), grew }
    const held = (asked: Asked) => {
      room.bytes -= asked.size
      return asked
    }
    if (asItCame) {
      const headers = headersFor(request, { to: line.entry, hasBody: true })
      delete headers['host']
      return held(await askAgent(target, { ...options, headers, body }))
    }
    const { cursor: _, ...rest } = params
    const from = line.page.cursor === null ? {} : { cursor: line.page.cursor }
    const headers = questionHeaders(request.headers, request.id)
    return held(await askAgent(target, { ...options, headers, body: rpcBody(method, { ...rest, ...from }) }))
  }

  #seal({ method, owner }: List, lines: readonly Line[]): string {
    const at = lines.map((line): Standing => {
      if (!line.failed && line.taken === line.items.length && line.page.next !== null)
        return [line.entry.id, line.page.next, null]
      return [line.entry.id, line.page.cursor, line.items[line.taken - 1]?.id ?? line.last]
    })
    return this.#options.cursors.seal(method, owner, at)
  }
}

function opened(cursors: Cursors, method: string, owner: string, cursor: string): Standing[] {
  const read = standings.safeParse(cursors.open(method, owner, cursor))
  if (read.success) return read.data
  throw new ParleyError('InvalidParams', {
    data: { issues: [{ path: 'cursor', message: 'not a cursor of this list' }] },
  })
}

/** Each agent's own order is kept; of the first ones the newest comes next. A line that is used up ends the page. */
function merge(lines: readonly Line[], limit: number): unknown[] {
  const items: unknown[] = []
  while (items.length < limit) {
    let newest: Line | undefined
    for (const line of lines) {
      const item = line.items[line.taken]
      if (item === undefined) {
        // What it has next may be newer than what the others have.
        if (line.page.next !== null) return items
        continue
      }
      const best = newest?.items[newest.taken]
      if (best === undefined || item.at > best.at) newest = line
    }
    if (newest === undefined) return items
    items.push(newest.items[newest.taken]?.json)
    newest.taken += 1
  }
  return items
}

function itemOf(json: unknown, method: List['method']): Item {
  const object = isObject(json) ? json : {}
  if (method === 'contexts/list')
    return { id: String(object['context_id']), at: String(object['updated_at']), json }
  const { status } = object
  return { id: String(object['id']), at: String(isObject(status) ? status['timestamp'] : ''), json }
}
