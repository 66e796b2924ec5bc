import { Badge, StateBadge } from '../../components/badge.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Pager, Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { route } from '../../router.js'

/**
 * @typedef {object} AgentSummary
 * @property {string} slug
 * @property {string} name
 * @property {string} description
 * @property {'starting' | 'ready' | 'unreachable'} status
 * @property {boolean} verified
 * @property {boolean} admitted
 * @property {'supervised' | 'registered'} origin
 * @property {boolean} external
 * @property {boolean} quarantined
 * @property {string | null} last_seen
 * @property {{ id: string, name: string, tags: string[] }[]} skills
 * @property {{ dialect: string }} [relay]
 */

const pageSize = 50

/** All agents of the registry. The gateway searches and pages, so the list works with 100,000 agents. */
export default function Agents() {
  const { query } = route.value
  const names = ['q', 'skill', 'tag', 'status', 'cursor']
  const filters = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]))
  const loaded = useApi('/registry/agents', { ...filters, limit: pageSize })
  useLiveReload(['agent'], loaded.reload, 5000)
  const isFiltered = names.slice(0, 4).some((name) => query.has(name))
  return html`<${Page} title="Agents" lead="Who can receive work: skills, health and admission." command=${commandOf(query)}>
    <${Filters} filters=${[
      { name: 'q', label: 'Search', placeholder: 'Name or description' },
      { name: 'skill', label: 'Skill', placeholder: 'ID or name' },
      { name: 'tag', label: 'Tag', placeholder: 'csv' },
      {
        name: 'status',
        label: 'Status',
        kind: 'select',
        options: [
          ['ready', 'Ready'],
          ['starting', 'Starting'],
          ['unreachable', 'Unreachable'],
          ['left', 'Left'],
        ],
      },
    ]} />
    <${Card} padded=${false}>
      <${Loading} loaded=${loaded} lines=${8}>
        ${(/** @type {{ agents: AgentSummary[], total: number, next_cursor: string | null }} */ list) =>
          list.agents.length === 0
            ? html`<${NoAgents} isFiltered=${isFiltered} />`
            : html`<${AgentTable} list=${list} />`}
      <//>
    <//>
  <//>`
}

/** @param {URLSearchParams} query */
function commandOf(query) {
  const names = { q: 'query', skill: 'skill', tag: 'tag', status: 'status' }
  const options = Object.entries(names).flatMap(([name, option]) => {
    const value = query.get(name)
    return value === null ? [] : [`--${option} ${JSON.stringify(value)}`]
  })
  return ['npx parley agents', ...options].join(' ')
}

/** @param {{ isFiltered: boolean }} props */
function NoAgents({ isFiltered }) {
  if (isFiltered)
    return html`<${EmptyState} title="No agent matches these filters" icon="search">Remove a filter, or search for fewer words.<//>`
  return html`<${EmptyState} title="There are no agents yet" icon="agents">
    Create one with <code>npx parley new greeter</code>, or register one that runs elsewhere with <code>npx parley register https://…</code>.
  <//>`
}

/** @param {{ list: { agents: AgentSummary[], total: number, next_cursor: string | null } }} props */
function AgentTable({ list: { agents, total, next_cursor: cursor } }) {
  const columns = [
    { title: 'Agent', kind: 'fill', label: false, cell: AgentCell },
    {
      title: 'Status',
      kind: 'narrow',
      cell: (/** @type {AgentSummary} */ agent) => html`<${Standing} agent=${agent} />`,
    },
    { title: 'Kind', kind: 'narrow', cell: kindOf },
    { title: 'Skills', kind: 'max', wideOnly: true, cell: skillsOf },
    {
      title: 'Key',
      kind: 'narrow',
      cell: (/** @type {AgentSummary} */ { verified }) =>
        verified ? html`<span class="good">Proven</span>` : html`<span class="muted">Not proven</span>`,
    },
    {
      title: 'Last seen',
      kind: 'narrow',
      cell: (/** @type {AgentSummary} */ agent) => html`<${Time} at=${agent.last_seen} none="never" />`,
    },
  ]
  const rowKey = (/** @type {AgentSummary} */ { slug }) => slug
  return html`
    <${Table} caption="Agents" columns=${columns} rows=${agents} rowKey=${rowKey} linked=${true} />
    <${Pager} cursor=${cursor} shown=${agents.length} noun=${`of ${total.toLocaleString('en')} agents`} order="name" />
  `
}

/** @param {AgentSummary} agent */
function AgentCell({ slug, name, description }) {
  return html`<div class="truncate">
    <a class="row-link" href=${`/console/agents/${encodeURIComponent(slug)}`}>${slug}</a>
    ${name !== slug && html`<span class="muted"> <${Text} value=${name} max=${80} /></span>`}
    <span class="muted small truncate"><${Text} value=${description} max=${200} /></span>
  </div>`
}

/**
 * The states of an agent, worst first.
 * @param {{ agent: Pick<AgentSummary, 'status' | 'quarantined' | 'admitted'> }} props
 */
export function Standing({ agent: { status, quarantined, admitted } }) {
  return html`<span class="row">
    ${quarantined && html`<${StateBadge} state="quarantined" />`}
    ${!admitted && html`<${StateBadge} state="applied" />`}
    ${!quarantined && html`<${StateBadge} state=${status} />`}
  </span>`
}

/** @param {AgentSummary} agent */
function kindOf({ origin, external, relay }) {
  if (relay !== undefined)
    return html`<${Badge} tone="violet">${relay.dialect === 'mcp' ? 'MCP server' : 'Foreign'}<//>`
  if (external) return html`<${Badge} tone="info">External<//>`
  return html`<${Badge}>${origin === 'supervised' ? 'Supervised' : 'Own'}<//>`
}

/** @param {AgentSummary} agent */
function skillsOf({ skills }) {
  const names = skills.map(({ name }) => name).join(', ')
  return html`<span class="truncate small muted"><${Text} value=${names} none="none" max=${120} /></span>`
}
