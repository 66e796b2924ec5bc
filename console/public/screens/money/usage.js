import { AgentName } from '../../components/agent-name.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Bar, Card } from '../../components/page.js'
import { EmptyState, Loading, Unread } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { durationText } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf, route } from '../../router.js'
import { isOperator } from '../../session.js'
import { DayChart } from './day-chart.js'
import { grouped, perDay, total } from './usage-sums.js'

/**
 * @typedef {import('./usage-sums.js').UsageRow} UsageRow
 * @typedef {import('./usage-sums.js').Money} Money
 * @typedef {{ usage: UsageRow[], unread: { agent: string, reason: string }[] }} UsageAnswer
 */

const rowsMax = 100

/** @param {number} days before today, in UTC */
const dayBefore = (days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)

/** Usage and spending per day, caller and agent. */
export function Usage() {
  const { query } = route.value
  const days = [1, 7, 30, 90].find((count) => String(count) === query.get('days')) ?? 7
  const [since, until] = [dayBefore(days - 1), dayBefore(-1)]
  const agent = query.get('agent') ?? undefined
  const owner = query.get('owner') ?? undefined
  const loaded = useApi('/operator/usage', { since, until, agent, owner, by: 'day,agent,owner' })
  useLiveReload(['task', 'payment'], loaded.reload, 15_000)
  return html`<div class="stack">
    <${Filters} filters=${filterFields()} />
    <${Loading} loaded=${loaded} lines=${10}>
      ${(/** @type {UsageAnswer} */ { usage, unread }) => html`
        <${Unread} unread=${unread} />
        ${usage.length === 0 ? html`<${NoUsage} />` : html`<${Figures} rows=${usage} /><${Groups} rows=${usage} since=${since} last=${dayBefore(0)} />`}
      `}
    <//>
  </div>`
}

function filterFields() {
  return [
    {
      name: 'days',
      label: 'Period (UTC)',
      kind: 'select',
      empty: 'Last 7 days',
      options: [
        ['1', 'Today'],
        ['30', 'Last 30 days'],
        ['90', 'Last 90 days'],
      ],
    },
    ...(isOperator.value ? [{ name: 'owner', label: 'Caller', placeholder: 'Client ID' }] : []),
    { name: 'agent', label: 'Agent', placeholder: 'forecaster' },
  ]
}

function NoUsage() {
  return html`<${Card}>
    <${EmptyState} title="No tasks in this period" icon="money" action=${html`<a class="button primary" href="/console/try">Try an agent</a>`}>
      Choose a longer period, or send a first message.
    <//>
  <//>`
}

/** @param {{ rows: UsageRow[] }} props */
function Figures({ rows }) {
  const sum = total(rows)
  const tokens = sum.input_tokens + sum.output_tokens
  return html`<div class="figures">
    <div><span class="label">Tasks</span><span class="value">${sum.tasks.toLocaleString('en')}</span></div>
    <div><span class="label">Failed, rejected, canceled</span><span class="value">${sum.failed.toLocaleString('en')}</span></div>
    <div><span class="label">Working time</span><span class="value">${durationText(sum.worked_ms)}</span></div>
    <div><span class="label">Model tokens</span><span class="value">${compact(tokens)}</span></div>
    <div><span class="label">Spent</span><span class="value"><${Amounts} paid=${sum.paid} /></span></div>
  </div>`
}

/** @param {number} count */
const compact = (count) => new Intl.NumberFormat('en', { notation: 'compact' }).format(count)

/** @param {{ paid: Money[] }} props */
export function Amounts({ paid }) {
  if (paid.length === 0) return html`<span class="faint">0</span>`
  return html`${paid.map(
    ({
      asset,
      asset_name: name,
      network,
      amount,
      sandbox,
    }) => html`<span key=${`${asset}${network}${sandbox}`} class="nowrap amount" title=${`${asset} on ${network}`}>
      <${Text} value=${amount} max=${40} /> <span class="small muted"><${Text} value=${name} max=${20} />${sandbox && ' (test)'}</span>
    </span>`,
  )}`
}

