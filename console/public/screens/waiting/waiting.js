import { AgentName } from '../../components/agent-name.js'
import { StateBadge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading, Unread } from '../../components/states.js'
import { Pager } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf, route } from '../../router.js'
import { isOperator, session } from '../../session.js'
import { Answer } from './answer.js'

/**
 * @typedef {import('../../../types/answers.js').Waiting} WaitingList
 * @typedef {WaitingList['tasks'][number]} WaitingTask
 * @typedef {WaitingList['admissions'][number]} WaitingAdmission
 */

/** Every pause, payment and admission that a person has to decide. */
export default function Waiting() {
  const cursor = route.value.query.get('cursor') ?? undefined
  const loaded = useApi('/operator/waiting', { cursor, limit: 50 })
  useLiveReload(['task', 'agent', 'waiting', 'payment'], loaded.reload, 2000)
  return html`<${Page} title="Waiting for a person" lead="Questions, payments and admissions that agents cannot decide." command="npx parley waiting">
    <${Loading} loaded=${loaded} lines=${8}>
      ${(/** @type {WaitingList} */ list) => html`<${List} list=${list} reload=${loaded.reload} />`}
    <//>
  <//>`
}

/** @param {{ list: WaitingList, reload: () => void }} props */
function List({ list: { tasks, admissions, next_cursor: cursor, unread }, reload }) {
  const isEmpty = tasks.length === 0 && admissions.length === 0
  return html`
    <${Unread} unread=${unread} />
    ${isEmpty && html`<${Card}><${EmptyState} title="Nothing waits for you" icon="check">Pauses of tasks, payments and new agents appear here.<//><//>`}
    ${
      admissions.length > 0 &&
      html`<section class="stack-2" aria-labelledby="admissions-title">
      <h2 id="admissions-title">Admissions <span class="count">${admissions.length}</span></h2>
      <ul class="plain-list stack-2">${admissions.map((one) => html`<li key=${one.agent}><${Application} one=${one} /></li>`)}</ul>
    </section>`
    }
    ${
      tasks.length > 0 &&
      html`<section class="stack-2" aria-labelledby="tasks-title">
      <h2 id="tasks-title">Tasks <span class="count">${tasks.length}${cursor ? '+' : ''}</span></h2>
      <ul class="plain-list stack-2">${tasks.map((task) => html`<li key=${`${task.agent} ${task.task_id}`}><${Pause} task=${task} reload=${reload} /></li>`)}</ul>
    </section>`
    }
    ${(cursor !== null || route.value.query.has('cursor')) && html`<${Pager} cursor=${cursor} shown=${tasks.length} noun="tasks" />`}
  `
}

/** @param {{ one: WaitingAdmission }} props */
function Application({ one: { agent, name, registered_at: at, reason } }) {
  return html`<article class="card waiting">
    <div class="waiting-head"><${StateBadge} state="applied" /><strong class="break"><${Text} value=${name} max=${120} /></strong><code class="muted">${agent}</code>
      <span class="end muted small">since <${Time} at=${at} /></span></div>
    <p class="break"><${Text} value=${reason} max=${500} /></p>
    ${isOperator.value && html`<div class="row"><a class="button primary" href=${`/console/agents/${encodeURIComponent(agent)}`}>Review and admit</a></div>`}
  </article>`
}

/** @param {{ task: WaitingTask, reload: () => void }} props */
function Pause({ task, reload }) {
  const { agent, task_id: id, state, since, expires_at: end, owner, text, question } = task
  const isOwn = session.value?.client_id === owner
  return html`<article class="card waiting">
    <div class="waiting-head"><${StateBadge} state=${state} /><strong><${AgentName} slug=${agent} /></strong>
      <a class="truncate" href=${hrefOf(`/console/tasks/${id}`, { agent })}><${Text} value=${text} none="Open the task" max=${120} /></a>
      <span class="end muted small">since <${Time} at=${since} />${end !== null && html`, ends <${Time} at=${end} />`}</span></div>
    ${question !== null && html`<blockquote class="question"><${Text} value=${question} max=${4000} /></blockquote>`}
    ${isOwn ? html`<${Answer} task=${task} done=${reload} />` : html`<p class="muted small">The answer comes from the caller <strong class="break"><${Text} value=${owner} max=${200} /></strong>. You can read the task, or cancel it there.</p>`}
  </article>`
}
