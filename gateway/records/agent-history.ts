import { isDeepStrictEqual } from 'node:util'
import { type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import { newId } from '@parley/kit/database/new-id'
import type { Log } from '@parley/kit/process/log'
import type { historyRow } from '@parley/wire/codecs/answers/operator/records'
import { nowMicros } from '@parley/wire/model/timestamp'
import { z } from 'zod'
import type { AgentEntry, ExampleProbe } from '../registry/entry.ts'
import { BatchedWrites } from './batched-writes.ts'

type Kind = z.output<typeof historyRow>['kind']

const storedChange = z.object({
  kind: z.custom<Kind>((value) => typeof value === 'string'),
  reason: z.string().optional(),
  by: z.string().optional(),
})

/** A change of an agent's health or admission. */
export interface AgentChange extends z.output<typeof storedChange> {
  /** Microseconds since 1970, unique in the process that recorded the change. */
  at: number
}

/** The stored changes of all agents. */
export interface AgentChanges {
  add(changes: readonly (AgentChange & { id: string; agent: string })[]): Promise<void>
  /** Newest first. @param before exclusive bound in microseconds since 1970 */
  list(agent: string, query: { before?: number; limit: number }): Promise<AgentChange[]>
  /** Removes the oldest changes of the agent beyond `max`. */
  trimAgent(agent: string, max: number): Promise<void>
  /** Removes changes from before this time. */
  removeBefore(at: number): Promise<void>
}

export const historyCollection = declareCollection({
  name: 'gateway_history',
  fields: { id: 'key', agent: 'key', at: 'integer', body: 'text' },
  key: ['id'],
  indexes: { age: { order: 'at' }, ofAgent: { equals: ['agent'], order: 'at' } },
})

export function agentChanges(database: DocumentDatabase): AgentChanges {
  const changes = database.collection(historyCollection)
  return {
    add: async (added) => {
      const rows = added.map(({ id, agent, at, ...change }) => ({
        id,
        agent,
        at,
        body: JSON.stringify(change),
      }))
      await Promise.all(rows.map((row) => changes.insert(row)))
    },
    list: async (agent, query) => {
      const found = await changes.find('ofAgent', { agent }, { ...query, descending: true })
      return found.map(({ at, body }) => ({ ...storedChange.parse(JSON.parse(body)), at }))
    },
    trimAgent: async (agent, max) => {
      const excess = (await changes.count('ofAgent', { agent })) - max
      if (excess > 0) await changes.removeMany('ofAgent', { agent }, { limit: excess })
    },
    removeBefore: async (at) => void (await changes.removeMany('age', {}, { before: at, limit: removedMax })),
  }
}

const removedMax = 5000
/** Number of changes that each agent keeps. */
const changesMax = 500
const keptDays = 180
const dayMs = 24 * 60 * 60 * 1000
const reasonMaxChars = 500

/** Stores the changes of agents in the background. `changed` is the listener of the registry. */
export class AgentHistory implements AsyncDisposable {
  readonly #writes: BatchedWrites<AgentChange & { id: string; agent: string }>

  constructor(changes: AgentChanges, { log, everyMs }: { log: Log; everyMs?: number }) {
    this.#writes = new BatchedWrites({
      write: async (batch) => {
        await changes.add(batch)
        for (const agent of new Set(batch.map((change) => change.agent)))
          await changes.trimAgent(agent, changesMax)
      },
      clean: () => changes.removeBefore((Date.now() - keptDays * dayMs) * 1000),
      what: 'the history of agents',
      log,
      ...(everyMs !== undefined && { everyMs }),
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#writes[Symbol.asyncDispose]()
  }

  /** Records and returns what distinguishes the two versions of an entry. */
  changed(before: AgentEntry | undefined, after: AgentEntry | undefined): readonly Change[] {
    const agent = (after ?? before)?.id
    if (agent === undefined) return []
    const changes = differences(before, after)
    for (const { reason, ...change } of changes) {
      const bounded = reason === undefined ? {} : { reason: reason.slice(0, reasonMaxChars).toWellFormed() }
      this.#writes.add({ id: newId(), agent, at: nowMicros(), ...change, ...bounded })
    }
    return changes
  }

  /** Writes the recorded changes. Never rejects. */
  flush(): Promise<void> {
    return this.#writes.flush()
  }
}

type Change = Omit<AgentChange, 'at'>

function differences(before: AgentEntry | undefined, after: AgentEntry | undefined): Change[] {
  if (after === undefined || after.left !== undefined)
    return before === undefined || before.left !== undefined ? [] : [{ kind: 'left' }]
  // Most changes are those of leases and load.
  if (
    before?.status === after.status &&
    before.admitted === after.admitted &&
    before.quarantine === after.quarantine &&
    before.cardChanges === after.cardChanges &&
    before.exampleProbe === after.exampleProbe &&
    before.left === undefined
  )
    return []
  const isNew = before === undefined || before.left !== undefined
  return [
    ...(isNew ? [{ kind: 'registered' as const, by: after.owner }] : []),
    ...admissionChange(before, after),
    ...quarantineChange(before, after),
    ...cardChange(before, after),
    ...exampleChange(before, after),
    ...statusChange(isNew ? undefined : before, after),
  ]
}

function admissionChange(before: AgentEntry | undefined, after: AgentEntry): Change[] {
  const { admitted, admittedBy, admittedAt, own } = after
  if (!admitted) return before?.admitted === true ? [{ kind: 'dismissed' }] : []
  if (before?.admitted === true && before.admittedAt === admittedAt) return []
  return [
    {
      kind: 'admitted',
      ...(admittedBy !== undefined && { by: admittedBy }),
      ...(own === true && { reason: 'as part of this deployment' }),
    },
  ]
}

function quarantineChange(before: AgentEntry | undefined, { quarantine: now }: AgentEntry): Change[] {
  const was = before?.quarantine
  if (now === undefined) {
    if (was === undefined) return []
    return [{ kind: was.by === undefined ? 'reinstated' : 'released' }]
  }
  if (was?.since === now.since) return []
  const { by, reason, until } = now
  if (by !== undefined) return [{ kind: 'quarantined', reason, by }]
  const seconds = until === undefined ? undefined : Math.round((until - Date.now()) / 1000)
  return [{ kind: 'ejected', reason: seconds === undefined ? reason : `${reason}, for ${seconds} s` }]
}

function cardChange(before: AgentEntry | undefined, { cardChanges = [] }: AgentEntry): Change[] {
  const known = new Set(before?.cardChanges)
  const fields = cardChanges.filter((change) => !known.has(change)).map(({ field }) => field)
  return before === undefined || fields.length === 0
    ? []
    : [{ kind: 'card_changed', reason: fields.join(', ') }]
}

/** The end of a probe with the agent's own examples. Its beginning has no results. */
function exampleChange(before: AgentEntry | undefined, { exampleProbe: now }: AgentEntry): Change[] {
  const results = now && exampleResults(now)
  if (results === undefined || isDeepStrictEqual(before?.exampleProbe, now)) return []
  return [{ kind: 'examples_tried', reason: results }]
}

/** For example `1 completed, 2 timed out`; undefined for a probe that has not ended. */
function exampleResults(probe: ExampleProbe): string | undefined {
  const counts = [
    [probe.completed, 'completed'],
    [probe.failed, 'failed'],
    [probe.timedOut, 'timed out'],
    [probe.inputRequired, 'required input'],
    [probe.authRequired, 'required authentication'],
    [probe.paymentRequired, 'required a payment'],
  ] as const
  const named = counts.flatMap(([count, what]) => (count > 0 ? [`${count} ${what}`] : []))
  return named.length === 0 ? undefined : named.join(', ')
}

function statusChange(before: AgentEntry | undefined, { status }: AgentEntry): Change[] {
  return before?.status === status || status === 'starting' ? [] : [{ kind: status }]
}
