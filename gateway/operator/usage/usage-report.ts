import { subjectOf } from '@parley/kit/auth/caller'
import type { money } from '@parley/wire/codecs/answers/operator/page'
import {
  agentUsage,
  type usageAnswer,
  type usageQuery,
  type usageRow,
} from '@parley/wire/codecs/answers/operator/usage'
import { ParleyError } from '@parley/wire/errors'
import { isDecimal, toAtomic, toWhole } from '@parley/wire/model/amount'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { z } from 'zod'
import type { AgentReader, OperatorRequest, UnreadAgent } from '../agent-reader.ts'
import { agentsToRead, type ReadSources } from '../tasks/agents-to-read.ts'
import { isVisible } from '../tasks/clean-row.ts'
import type { Position } from '../tasks/merge-pages.ts'
import type { RecordedTasks } from '../tasks/recorded-tasks.ts'
import type { CallerView } from '../view.ts'

type Query = z.output<typeof usageQuery>
type Row = z.output<typeof usageRow>
type NamedRow = Row & { day: string; agent: string; owner: string }
type Money = z.output<typeof money>
type Period = { since: string; until: string }

export interface UsageOptions extends ReadSources {
  reader: ReadSources['reader'] & Pick<AgentReader, 'read' | 'readAll'>
  recorded: Pick<RecordedTasks, 'list'>
}

const dayMs = 86_400_000
const daysMax = 400
const groups = ['day', 'agent', 'owner'] as const
/** Pages of one agent, recorded tasks of external agents, and rows of one answer. */
const [pagesMax, recordedMax, rowsMax] = [20, 10_000, 10_000]
const recordedPage = 1000
const agentTimeoutMs = 2500
/** No asset has more decimals, so that amounts of any asset can be added in these units. */
const decimals = 36

/** The usage of all agents that a view contains (spec/operator.md#usage). */
export class UsageReport {
  readonly #options: UsageOptions

  constructor(options: UsageOptions) {
    this.#options = options
  }

  /** @throws ParleyError InvalidParams, NotFound for an agent that does not exist */
  async read(view: CallerView, query: Query): Promise<z.output<typeof usageAnswer>> {
    const period = periodOf(query)
    const by = groupsOf(query.by)
    const owner = view.owner ?? query.owner
    if (query.owner !== undefined && query.owner !== owner) return { usage: [], unread: [] }
    const chosen = await agentsToRead(this.#options, { view, agent: query.agent, owner })
    const sums = new Map<string, Row>()
    const add = (row: NamedRow) => {
      const isWanted = row.day >= period.since && row.day <= period.until && isVisible(view, row.owner)
      if (isWanted && (owner === undefined || subjectOf(row.owner) === owner)) addTo(sums, row, by)
    }
    const [unread] = await Promise.all([
      this.#readAgents(view, { ...period, owner }, chosen.agents, add),
      this.#readRecorded({ ...period, owner, agent: query.agent }, add),
    ])
    const usage = [...sums.values()].sort(newestFirst).slice(0, rowsMax)
    return { usage, unread: [...unread, ...chosen.unread] }
  }

  async #readAgents(
    view: CallerView,
    query: Period & { owner: string | undefined },
    agents: Awaited<ReturnType<typeof agentsToRead>>['agents'],
    add: (row: NamedRow) => void,
  ): Promise<UnreadAgent[]> {
    const { reader } = this.#options
    const { answers, unread } = await reader.readAll(agentUsage, requestOf(view, query), { agents })
    for (const { entry, value } of answers) {
      let page = value
      for (let pages = 1; ; pages += 1) {
        for (const row of page.usage) add({ ...cleanUsage(row), agent: entry.slug })
        if (page.next_cursor === null || pages >= pagesMax) break
        try {
          const request = requestOf(view, query, page.next_cursor)
          page = (await reader.read(entry, agentUsage, request)).value
        } catch (error) {
          if (!(error instanceof ParleyError)) throw error
          unread.push({ agent: entry.slug, reason: `The usage of ${entry.slug} is incomplete. Try again.` })
          break
        }
      }
    }
    return unread
  }

