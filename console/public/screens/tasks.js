import { useEffect, useState } from 'preact/hooks'
import { isPaused, lookOf, StateBadge, stateNames } from '../components/badge.js'
import { Filters } from '../components/filters.js'
import { html } from '../components/html.js'
import { Card, Page } from '../components/page.js'
import { EmptyState, Loading, Unread } from '../components/states.js'
import { Pager, Table } from '../components/table.js'
import { Id, Text } from '../components/text.js'
import { Duration, Time } from '../components/time.js'
import { useLive } from '../live.js'
import { useApi } from '../load.js'
import { hrefOf, route } from '../router.js'
import { isOperator } from '../session.js'

/**
 * @typedef {import('../../types/answers.js').TaskRow} TaskRow
 * @typedef {import('../../types/answers.js').TaskList} TaskList
 */

/** Tasks over all agents, by the time of their state, newest first. */
export default function TasksScreen() {
  const { query } = route.value
  const isFirstPage = !query.has('cursor')
  const loaded = useApi('/operator/tasks', useListQuery(query))
  const news = useNews(loaded, isFirstPage)
  return html`<${Page} title="Tasks" command=${commandOf(query)}>
    <${Filters} filters=${filters()} />
    <${Card} padded=${false}>
      ${
        news.count > 0 &&
        html`<button type="button" class="new-entries" onClick=${news.show}>
          ${news.count === 1 ? '1 new or changed task' : `${news.count > 99 ? '99+' : news.count} new or changed tasks`} – show
        </button>`
      }
      <${Loading} loaded=${loaded} lines=${10}>
        ${(/** @type {TaskList} */ list) => html`<${Tasks} list=${{ ...list, tasks: news.updated(list.tasks) }} isFirstPage=${isFirstPage} />`}
      <//>
    <//>
  <//>`
}

/** @param {{ list: TaskList, isFirstPage: boolean }} props */
function Tasks({ list, isFirstPage }) {
  const { query } = route.value
  const isFiltered = filters().some(({ name }) => query.has(name))
  return html`
    ${list.unread.length > 0 && html`<div class="card-body"><${Unread} unread=${list.unread} /></div>`}
    ${
      list.tasks.length === 0
        ? html`<${NoTasks} isFiltered=${isFiltered || !isFirstPage} />`
        : html`<${Table} caption="Tasks" columns=${columns()} rows=${list.tasks} linked=${true}
            rowKey=${(/** @type {TaskRow} */ task) => `${task.agent} ${task.task_id}`} />
          <${Pager} cursor=${list.next_cursor} shown=${list.tasks.length} noun="tasks" />`
    }
  `
}

/** @param {{ isFiltered: boolean }} props */
function NoTasks({ isFiltered }) {
  if (isFiltered)
    return html`<${EmptyState} title="No task matches" icon="search" action=${html`<a class="button" href="/console/tasks">Show all tasks</a>`}>
      Remove a filter, or choose a longer period.
    <//>`
  return html`<${EmptyState} title="No tasks yet" icon="tasks" action=${html`<a class="button primary" href="/console/try">Send a message</a>`}>
    A task appears here as soon as an agent accepts a message.
  <//>`
}

