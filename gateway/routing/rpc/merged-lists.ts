import type { Cursors } from '@parley/kit/database/cursor'
import type { RestCall } from '@parley/kit/http/rest-call'
import { type AnswerClaim, isBudgetRefusal } from '@parley/kit/process/answer-budget'
import type { Codec, ListOperation, MergedPage } from '@parley/wire/codecs/codec'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { idsOf } from '@parley/wire/model/ids'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isExternal } from '../../registry/admission.ts'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import {
  forEachLimited,
  getFromAgent,
  type QueryResponse,
  queryAgent,
  queryHeaders,
  rpcBody,
} from '../forwarding/agent-query.ts'
import { type DispatcherFor, targetOf } from '../forwarding/agent-target.ts'
import type { AgentTokens } from '../forwarding/agent-tokens.ts'
import { headersFor } from '../forwarding/forward.ts'
import type { RoutingStore } from '../store/routing-store.ts'
import { cursorMaxLength, MergedCursor, type Position, type Progress } from './merged-cursor.ts'

export interface MergedListsOptions {
  store: RoutingStore
  cursors: Cursors
  dispatcherFor: DispatcherFor
  tokens: AgentTokens
  /** Whether an agent that is down is expected back. Others are left out unless they have tasks of the caller. */
  isAwaited?: (entry: AgentEntry) => boolean
  /** Deadline for each agent. Default 2 s. */
  answerMs?: number
  /** Deadline for all agents. Default 5 s. */
  totalMs?: number
}

export interface MergedList extends MergedPage {
  items: unknown[]
  /** Slugs of agents with missing items: they did not respond, were not queried, or did not fit into the cursor. */
  incomplete: string[]
}

export interface List {
  codec: Codec
  operation: ListOperation
  method: string
  params: Record<string, unknown>
  owner: string
  /** The agents that the caller may see. */
  agents: AgentDirectory
  request: FastifyRequest
  /** Set for a call without a JSON-RPC envelope. */
  rest: RestCall | undefined
  /** The original bytes, which are sent for the first page so that a signature stays valid. */
  body: Buffer
  /** Memory budget for the buffered lists. */
  claim: AnswerClaim
}

/** Memory used by one merged list. */
interface Room {
  /** Bytes that may still be buffered. */
  bytes: number
  /** Bytes buffered so far. */
  held: number
}

/** The part of an agent's list that has been read. */
interface AgentList {
  entry: AgentEntry
  items: Item[]
  taken: number
  /** Cursor of the current page and of the next one. */
  page: { cursor: string | null; next: string | null }
  last: Position | null
  failed: boolean
  /** The number of items on all pages; 0 if the agent did not state it. */
  total: number
}

interface Item extends Position {
  json: unknown
}

/** Maximum number of agents queried. */
const agentsMax = 1000
const concurrencyMax = 16
/** Maximum number of bytes buffered for one merged list. */
const heldMaxBytes = 64 * 1024 * 1024
const cursorIn = z.string().max(cursorMaxLength).optional()

/**
 * Merges the `tasks/list` and `contexts/list` of the supervised agents, newest first. External agents are not
 * queried; those that have tasks of the caller are reported as incomplete.
 */
export class MergedLists {
  readonly #options: MergedListsOptions
  readonly #cursors: MergedCursor

  constructor(options: MergedListsOptions) {
    this.#options = options
    this.#cursors = new MergedCursor(options.cursors)
  }

  /** @throws ParleyError InvalidParams */
  async list(list: List): Promise<MergedList> {
    const { codec, params, owner } = list
    const { limit } = codec.readParams(list.operation, codec.writeCursor(params, undefined), idsOf(owner))
    const given = codec.readCursor(params) ?? undefined
    const { cursor } = parseParams(z.object({ cursor: cursorIn }), { cursor: given })
    const { lines, absent, passed } = await this.#lines(list, cursor)
    const room = { bytes: heldMaxBytes, held: 0 }
    const deadline = AbortSignal.timeout(this.#options.totalMs ?? 5000)
    const read = (line: AgentList) => this.#read(line, { ...list, room, deadline }, cursor === undefined)
    await forEachLimited(lines, concurrencyMax, read)
    const items = merge(lines, limit)
    const total = lines.reduce((sum, line) => sum + line.total, passed)
    const failed = lines.flatMap(({ failed: isFailed, entry }) => (isFailed ? [entry.slug] : []))
    if (!lines.some((line) => !line.failed && hasMore(line)))
      return { items, limit, total, incomplete: [...absent, ...failed] }
    const sealed = this.#seal(list, lines, passed)
    return {
      items,
      limit,
      total,
      nextCursor: sealed.cursor,
      incomplete: [...absent, ...failed, ...sealed.left],
    }
  }

  /**
   * `absent` holds the slugs of agents that may have the caller's items but are not queried; `passed` is the total of the
   * agents that have all their items on earlier pages.
   */
  async #lines(
    { method, owner, request, agents }: List,
    cursor: string | undefined,
  ): Promise<{ lines: AgentList[]; absent: string[]; passed: number }> {
    const { store, tokens, isAwaited = () => true } = this.#options
    const known = new Set(await store.agentsOf(owner, agentsMax))
    const absent: string[] = []
    const queried = new Map<string, AgentEntry>()
    for (const entry of agents.all()) {
      const { id, slug } = entry
      if (isExternal(entry)) {
        if (known.has(id)) absent.push(slug)
      } else if ((!isAwaited(entry) || entry.relay !== undefined) && !known.has(id)) continue
      else if (queried.size >= agentsMax || isBarred(entry) || !tokens.mayExchange(entry, request.token))
        absent.push(slug)
      else queried.set(id, entry)
    }
    for (const { id, slug } of agents.left()) if (known.has(id)) absent.push(slug)
    const ids = [...queried.keys()]
    const { passed, progress: from } =
      cursor === undefined
        ? { passed: 0, progress: ids.map((agent): Progress => ({ agent, page: null, last: null })) }
        : this.#cursors.open(method, owner, cursor, ids)
    const lines = from.flatMap(({ agent, page, last }) => {
      const entry = queried.get(agent)
      if (entry === undefined) return []
      return { entry, items: [], taken: 0, page: { cursor: page, next: null }, last, failed: false, total: 0 }
    })
    return { lines, absent, passed }
  }

