import { lookOf, StateBadge } from '../../components/badge.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Pager, Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useApi } from '../../load.js'
import { hrefOf, route } from '../../router.js'
import { isOperator } from '../../session.js'
import { ScoreBar } from './score-bar.js'

/**
 * @typedef {import('../../../types/answers.js').DecisionRow} DecisionRow
 * @typedef {import('../../../types/answers.js').DecisionList} DecisionList
 */

/** The decisions of the gateway, newest first. */
export default function DecisionsScreen() {
  const { query } = route.value
  const names = ['q', 'agent', 'owner', 'outcome', 'task', 'cursor']
  const loaded = useApi(
    '/operator/decisions',
    Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined])),
  )
  return html`<${Page} title="Decisions" command="npx parley decisions"
    lead="For each message without a named agent, the gateway compares the agents. Each decision is recorded with its reasons.">
    <${Filters} filters=${filters()} />
    <${Card} padded=${false}>
      <${Loading} loaded=${loaded} lines=${10}>${(/** @type {DecisionList} */ list) => html`<${Decisions} list=${list} />`}<//>
    <//>
  <//>`
}

/** @returns {import('../../components/filters.js').Filter[]} */
function filters() {
  const outcomes = ['accepted', 'rejected', 'none', 'answered'].map(
    (outcome) => /** @type {[string, string]} */ ([outcome, lookOf(outcome).label]),
  )
  return [
    { name: 'q', label: 'Search', placeholder: 'words or reasons' },
    { name: 'outcome', label: 'Outcome', kind: 'select', options: outcomes },
    { name: 'agent', label: 'Chosen agent', placeholder: 'any agent' },
    ...(isOperator.value ? [{ name: 'owner', label: 'Owner', placeholder: 'any client id' }] : []),
  ]
}

/** @param {{ list: DecisionList }} props */
function Decisions({ list }) {
  const { query } = route.value
  if (list.decisions.length === 0) {
    const isFiltered = [...query.keys()].length > 0
    return html`<${EmptyState} title=${isFiltered ? 'No decision matches' : 'No decisions yet'} icon="decisions"
      action=${html`<a class="button" href=${isFiltered ? '/console/decisions' : '/console/try'}>${isFiltered ? 'Show all decisions' : 'Send a message to auto'}</a>`}>
      ${isFiltered ? 'Remove a filter. Decisions are kept for some days only.' : 'A decision is recorded for each message that is sent without naming an agent.'}
    <//>`
  }
  return html`
    <${Table} caption="Decisions" columns=${columns} rows=${list.decisions} rowKey=${(/** @type {DecisionRow} */ { id }) => id} linked=${true} />
    <${Pager} cursor=${list.next_cursor} shown=${list.decisions.length} noun="decisions" />
  `
}

/** @type {import('../../components/table.js').Column<DecisionRow>[]} */
const columns = [
  {
    title: 'Outcome',
    kind: 'narrow',
    label: false,
    cell: ({ outcome }) => html`<${StateBadge} state=${outcome} />`,
  },
  {
    title: 'Request',
    kind: 'fill',
    label: false,
    cell: ({ id, text, method }) =>
      html`<a class="row-link truncate" href=${`/console/decisions/${encodeURIComponent(id)}`}>${text === null ? html`<span class="mono">${id.slice(0, 12)}</span> <span class="muted">${method}</span>` : html`<${Text} value=${text} max=${300} />`}</a>`,
  },
  {
    title: 'Chosen',
    kind: 'max',
    cell: ({ chosen }) =>
      html`<span class="truncate"><${Text} value=${chosen} none="none" max=${80} /></span>`,
  },
  { title: 'Score', kind: 'narrow', cell: ({ score }) => html`<${ScoreBar} score=${score} />` },
  {
    title: 'Ahead of',
    kind: 'max',
    wideOnly: true,
    cell: ({ runner_up: second }) =>
      second === null
        ? ''
        : html`<span class="truncate muted"><${Text} value=${second.agent} max=${80} /> ${second.score.toFixed(2)}</span>`,
  },
  {
    title: 'Agents',
    kind: 'number',
    cell: ({ candidates_total: candidates, excluded_total: excluded }) =>
      html`<span title=${`${candidates} candidates, ${excluded} excluded`}>${candidates}${excluded > 0 && html`<span class="faint"> + ${excluded}</span>`}</span>`,
  },
  {
    title: 'Verdicts',
    kind: 'narrow',
    cell: ({ verdicts }) =>
      verdicts === 0
        ? ''
        : html`<span class="row"><${Icon} name="chat" label="Verdicts of people" />${verdicts}</span>`,
  },
  { title: 'When', kind: 'narrow', cell: ({ at }) => html`<${Time} at=${at} />` },
]

/**
 * The address of the decisions about a task.
 *
 * @param {string} task
 */
export function decisionsOf(task) {
  return hrefOf('/console/decisions', { task })
}