  /** The gateway counts the tasks of external agents that it recorded. Their outcome is not known. */
  async #readRecorded(
    { since, until, owner, agent }: Period & { owner: string | undefined; agent: string | undefined },
    add: (row: NamedRow) => void,
  ): Promise<void> {
    const end = new Date(Date.parse(until) + dayMs).toISOString()
    const query = { since: `${since}T00:00:00Z`, until: end, owner, agent, limit: recordedPage }
    const seen = new Set<string>()
    let after: Position | undefined
    while (seen.size < recordedMax) {
      const { items, hasMore } = await this.#options.recorded.list({ ...query, after })
      const added = items.filter(({ owner: of, task_id: id }) => !seen.has(`${of} ${id}`))
      for (const task of added) {
        seen.add(`${task.owner} ${task.task_id}`)
        add({
          ...noUsage,
          day: task.created_at.slice(0, 10),
          owner: subjectOf(task.owner),
          agent: task.agent,
          tasks: 1,
        })
      }
      const last = items.at(-1)
      if (!hasMore || last === undefined || added.length === 0) return
      after = { at: last.since, id: last.task_id }
    }
  }
}

const noUsage = {
  tasks: 0,
  completed: 0,
  failed: 0,
  worked_ms: 0,
  input_tokens: 0,
  output_tokens: 0,
  paid: [],
}

function requestOf(
  { caller, owner: only, texts }: CallerView,
  { since, until, owner }: Period & { owner: string | undefined },
  cursor?: string,
): OperatorRequest {
  const search = new URLSearchParams({ since, until })
  if (owner !== undefined) search.set('owner', owner)
  if (cursor !== undefined) search.set('cursor', cursor)
  const operator = { client: caller, texts, ...(only !== undefined && { owner: only }) }
  return {
    group: 'usage.read',
    path: `/operator/usage?${search.toString()}`,
    operator,
    timeoutMs: agentTimeoutMs,
  }
}

/** @throws ParleyError InvalidParams */
function periodOf({ since, until = dayOf(Date.now()) }: Query): Period {
  const from = since ?? dayOf(Date.parse(until) - 6 * dayMs)
  const days = (Date.parse(until) - Date.parse(from)) / dayMs
  if (days >= 0 && days < daysMax) return { since: from, until }
  throw invalid('since', `must be a day before until, and at most ${daysMax} days earlier`)
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** @throws ParleyError InvalidParams */
function groupsOf(by: string): ReadonlySet<(typeof groups)[number]> {
  const names = by.split(',').map((name) => name.trim())
  const found = groups.filter((group) => names.includes(group))
  if (names.some((name) => !groups.some((group) => group === name)))
    throw invalid('by', `must contain only ${groups.join(', ')}, separated by commas`)
  return new Set(found)
}

function invalid(path: string, message: string): ParleyError {
  return new ParleyError('InvalidParams', { data: { issues: [{ path, message }] } })
}

/** An agent may have sent any number and text. */
function cleanUsage(row: z.output<typeof agentUsage>['usage'][number]) {
  const count = (value: number) => Math.max(0, value)
  return {
    ...row,
    owner: cleanLine(row.owner, 512),
    tasks: count(row.tasks),
    completed: count(row.completed),
    failed: count(row.failed),
    worked_ms: count(row.worked_ms),
    input_tokens: count(row.input_tokens),
    output_tokens: count(row.output_tokens),
    paid: row.paid
      .filter(({ amount }) => isDecimal(amount))
      .slice(0, 100)
      .map((one) => ({
        ...one,
        asset: cleanLine(one.asset, 200),
        asset_name: cleanLine(one.asset_name, 100),
        network: cleanLine(one.network, 100),
      })),
  }
}

function addTo(sums: Map<string, Row>, row: NamedRow, by: ReadonlySet<(typeof groups)[number]>): void {
  const { day, agent, owner, paid, ...counts } = row
  const group = {
    ...(by.has('day') && { day }),
    ...(by.has('agent') && { agent }),
    ...(by.has('owner') && { owner }),
  }
  const key = JSON.stringify(group)
  const sum = sums.get(key)
  if (sum === undefined) {
    sums.set(key, { ...group, ...counts, paid: [...paid] })
    return
  }
  sum.tasks += counts.tasks
  sum.completed += counts.completed
  sum.failed += counts.failed
  sum.worked_ms += counts.worked_ms
  sum.input_tokens += counts.input_tokens
  sum.output_tokens += counts.output_tokens
  for (const one of paid) addMoney(sum.paid, one)
}

function addMoney(sums: Money[], one: Money): void {
  const same = sums.findIndex(
    ({ asset, network, sandbox }) =>
      asset === one.asset && network === one.network && sandbox === one.sandbox,
  )
  const before = sums[same]
  if (before === undefined) return void sums.push(one)
  const amount = toWhole(toAtomic(before.amount, decimals) + toAtomic(one.amount, decimals), decimals)
  sums[same] = { ...before, amount }
}

function newestFirst(a: Row, b: Row): number {
  if (a.day !== b.day) return (a.day ?? '') < (b.day ?? '') ? 1 : -1
  return b.tasks - a.tasks
}
