import { Badge } from '../../components/badge.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Pager, Table } from '../../components/table.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useApi } from '../../load.js'
import { hrefOf, route } from '../../router.js'

/** @typedef {import('../../../types/answers.js').AuditRow} AuditRow */

const names = ['who', 'action', 'target', 'allowed', 'since', 'until']

/** Questions that people have often, as filters. */
const questions = /** @type {[text: string, query: Record<string, string>][]} */ ([
  ['Sign-ins', { action: 'console.*' }],
  ['Refused', { allowed: 'false' }],
  ['Changes of agents', { action: 'registry.*' }],
  ['Changes of clients', { action: 'clients.*' }],
  ['Texts that operators read', { action: 'operator.read_texts' }],
])

/** The audit log: each change, each refusal, each look at the texts of others. */
export default function Audit() {
  const { query } = route.value
  const filters = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
  const [since, until] = [startOf(filters['since']), startOf(filters['until'])]
  const asked = { ...filters, since, until, cursor: query.get('cursor') ?? undefined, limit: 100 }
  const loaded = useApi('/operator/audit', asked)
  const isFiltered = names.some((name) => query.has(name))
  return html`<${Page} title="Audit" lead="Who changed or read what, and what was refused." command=${commandOf({ ...filters, since, until })}>
    <nav class="row" aria-label="Frequent questions">
      ${questions.map(([text, wanted]) => html`<${Question} key=${text} text=${text} wanted=${wanted} query=${query} />`)}
    </nav>
    <${Filters} filters=${filterFields} />
    <${Card} padded=${false}>
      <${Loading} loaded=${loaded} lines=${10}>
        ${(/** @type {{ entries: AuditRow[], next_cursor: string | null }} */ list) =>
          list.entries.length === 0
            ? html`<${EmptyState} title=${isFiltered ? 'No entry matches these filters' : 'The audit log is empty'} icon="audit">
                ${isFiltered ? 'Remove a filter, or choose a longer period.' : 'Changes and refusals appear here.'}
              <//>`
            : html`<${Table} caption="Audit log" columns=${columns} rows=${list.entries} rowKey=${(/** @type {AuditRow} */ { id }) => id} />
                <${Pager} cursor=${list.next_cursor} shown=${list.entries.length} />`}
      <//>
    <//>
  <//>`
}

/** @param {{ text: string, wanted: Record<string, string>, query: URLSearchParams }} props */
function Question({ text, wanted, query }) {
  const isCurrent = names.every((name) => (query.get(name) ?? undefined) === wanted[name])
  return html`<a class="button" href=${hrefOf('/console/audit', isCurrent ? {} : wanted)} aria-current=${isCurrent ? 'true' : undefined}>${text}</a>`
}

/**
 * The start of a day in the reader's zone.
 * @param {string | undefined} day
 */
function startOf(day) {
  const time = day === undefined ? Number.NaN : new Date(`${day}T00:00:00`).getTime()
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}

/** @param {Record<string, string | undefined>} filters */
function commandOf({ allowed, ...filters }) {
  const given = Object.entries(filters).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name} '${value}'`],
  )
  return ['npx parley audit', ...given, ...(allowed === 'false' ? ['--refused'] : [])].join(' ')
}

const filterFields = [
  { name: 'who', label: 'Who', placeholder: 'Client ID or account' },
  { name: 'action', label: 'Action', placeholder: 'registry.*' },
  { name: 'target', label: 'Target', placeholder: 'Agent, client, task' },
  {
    name: 'allowed',
    label: 'Result',
    kind: 'select',
    options: [
      ['true', 'Allowed'],
      ['false', 'Refused'],
    ],
  },
  { name: 'since', label: 'From', kind: 'day' },
  { name: 'until', label: 'Before', kind: 'day' },
]

const columns = [
  { title: 'When', kind: 'narrow', cell: (/** @type {AuditRow} */ { at }) => html`<${Time} at=${at} />` },
  {
    title: 'Who',
    kind: 'max',
    cell: (/** @type {AuditRow} */ { who }) =>
      html`<span class="truncate"><${Text} value=${who} none="unknown" max=${120} /></span>`,
  },
  {
    title: 'Action',
    kind: 'narrow',
    cell: (/** @type {AuditRow} */ { action }) => html`<code><${Text} value=${action} max=${80} /></code>`,
  },
  { title: 'Target', kind: 'fill', cell: TargetCell },
  {
    title: 'Result',
    kind: 'narrow',
    cell: (/** @type {AuditRow} */ { allowed }) =>
      html`<${Badge} tone=${allowed ? 'good' : 'bad'} icon=${allowed ? 'check' : 'slash'}>${allowed ? 'Allowed' : 'Refused'}<//>`,
  },
  {
    title: 'Address',
    kind: 'narrow',
    wideOnly: true,
    cell: (/** @type {AuditRow} */ { address }) => html`<${Text} value=${address} max=${60} />`,
  },
  {
    title: 'Request',
    kind: 'narrow',
    wideOnly: true,
    cell: (/** @type {AuditRow} */ row) =>
      html`<${Id} value=${row.request_id} length=${8} copies=${true} label="request ID" />`,
  },
]

/** @param {AuditRow} row */
function TargetCell({ target, reason }) {
  return html`<div class="break"><${Text} value=${target} max=${300} />
    ${reason !== null && html`<div class="muted small"><${Text} value=${reason} max=${400} /></div>`}</div>`
}
