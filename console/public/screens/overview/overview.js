import { useState } from 'preact/hooks'
import { Badge, lookOf, StateBadge } from '../../components/badge.js'
import { CopyButton } from '../../components/copy-button.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Bar, Card, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { countText, Text } from '../../components/text.js'
import { Duration, Time } from '../../components/time.js'
import { useLive, useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { isOperator } from '../../session.js'
import { CallsCard } from './calls-card.js'
import { FirstTask } from './first-task.js'

/** @typedef {import('../../../types/answers.js').Overview} Overview */

/** The agents and their load, the calls between them, and what needs a person. */
export default function OverviewScreen() {
  const loaded = useApi('/operator/overview')
  const { data, change, reload } = loaded
  // Loads are in the events; the counts of tasks and what needs attention are read again.
  useLive(['load', 'agent'], ({ type, data: news }) => {
    if (data === undefined || type === 'reset') return
    if (type === 'agent') change({ ...data, agents: withLoads(data.agents, [news]) })
    else change({ ...data, ...news, agents: withLoads(data.agents, news.agents ?? []) })
  })
  useLiveReload(['task', 'agent', 'delivery'], reload, 5000)
  return html`<${Page} title="Overview" command="npx parley overview">
    <${Loading} loaded=${loaded} lines=${8}>${(/** @type {Overview} */ overview) => html`<${Content} overview=${overview} />`}<//>
  <//>`
}

/**
 * @param {Overview['agents']} agents
 * @param {Overview['agents']} changed
 */
function withLoads(agents, changed) {
  const bySlug = new Map(changed.map((one) => [one.agent, one]))
  return agents.map((agent) => bySlug.get(agent.agent) ?? agent)
}

/** @param {{ overview: Overview }} props */
function Content({ overview }) {
  const isQuiet = overview.calls.length === 0 && Object.values(overview.tasks).every((count) => count === 0)
  return html`
    <${TaskFigures} tasks=${overview.tasks} />
    ${isQuiet && html`<${FirstTask} agents=${overview.agents} />`}
    ${overview.attention.length > 0 || !isQuiet ? html`<${AttentionCard} attention=${overview.attention} />` : null}
    ${overview.calls.length > 0 && html`<${CallsCard} overview=${overview} />`}
    <${AgentsCard} overview=${overview} />
  `
}

/** The states of unfinished tasks that are always shown, in the order of a task's life. */
const shownStates = ['submitted', 'working', 'waiting']

/** @param {{ tasks: Record<string, number> }} props */
function TaskFigures({ tasks }) {
  const others = Object.keys(tasks).filter((state) => !shownStates.includes(state) && tasks[state])
  return html`<section aria-label="Unfinished tasks by state" class="figures">
    ${[...shownStates, ...others].map((state) => {
      const count = tasks[state] ?? 0
      return html`<a key=${state} href=${state === 'waiting' ? '/console/tasks?waiting=true' : `/console/tasks?state=${encodeURIComponent(state)}`}>
        <span class="value">${countText(count)}</span>
        <span class="label row"><span class=${count > 0 ? lookOf(state).tone : 'faint'}><${Icon} name=${lookOf(state).icon} /></span>${lookOf(state).label}</span>
      </a>`
    })}
  </section>`
}

/** @param {{ attention: Overview['attention'] }} props */
function AttentionCard({ attention }) {
  const [showsAll, setShowsAll] = useState(false)
  const problems = attention.filter(({ kind }) => kind !== 'agent_not_configured').length
  const title = html`Needs attention ${problems > 0 && html`<span class="count">${problems}</span>`}`
  if (attention.length === 0)
    return html`<${Card} id="attention" title=${title}><p class="row"><span class="good"><${Icon} name="check" /></span>Nothing needs you now.</p><//>`
  return html`<${Card} id="attention" title=${title} padded=${false}>
    <ul class="attention">
      ${(showsAll ? attention : attention.slice(0, shownMax)).map(
        (one, index) => html`<li key=${`${one.kind} ${one.agent} ${index}`}>
          <span class=${toneOf(one.kind)}><${Icon} name=${one.kind === 'agent_not_configured' ? 'question' : 'alert'} /></span>
          <div class="grow">
            <a class="attention-text" href=${safePath(one.path)}><${Text} value=${one.text} max=${400} /></a>
            <span class="command"><code tabindex="0"><${Text} value=${one.command} max=${200} /></code><${CopyButton} text=${one.command} label=${`Copy the command ${one.command}`} /></span>
          </div>
          ${one.since !== null && html`<span class="faint small"><${Time} at=${one.since} /></span>`}
        </li>`,
      )}
    </ul>
    ${
      attention.length > shownMax &&
      !showsAll &&
      html`<div class="pager"><button type="button" class="button tiny" onClick=${() => setShowsAll(true)}>Show all ${attention.length}</button></div>`
    }
  <//>`
}

/** The number of entries that are listed at first. */
const shownMax = 6

/** @param {string} kind */
function toneOf(kind) {
  if (kind === 'agent_not_configured') return 'muted'
  return /unreachable|quarantined|failing|orphaned/.test(kind) ? 'bad' : 'warn'
}

/**
 * A path of the console from an answer.
 *
 * @param {string} path
 */
function safePath(path) {
  return /^\/console(\/|\?|$)/.test(path) ? path : '/console'
}

/** The number of agents that are listed. */
const agentsMax = 25

/** @param {{ overview: Overview }} props */
function AgentsCard({ overview }) {
  const { agents, agents_total: total } = overview
  const hidden = total - Math.min(agentsMax, agents.length)
  const title = html`Agents <span class="count">${countText(total)}</span>`
  const footer =
    hidden > 0 &&
    html`The ${agentsMax} agents with the most problems and load are listed. <a href="/console/agents">Search all ${countText(total)}</a>`
  const actions = isOperator.value && html`<a class="button" href="/console/agents">All agents</a>`
  if (agents.length === 0)
    return html`<${Card} id="agents" title=${title}>
      <${EmptyState} title="No agents are registered yet" icon="agents">
        Create one with <code>npx parley new my-agent</code>, or register a running one with <code>npx parley register</code>.
      <//>
    <//>`
  return html`<${Card} id="agents" title=${title} actions=${actions} footer=${footer} padded=${false}>
    <${Table} caption="Agents" columns=${agentColumns(agents)} rows=${agents.slice(0, agentsMax)} rowKey=${(/** @type {any} */ { agent }) => agent} linked=${true} />
  <//>`
}

/**
 * @param {Overview['agents']} agents
 * @returns {import('../../components/table.js').Column<import('../../../types/answers.js').AgentLoad>[]}
 */
function agentColumns(agents) {
  const longest = Math.max(1, ...agents.map((agent) => agent.queue_depth ?? 0))
  return [
    {
      title: 'Agent',
      kind: 'fill',
      label: false,
      cell: ({ agent, name }) =>
        html`<a class="row-link truncate" href=${`/console/agents/${encodeURIComponent(agent)}`}><${Text} value=${name} max=${120} /></a>`,
    },
    { title: 'Health', kind: 'narrow', cell: (agent) => html`<${Health} agent=${agent} />` },
    {
      title: 'Queue',
      kind: 'number',
      cell: ({ queue_depth: depth }) =>
        html`<span class="queue-cell"><${Bar} share=${(depth ?? 0) / longest} tone=${(depth ?? 0) >= 10 ? 'warn' : 'info'} />${depth === null ? html`<span class="faint">–</span>` : countText(depth)}</span>`,
    },
    {
      title: 'Active',
      kind: 'number',
      cell: ({ active_tasks: active }) => active ?? html`<span class="faint">–</span>`,
    },
    { title: 'p50', kind: 'number', cell: ({ latency_p50_ms: ms }) => html`<${Duration} ms=${ms} />` },
    { title: 'p95', kind: 'number', cell: ({ latency_p95_ms: ms }) => html`<${Duration} ms=${ms} />` },
    {
      title: 'Success',
      kind: 'number',
      cell: ({ success_share: share }) =>
        share === null
          ? html`<span class="faint">–</span>`
          : html`<span class=${share < 0.9 ? 'bad' : ''}>${(share * 100).toFixed(share === 1 ? 0 : 1)} %</span>`,
    },
  ]
}

/** @param {{ agent: import('../../../types/answers.js').AgentLoad }} props */
function Health({ agent }) {
  return html`<span class="row nowrap-row">
    <${StateBadge} state=${agent.quarantined ? 'quarantined' : agent.admitted ? agent.status : 'applied'} />
    ${agent.external && html`<${Badge}>external<//>`}
  </span>`
}