const periods = /** @type {[string, string][]} */ ([
  ['15m', 'Last 15 minutes'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
])
const periodMs = /** @type {Record<string, number>} */ ({
  '15m': 9e5,
  '1h': 3.6e6,
  '24h': 8.64e7,
  '7d': 6.048e8,
  '30d': 2.592e9,
})

/** @returns {import('../components/filters.js').Filter[]} */
function filters() {
  const states = stateNames.map((state) => /** @type {[string, string]} */ ([state, lookOf(state).label]))
  return [
    {
      name: 'state',
      label: 'State',
      kind: 'select',
      options: [['submitted,working', 'Queued or working'], ...states],
    },
    { name: 'agent', label: 'Agent', placeholder: 'any agent' },
    ...(isOperator.value ? [{ name: 'owner', label: 'Owner', placeholder: 'any client id' }] : []),
    { name: 'since', label: 'Changed', kind: /** @type {const} */ ('select'), options: periods },
    { name: 'waiting', label: 'Waiting for a person', kind: 'check' },
  ]
}

/**
 * The query of the API. The beginning of the period is fixed when the filter changes, so that all pages have the same one.
 *
 * @param {URLSearchParams} query
 */
function useListQuery(query) {
  const period = query.get('since') ?? ''
  const [start, setStart] = useState(() => startOf(period))
  useEffect(() => setStart(startOf(period)), [period])
  const given = Object.fromEntries(
    ['state', 'agent', 'owner', 'waiting', 'cursor', 'context'].map((name) => [
      name,
      query.get(name) ?? undefined,
    ]),
  )
  return { ...given, since: period === '' ? undefined : start }
}

/** @param {string} period one of the choices, or a time */
function startOf(period) {
  const ms = periodMs[period]
  if (ms === undefined) return period
  return new Date(Math.floor((Date.now() - ms) / 60_000) * 60_000).toISOString()
}

/** @param {URLSearchParams} query */
function commandOf(query) {
  const flags = ['state', 'agent', 'owner']
    .filter((name) => query.get(name))
    .map((name) => `--${name} ${query.get(name)}`)
  return ['npx parley tasks', ...flags, ...(query.get('waiting') === 'true' ? ['--waiting'] : [])].join(' ')
}

/** @returns {import('../components/table.js').Column<TaskRow>[]} */
function columns() {
  return [
    {
      title: 'State',
      kind: 'narrow',
      label: false,
      cell: ({ state }) => html`<${StateBadge} state=${state} />`,
    },
    { title: 'Task', kind: 'fill', label: false, cell: (task) => html`<${TaskCell} task=${task} />` },
    {
      title: 'Agent',
      kind: 'max',
      cell: ({ agent, recorded_only: isRecorded }) =>
        html`<span class="truncate" title=${isRecorded ? 'An external agent: the gateway knows only what it recorded itself' : undefined}><${Text} value=${agent} />${isRecorded && html` <span class="tag">recorded</span>`}</span>`,
    },
    ...(isOperator.value
      ? [
          {
            title: 'Owner',
            kind: /** @type {const} */ ('max'),
            cell: (/** @type {TaskRow} */ { owner }) => html`<${Id} value=${owner} length=${18} />`,
          },
        ]
      : []),
    { title: 'In state', kind: 'narrow', cell: ({ since }) => html`<${Time} at=${since} />` },
    { title: 'Worked', kind: 'number', cell: ({ worked_ms: ms }) => html`<${Duration} ms=${ms} />` },
    { title: 'Created', kind: 'narrow', cell: ({ created_at: at }) => html`<${Time} at=${at} />` },
  ]
}

/** @param {{ task: TaskRow }} props */
function TaskCell({ task }) {
  const isLoud = isPaused(task.state) || task.state === 'failed' || task.state === 'rejected'
  const href = hrefOf(`/console/tasks/${encodeURIComponent(task.task_id)}`, { agent: task.agent })
  return html`<span class="stack-0">
    <a class="row-link truncate" href=${href}>${task.text === null ? html`<span class="mono">${task.task_id.slice(0, 13)}</span>` : html`<${Text} value=${task.text} />`}</a>
    ${isLoud && task.reason !== null && html`<span class=${`truncate small ${lookOf(task.state).tone}`}><${Text} value=${task.reason} /></span>`}
  </span>`
}

/**
 * Live changes of the shown page: states change in place, and new tasks are counted and shown when the reader wants, so that rows
 * never move under the pointer.
 *
 * @param {import('../load.js').Loaded<TaskList>} loaded
 * @param {boolean} isFirstPage
 */
function useNews({ data, reload }, isFirstPage) {
  const [fresh, setFresh] = useState(() => new Set())
  const [changes, setChanges] = useState(() => new Map())
  useEffect(() => {
    setFresh(new Set())
    setChanges(new Map())
  }, [data])
  useLive(['task'], ({ type, data: change }) => {
    if (type === 'reset') return reload()
    const id = change?.task_id
    if (typeof id !== 'string' || data === undefined) return undefined
    if (data.tasks.some((task) => task.task_id === id))
      return setChanges((old) => new Map(old).set(id, change))
    if (isFirstPage && mayMatch(change) && fresh.size < 100) setFresh((old) => new Set(old).add(id))
    return undefined
  })
  return {
    count: fresh.size,
    show: () => {
      window.scrollTo({ top: 0 })
      reload()
    },
    updated: (/** @type {TaskRow[]} */ tasks) =>
      tasks.map((task) => withChange(task, changes.get(task.task_id))),
  }
}

/**
 * @param {TaskRow} task
 * @param {any} change
 * @returns {TaskRow}
 */
function withChange(task, change) {
  if (typeof change?.state !== 'string') return task
  return { ...task, ...change }
}

/**
 * Whether a changed task may belong to the filtered list.
 *
 * @param {any} change
 */
function mayMatch(change) {
  const { query } = route.peek()
  const fits = (/** @type {string} */ name, /** @type {unknown} */ value) => {
    const wanted = query.get(name)
    return wanted === null || typeof value !== 'string' || wanted.split(',').includes(value)
  }
  if (query.get('waiting') === 'true' && typeof change.state === 'string' && !isPaused(change.state))
    return false
  return fits('state', change.state) && fits('agent', change.agent) && fits('owner', change.owner)
}
