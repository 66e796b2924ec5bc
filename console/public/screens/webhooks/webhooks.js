import { useState } from 'preact/hooks'
import { AgentName } from '../../components/agent-name.js'
import { StateBadge } from '../../components/badge.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading, Unread } from '../../components/states.js'
import { Pager, Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { route } from '../../router.js'
import { isOperator } from '../../session.js'
import { ResendSince } from './resend-since.js'

/**
 * @typedef {import('../../../types/answers.js').DeliveryRow} DeliveryRow
 * @typedef {{ deliveries: DeliveryRow[], next_cursor: string | null, unread: { agent: string, reason: string }[] }} DeliveryList
 */

const names = ['state', 'agent', 'owner', 'task', 'cursor']

/** The webhooks of all tasks. */
export default function Webhooks() {
  const { query } = route.value
  const [resends, setResends] = useState(false)
  const filters = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
  const loaded = useApi('/operator/deliveries', { ...filters, limit: 50 })
  useLiveReload(['delivery'], loaded.reload, 4000)
  const state = query.get('state')
  const isFiltered = names.slice(0, 4).some((name) => query.has(name))
  return html`<${Page} title="Webhooks" lead="Which receivers get the events of tasks, and which fail."
    command=${`npx parley deliveries${state ? ` --state ${state}` : ''}`}
    actions=${html`<button type="button" class="button" onClick=${() => setResends(true)}><${Icon} name="reload" />Resend since …</button>`}>
    <${Filters} filters=${filterFields()} />
    <${Card} padded=${false}>
      <${Loading} loaded=${loaded} lines=${8}>
        ${(/** @type {DeliveryList} */ list) => html`<${List} list=${list} isFiltered=${isFiltered} />`}
      <//>
    <//>
    ${resends && html`<${ResendSince} filters=${filters} reload=${loaded.reload} onClose=${() => setResends(false)} />`}
  <//>`
}

function filterFields() {
  return [
    {
      name: 'state',
      label: 'State',
      kind: 'select',
      options: [
        ['failing', 'Failing'],
        ['dropped', 'Dropped'],
        ['pending', 'Pending'],
        ['delivered', 'Delivered'],
      ],
    },
    { name: 'agent', label: 'Agent', placeholder: 'summarizer' },
    ...(isOperator.value ? [{ name: 'owner', label: 'Caller', placeholder: 'Client ID' }] : []),
    { name: 'task', label: 'Task', placeholder: 'Task ID' },
  ]
}

/** @param {{ list: DeliveryList, isFiltered: boolean }} props */
function List({ list: { deliveries, next_cursor: cursor, unread }, isFiltered }) {
  return html`
    <${Unread} unread=${unread} />
    ${
      deliveries.length === 0
        ? html`<${EmptyState} title=${isFiltered ? 'No webhook matches these filters' : 'No task has a webhook'} icon="webhooks">
            ${isFiltered ? 'Remove a filter to see more.' : html`Add one with <code>npx parley send summarizer --webhook https://… "…"</code>.`}
          <//>`
        : html`<${Table} caption="Webhooks" columns=${columns} rows=${deliveries} rowKey=${keyOf} linked=${true} />
            <${Pager} cursor=${cursor} shown=${deliveries.length} noun=${deliveries.length === 1 ? 'webhook' : 'webhooks'} />`
    }
  `
}

/** @param {DeliveryRow} row */
const keyOf = ({ agent, task_id: task, config_id: config }) => `${agent}/${task}/${config}`

/** @param {Pick<DeliveryRow, 'agent' | 'task_id' | 'config_id'>} row */
export const pathOf = ({ agent, task_id: task, config_id: config }) =>
  [agent, task, config].map(encodeURIComponent).join('/')

const columns = [
  {
    title: 'Receiver',
    kind: 'fill',
    label: false,
    cell: (/** @type {DeliveryRow} */ row) =>
      html`<div class="truncate"><a class="row-link" href=${`/console/webhooks/${pathOf(row)}`}><${Text} value=${row.url} max=${300} /></a>
        ${row.last_error !== null && html`<span class="bad small truncate"><${Text} value=${row.last_error} max=${200} /></span>`}</div>`,
  },
  {
    title: 'State',
    kind: 'narrow',
    cell: (/** @type {DeliveryRow} */ { state }) => html`<${StateBadge} state=${state} />`,
  },
  {
    title: 'Agent',
    kind: 'narrow',
    cell: (/** @type {DeliveryRow} */ { agent }) => html`<${AgentName} slug=${agent} />`,
  },
  {
    title: 'Caller',
    kind: 'max',
    wideOnly: true,
    cell: (/** @type {DeliveryRow} */ { owner }) =>
      html`<span class="truncate"><${Text} value=${owner} max=${100} /></span>`,
  },
  {
    title: 'Delivered',
    kind: 'number',
    cell: (/** @type {DeliveryRow} */ { delivered, events }) => `${delivered} of ${events}`,
  },
  {
    title: 'Dropped',
    kind: 'number',
    cell: (/** @type {DeliveryRow} */ row) => html`<${Dropped} dropped=${row.dropped} />`,
  },
  {
    title: 'Attempts',
    kind: 'number',
    wideOnly: true,
    cell: (/** @type {DeliveryRow} */ { attempts }) => attempts,
  },
  {
    title: 'Last attempt',
    kind: 'narrow',
    cell: (/** @type {DeliveryRow} */ row) => html`<${Time} at=${row.last_attempt_at} none="none" />`,
  },
]

/** @param {{ dropped: Record<string, number> }} props */
export function Dropped({ dropped }) {
  const total = Object.values(dropped).reduce((sum, count) => sum + count, 0)
  if (total === 0) return html`<span class="faint">0</span>`
  const reasons = Object.entries(dropped).map(([reason, count]) => `${count} ${reason.replaceAll('_', ' ')}`)
  return html`<span class="bad" title=${reasons.join(', ')}>${total}</span>`
}
