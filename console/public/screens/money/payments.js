import { AgentName } from '../../components/agent-name.js'
import { Badge } from '../../components/badge.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Card } from '../../components/page.js'
import { EmptyState, Loading, Unread } from '../../components/states.js'
import { Pager, Table } from '../../components/table.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf, route } from '../../router.js'
import { isOperator } from '../../session.js'

/**
 * @typedef {object} Payment
 * @property {string} payment_id
 * @property {string} state
 * @property {string} [reason]
 * @property {string} owner
 * @property {string} [payer]
 * @property {string} amount
 * @property {string} asset
 * @property {string} asset_name
 * @property {string} network
 * @property {string} [tx_hash]
 * @property {string} [task_id]
 * @property {true} [sandbox]
 * @property {string} created_at
 * @property {string} [refund_tx_hash]
 * @property {string} agent
 *
 * @typedef {{ payments: Payment[], counts: Record<string, number>, next_cursor: string | null,
 *   unread: { agent: string, reason: string }[] }} PaymentList
 */

/** @type {Record<string, [tone: import('../../../types/answers.js').Tone, label: string]>} */
const states = {
  'payment-orphaned': ['bad', 'To be refunded'],
  unknown: ['warn', 'Outcome unknown'],
  settled: ['info', 'Settled'],
  spent: ['info', 'Spent'],
  earned: ['good', 'Earned'],
  refunded: ['quiet', 'Refunded'],
  failed: ['bad', 'Failed'],
  open: ['quiet', 'Open'],
  expired: ['quiet', 'Expired'],
}

/** @param {{ state: string }} props */
export function PaymentState({ state }) {
  const [tone, label] = states[state] ?? ['quiet', state]
  return html`<${Badge} tone=${tone}>${label}<//>`
}

/** The ledgers of all agents, newest payments first. */
export function Payments() {
  const { query } = route.value
  const names = ['state', 'agent', 'owner', 'cursor']
  const filters = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
  const loaded = useApi('/operator/payments', { ...filters, limit: 50 })
  useLiveReload(['payment'], loaded.reload, 5000)
  const isFiltered = names.slice(0, 3).some((name) => query.has(name))
  return html`<div class="stack">
    <${Filters} filters=${filterFields()} />
    <${Card} padded=${false}>
      <${Loading} loaded=${loaded} lines=${8}>
        ${(/** @type {PaymentList} */ list) => html`<${List} list=${list} isFiltered=${isFiltered} />`}
      <//>
    <//>
  </div>`
}

function filterFields() {
  const options = Object.entries(states).map(([state, [, label]]) => [state, label])
  return [
    { name: 'state', label: 'State', kind: 'select', options },
    { name: 'agent', label: 'Agent', placeholder: 'forecaster' },
    ...(isOperator.value ? [{ name: 'owner', label: 'Caller', placeholder: 'Client ID' }] : []),
  ]
}

/** @param {{ list: PaymentList, isFiltered: boolean }} props */
function List({ list: { payments, counts, next_cursor: cursor, unread }, isFiltered }) {
  return html`
    <${Unread} unread=${unread} />
    ${Object.keys(counts).length > 0 && html`<${Counts} counts=${counts} />`}
    ${
      payments.length === 0
        ? html`<${EmptyState} title=${isFiltered ? 'No payment matches these filters' : 'No payments yet'} icon="money">
            ${isFiltered ? 'Remove a filter to see more.' : html`Agents with a price take payments. Try <code>npx parley send forecaster --pay "…"</code> with test money.`}
          <//>`
        : html`<${Table} caption="Payments" columns=${columns} rows=${payments} rowKey=${(/** @type {Payment} */ { payment_id: id }) => id} />
            <${Pager} cursor=${cursor} shown=${payments.length} noun=${payments.length === 1 ? 'payment' : 'payments'} />`
    }
  `
}

/** @param {{ counts: Record<string, number> }} props */
function Counts({ counts }) {
  return html`<div class="card-body row" role="group" aria-label="Payments by state">
    ${Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(
        ([
          state,
          count,
        ]) => html`<a key=${state} class="row" href=${hrefOf('/console/money', { tab: 'payments', state })}>
          <${PaymentState} state=${state} /><span class="muted small">${count.toLocaleString('en')}</span>
        </a>`,
      )}
  </div>`
}

const columns = [
  { title: 'Amount', kind: 'narrow', label: false, cell: AmountCell },
  {
    title: 'State',
    kind: 'narrow',
    cell: (/** @type {Payment} */ { state }) => html`<${PaymentState} state=${state} />`,
  },
  {
    title: 'Agent',
    kind: 'narrow',
    cell: (/** @type {Payment} */ { agent }) => html`<${AgentName} slug=${agent} />`,
  },
  {
    title: 'Caller',
    kind: 'fill',
    cell: (/** @type {Payment} */ { owner }) =>
      html`<span class="truncate"><${Text} value=${owner} max=${120} /></span>`,
  },
  {
    title: 'Task',
    kind: 'narrow',
    cell: (/** @type {Payment} */ { task_id: task, agent }) =>
      task === undefined
        ? null
        : html`<${Id} value=${task} href=${hrefOf(`/console/tasks/${task}`, { agent })} />`,
  },
  {
    title: 'Transaction',
    kind: 'narrow',
    wideOnly: true,
    cell: (/** @type {Payment} */ { tx_hash: hash }) =>
      html`<${Id} value=${hash ?? null} copies=${true} label="transaction" />`,
  },
  {
    title: 'Created',
    kind: 'narrow',
    cell: (/** @type {Payment} */ row) => html`<${Time} at=${row.created_at} />`,
  },
]

/** @param {Payment} payment */
export function AmountCell({ amount, asset, asset_name: name, network, sandbox }) {
  return html`<span class="nowrap" title=${`${asset} on ${network}`}>
    <strong><${Text} value=${amount} max=${40} /></strong> <${Text} value=${name} max=${20} />${sandbox === true && html` <span class="small muted">test money</span>`}
  </span>`
}
