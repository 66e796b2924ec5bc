import { isEnded, isPaused, lookOf } from '../../components/badge.js'

/**
 * The periods of a task on the time axis: it waits in the queue, works, pauses for a person or a payment, or waits for another start
 * after its process ended.
 *
 * @typedef {import('../../../types/answers.js').ChainedTask} ChainedTask
 * @typedef {'queue' | 'work' | 'pause' | 'lost' | 'retry'} SpanKind
 * @typedef {{ kind: SpanKind, from: number, to: number, open?: boolean, state?: string }} Span times in milliseconds
 * @typedef {{ kind: 'artifact' | 'end' | 'payment' | 'webhook', at: number, label: string, tone: string }} Mark
 * @typedef {{ task: ChainedTask, depth: number, spans: Span[], marks: Mark[], from: number, to: number }} Lane
 */

/** The words of the legend. */
export const spanNames = /** @type {Record<SpanKind, string>} */ ({
  queue: 'waits in the queue',
  work: 'works',
  pause: 'waits for a person or a payment',
  lost: 'start without an end: its process stopped',
  retry: 'waits for another start',
})

/**
 * The lanes of a chain of tasks, parents before children.
 *
 * @param {ChainedTask[]} chain
 * @param {Record<string, number>} skews by how many milliseconds the clock of an agent is ahead
 * @param {number} now
 * @returns {Lane[]}
 */
export function lanesOf(chain, skews, now) {
  return inOrder(chain).map(({ task, depth }) => {
    const skew = skews[task.agent] ?? 0
    const at = (/** @type {string} */ time) => Date.parse(time) - skew
    const spans = spansOf(task, at, now)
    const marks = [...marksOf(task, at), ...paymentMarks(task, at), ...webhookMarks(task, at)]
    const times = [
      ...spans.flatMap(({ from, to }) => [from, to]),
      ...marks.map((mark) => mark.at),
      at(task.created_at),
    ]
    return { task, depth, spans, marks, from: Math.min(...times), to: Math.max(...times) }
  })
}

/** @param {ChainedTask[]} chain */
function inOrder(chain) {
  const ids = new Set(chain.map((task) => task.task_id))
  const children = Map.groupBy(chain, ({ parent_id: parent }) =>
    parent !== null && ids.has(parent) ? parent : '',
  )
  /** @type {{ task: ChainedTask, depth: number }[]} */
  const ordered = []
  const seen = new Set()
  const add = (/** @type {ChainedTask} */ task, /** @type {number} */ depth) => {
    if (seen.has(task)) return
    seen.add(task)
    ordered.push({ task, depth })
    for (const child of children.get(task.task_id) ?? []) add(child, depth + 1)
  }
  for (const root of children.get('') ?? []) add(root, 0)
  // Tasks that name each other as parents have no root.
  for (const task of chain) add(task, 0)
  return ordered
}

/**
 * @param {ChainedTask} task
 * @param {(time: string) => number} at
 * @param {number} now
 * @returns {Span[]}
 */
function spansOf(task, at, now) {
  const end = isEnded(task.state) ? endOf(task, at) : now
  const runs = task.runs.length > 0 ? task.runs : runsOfEvents(task)
  /** @type {Span[]} */
  const spans = []
  let cursor = at(task.created_at)
  /** @type {SpanKind} */
  let waiting = 'queue'
  let state = 'submitted'
  for (const run of [...runs].sort((a, b) => at(a.started_at) - at(b.started_at))) {
    const from = at(run.started_at)
    const to = run.ended_at === null ? end : at(run.ended_at)
    if (from > cursor) spans.push({ kind: waiting, from: cursor, to: from, state })
    const isLost = run.outcome === 'lost'
    spans.push({
      kind: isLost ? 'lost' : 'work',
      from,
      to: Math.max(from, to),
      open: run.ended_at === null && !isEnded(task.state),
    })
    cursor = Math.max(cursor, to)
    state = run.outcome ?? 'working'
    waiting = isLost ? 'retry' : isPaused(state) ? 'pause' : 'queue'
  }
  const isOpen = spans.at(-1)?.open === true
  if (!isOpen && end - cursor > 1 && (!isEnded(task.state) || runs.length === 0 || waiting !== 'queue'))
    spans.push({
      kind: isPaused(task.state) ? 'pause' : waiting,
      from: cursor,
      to: end,
      open: !isEnded(task.state),
      state,
    })
  return spans
}

/**
 * The runs as the events show them, where the agent reported none.
 *
 * @param {ChainedTask} task
 */
function runsOfEvents(task) {
  /** @type {ChainedTask['runs']} */
  const runs = []
  for (const event of task.events) {
    if (event.kind !== 'status-update' || event.state === undefined) continue
    const last = runs.at(-1)
    const isOpen = last !== undefined && last.ended_at === null
    if (event.state === 'working') {
      if (!isOpen) runs.push({ started_at: event.at, ended_at: null, outcome: null })
    } else if (isOpen) Object.assign(last, { ended_at: event.at, outcome: event.state })
  }
  return runs
}

/**
 * @param {ChainedTask} task
 * @param {(time: string) => number} at
 * @returns {Mark[]}
 */
function marksOf(task, at) {
  /** @type {Mark[]} */
  const marks = task.events
    .filter(({ kind }) => kind === 'artifact-update')
    .map((event) => ({ kind: 'artifact', at: at(event.at), label: 'Artifact', tone: 'info' }))
  if (isEnded(task.state))
    marks.push({ kind: 'end', at: endOf(task, at), label: task.state, tone: task.state })
  return marks
}

/**
 * Payments at the time of their settlement, or of their request.
 *
 * @param {ChainedTask} task
 * @param {(time: string) => number} at
 * @returns {Mark[]}
 */
function paymentMarks({ payments }, at) {
  return payments.map(
    ({ amount, asset_name: asset, state, created_at: created, completed_at: completed }) => ({
      kind: 'payment',
      at: at(completed ?? created),
      label: `Payment of ${amount} ${asset}: ${state}`,
      tone: 'violet',
    }),
  )
}

/**
 * Webhooks at the time of their last attempt.
 *
 * @param {ChainedTask} task
 * @param {(time: string) => number} at
 * @returns {Mark[]}
 */
function webhookMarks({ webhooks }, at) {
  return webhooks.flatMap(({ url, state, attempts, last_attempt_at: last }) => {
    if (last === null) return []
    const label = `Webhook ${url}: ${state} after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}`
    return [{ kind: 'webhook', at: at(last), label, tone: lookOf(state).tone }]
  })
}

/**
 * @param {ChainedTask} task
 * @param {(time: string) => number} at
 */
function endOf(task, at) {
  const last = task.events.findLast(({ state }) => state !== undefined && isEnded(state))
  return at(last?.at ?? task.updated_at)
}

/**
 * Round times between the ends of the axis, at most `count`.
 *
 * @param {number} length in milliseconds
 * @param {number} count
 */
export function ticksOf(length, count) {
  const steps = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5,
    216e5, 432e5, 864e5, 6048e5,
  ]
  const step = steps.find((one) => length / one <= count) ?? length / count
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, index) => index * step)
}
