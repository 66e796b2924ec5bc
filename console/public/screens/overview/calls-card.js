import { useState } from 'preact/hooks'
import { html } from '../../components/html.js'
import { Card } from '../../components/page.js'
import { Table } from '../../components/table.js'
import { countText, Text } from '../../components/text.js'
import { Duration } from '../../components/time.js'
import { CallGraph } from './call-graph.js'
import { callers } from './graph-layout.js'

/** @typedef {import('../../../types/answers.js').Overview} Overview */

/**
 * The calls of the last minutes: as a graph, and as a table for small screens, screen readers and exact figures.
 *
 * @param {{ overview: Overview }} props
 */
export function CallsCard({ overview }) {
  const isNarrow = window.matchMedia('(max-width: 47.99rem)').matches
  const [view, setView] = useState(isNarrow ? 'table' : 'graph')
  const button = (/** @type {string} */ id, /** @type {string} */ text) =>
    html`<button type="button" class="button tiny" aria-pressed=${view === id ? 'true' : 'false'} onClick=${() => setView(id)}>${text}</button>`
  const actions = html`<span class="row" role="group" aria-label="View">${button('graph', 'Graph')}${button('table', 'Table')}</span>`
  const { calls, window_minutes: minutes, agents } = overview
  const title = `Calls in the last ${minutes} minutes`
  return html`<${Card} id="calls" title=${title} actions=${actions} padded=${view === 'graph'}>
    ${
      view === 'graph'
        ? html`<${CallGraph} calls=${calls} agents=${agents} title=${title} />
        <div class="hidden-visually"><p>The view “Table” lists the same calls.</p></div>`
        : html`<${Table} caption=${title} columns=${columns} rows=${[...calls].sort((a, b) => b.count - a.count).slice(0, 200)}
            rowKey=${(/** @type {Overview['calls'][number]} */ { from, to }) => `${from} ${to}`} />`
    }
  <//>`
}

/** @type {import('../../components/table.js').Column<Overview['calls'][number]>[]} */
const columns = [
  {
    title: 'From',
    kind: 'max',
    cell: ({ from }) =>
      html`<span class="truncate"><${Text} value=${from === callers ? 'Callers' : from} /></span>`,
  },
  {
    title: 'To',
    kind: 'fill',
    cell: ({ to }) => html`<span class="truncate"><${Text} value=${to} /></span>`,
  },
  { title: 'Calls', kind: 'number', cell: ({ count }) => countText(count) },
  {
    title: 'Errors',
    kind: 'number',
    cell: ({ errors }) =>
      html`<span class=${errors > 0 ? 'bad strong' : 'faint'}>${countText(errors)}</span>`,
  },
  { title: 'p50', kind: 'number', cell: ({ p50_ms: ms }) => html`<${Duration} ms=${ms} />` },
]