/** @param {{ rows: UsageRow[], since: string, last: string }} props */
function Groups({ rows, since, last }) {
  const days = perDay(rows, since, last)
  const owners = grouped(rows, 'owner')
  const agents = grouped(rows, 'agent')
  return html`
    ${days.length > 1 && html`<${Card} title="Tasks per day" id="per-day"><${DayChart} days=${days} /><//>`}
    ${isOperator.value && html`<${GroupCard} id="per-caller" title="By caller" field="owner" groups=${owners} />`}
    <${GroupCard} id="per-agent" title="By agent" field="agent" groups=${agents} />
    <${DayTable} days=${days} />
  `
}

/** @typedef {{ name: string, row: UsageRow }} Group */

/** @param {{ id: string, title: string, field: 'owner' | 'agent', groups: Group[] }} props */
function GroupCard({ id, title, field, groups }) {
  const most = Math.max(1, ...groups.map(({ row }) => row.tasks))
  const columns = [
    {
      title: field === 'owner' ? 'Caller' : 'Agent',
      kind: 'fill',
      label: false,
      cell: (/** @type {Group} */ { name }) =>
        html`<div class="truncate"><${GroupName} field=${field} name=${name} /></div>`,
    },
    {
      title: 'Share',
      kind: 'max',
      wideOnly: true,
      cell: (/** @type {Group} */ { row }) => html`<${Bar} share=${row.tasks / most} />`,
    },
    ...usageColumns(({ row }) => row),
  ]
  const footer =
    groups.length > rowsMax
      ? `The ${rowsMax} with the most tasks of ${groups.length.toLocaleString('en')} are shown.`
      : undefined
  return html`<${Card} id=${id} title=${title} padded=${false} footer=${footer}>
    <${Table} caption=${title} columns=${columns} rows=${groups.slice(0, rowsMax)} rowKey=${(/** @type {Group} */ { name }) => name} />
  <//>`
}

/** @param {{ field: 'owner' | 'agent', name: string }} props */
function GroupName({ field, name }) {
  if (field === 'agent') return html`<${AgentName} slug=${name} />`
  return html`<a href=${hrefOf('/console/money', { owner: name, days: route.value.query.get('days') })}><${Text} value=${name} max=${120} /></a>`
}

/** @param {{ days: { day: string, row: UsageRow }[] }} props */
function DayTable({ days }) {
  const columns = [
    { title: 'Day (UTC)', kind: 'fill', label: false, cell: (/** @type {{ day: string }} */ { day }) => day },
    ...usageColumns(({ row }) => row),
  ]
  const used = days.filter(({ row }) => row.tasks > 0).toReversed()
  return html`<${Card} id="days" title="By day" padded=${false}>
    <${Table} caption="Usage per day" columns=${columns} rows=${used} rowKey=${(/** @type {{ day: string }} */ { day }) => day} />
  <//>`
}

/** @param {(one: any) => UsageRow} of */
const usageColumns = (of) => [
  {
    title: 'Tasks',
    kind: 'number',
    cell: (/** @type {unknown} */ one) => of(one).tasks.toLocaleString('en'),
  },
  {
    title: 'Failed',
    kind: 'number',
    cell: (/** @type {unknown} */ one) => of(one).failed.toLocaleString('en'),
  },
  { title: 'Work', kind: 'number', cell: (/** @type {unknown} */ one) => durationText(of(one).worked_ms) },
  {
    title: 'Tokens',
    kind: 'number',
    wideOnly: true,
    cell: (/** @type {unknown} */ one) => compact(of(one).input_tokens + of(one).output_tokens),
  },
  {
    title: 'Spent',
    kind: 'number',
    cell: (/** @type {unknown} */ one) => html`<${Amounts} paid=${of(one).paid} />`,
  },
]