  /** Reads one page, and a second one if the cursor points to the end of the first. */
  async #read(
    line: AgentList,
    list: List & { room: Room; deadline: AbortSignal },
    isFirst: boolean,
  ): Promise<void> {
    const signal = AbortSignal.any([list.deadline, AbortSignal.timeout(this.#options.answerMs ?? 2000)])
    try {
      for (let pages = 0; pages < 2; pages += 1) {
        const response = await this.#ask(line, list, isFirst && pages === 0, signal)
        const read = list.codec.readList(list.operation, response.result, response.headers)
        if (read === undefined) throw new Error(`answered ${response.status}`)
        line.items = line.last === null ? read.items : behind(read.items, line.last)
        line.page.next = read.nextCursor ?? null
        line.total = read.total ?? 0
        if (line.items.length > 0 || line.page.next === null) return
        line.page = { cursor: line.page.next, next: null }
        line.last = null
      }
    } catch (error) {
      // The memory budget is exhausted, which is not the agent's fault.
      if (isBudgetRefusal(error)) throw error
      line.failed = true
      line.items = []
    }
  }

  async #ask(
    line: AgentList,
    { room, ...list }: List & { room: Room },
    asItCame: boolean,
    signal: AbortSignal,
  ): Promise<QueryResponse> {
    const { dispatcherFor, tokens } = this.#options
    const { codec, method, params, request, rest, body, claim } = list
    const path = asItCame && rest !== undefined ? request.url : '/'
    const target = await tokens.authorize(targetOf(line.entry, path, dispatcherFor), request.token)
    const grew = (bytes: number) => claim.reserve((room.held += bytes))
    const options = { signal, answerMaxBytes: room.bytes, grew }
    const held = (response: QueryResponse) => {
      room.bytes -= response.size
      return response
    }
    if (asItCame) {
      const headers = headersFor(request, target, { hasBody: rest === undefined })
      delete headers['host']
      return held(
        rest === undefined
          ? await queryAgent(target, { ...options, headers, body })
          : await getFromAgent(target, { ...options, headers }),
      )
    }
    const paged = codec.writeCursor(params, line.page.cursor ?? undefined)
    const headers = queryHeaders(request.headers, request.id)
    return held(await queryAgent(target, { ...options, headers, body: rpcBody(method, paged) }))
  }

  /** Partly read lists come first, because a list without progress can be read again from the start. */
  #seal(
    { method, owner }: List,
    lines: readonly AgentList[],
    passedBefore: number,
  ): { cursor: string; left: string[] } {
    const goOn = lines.filter((line) => line.failed || hasMore(line))
    const passed = lines.reduce((sum, line) => (goOn.includes(line) ? sum : sum + line.total), passedBefore)
    const progress = goOn.map(progressOf).sort((a, b) => Number(a.last === null) - Number(b.last === null))
    const { cursor, left } = this.#cursors.seal(method, owner, progress, passed)
    const slugs = new Map(goOn.map(({ entry }) => [entry.id, entry.slug]))
    return { cursor, left: left.flatMap(({ agent }) => slugs.get(agent) ?? []) }
  }
}

/** Whether the agent is not admitted or was quarantined by an operator. */
function isBarred({ admitted, quarantine }: AgentEntry): boolean {
  return !admitted || quarantine?.by !== undefined
}

function hasMore({ taken, items, page }: AgentList): boolean {
  return taken < items.length || page.next !== null
}

function progressOf({ entry, failed, taken, items, page, last }: AgentList): Progress {
  const newest = items[taken - 1]
  const reached = newest === undefined ? last : { at: newest.at, id: newest.id }
  const isRead = !failed && taken === items.length && page.next !== null
  return { agent: entry.id, page: isRead ? page.next : page.cursor, last: reached }
}

/** The items after `last`, or the items older than `last` if it was removed or moved to the front. */
function behind(items: readonly Item[], last: Position): Item[] {
  const at = items.findIndex(({ id }) => id === last.id)
  if (at !== -1 && items[at]?.at === last.at) return items.slice(at + 1)
  const older = items.findIndex((item) => item.at < last.at || (item.at === last.at && item.id < last.id))
  return older === -1 ? [] : items.slice(older)
}

/** Merges by time and keeps each agent's order. Ends the merged page when a list needs its next page. */
function merge(lines: readonly AgentList[], limit: number): unknown[] {
  const items: unknown[] = []
  while (items.length < limit) {
    let newest: AgentList | undefined
    for (const line of lines) {
      const item = line.items[line.taken]
      if (item === undefined) {
        // The list's next page may hold newer items than the other lists.
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
