import { StateBadge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { Card } from '../../components/page.js'
import { EmptyState, Loading, Unread } from '../../components/states.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf } from '../../router.js'

/**
 * @typedef {import('../../../types/answers.js').TaskList} TaskList
 * @typedef {import('../../../types/answers.js').DecisionList} DecisionList
 */

/**
 * The newest tasks of an agent, and the newest decisions for it.
 * @param {{ slug: string }} props
 */
export function RecentWork({ slug }) {
  const tasks = useApi('/operator/tasks', { agent: slug, limit: 5 })
  const decisions = useApi('/operator/decisions', { agent: slug, limit: 5 })
  useLiveReload(['task'], tasks.reload, 5000)
  return html`<div class="columns">
    <${Card} title="Recent tasks" id="recent-tasks" actions=${html`<a href=${hrefOf('/console/tasks', { agent: slug })}>All tasks</a>`}>
      <${Loading} loaded=${tasks}>${(/** @type {TaskList} */ list) => html`<${Tasks} list=${list} />`}<//>
    <//>
    <${Card} title="Recent decisions" id="recent-decisions" actions=${html`<a href=${hrefOf('/console/decisions', { agent: slug })}>All decisions</a>`}>
      <${Loading} loaded=${decisions}>${(/** @type {DecisionList} */ list) => html`<${Decisions} list=${list} />`}<//>
    <//>
  </div>`
}

/** @param {{ list: TaskList }} props */
function Tasks({ list: { tasks, unread } }) {
  if (tasks.length === 0 && unread.length === 0)
    return html`<${EmptyState} title="No tasks yet" icon="tasks">Try the agent to create the first one.<//>`
  return html`<div class="stack-2">
    <${Unread} unread=${unread} />
    ${tasks.map(
      ({ task_id: id, agent, state, text, created_at: at }) => html`<div key=${id} class="row-apart">
        <a class="truncate grow" href=${hrefOf(`/console/tasks/${id}`, { agent })}>${text === null ? html`<${Id} value=${id} />` : html`<${Text} value=${text} max=${80} />`}</a>
        <span class="row"><${StateBadge} state=${state} /><span class="muted small"><${Time} at=${at} /></span></span>
      </div>`,
    )}
  </div>`
}

/** @param {{ list: DecisionList }} props */
function Decisions({ list: { decisions } }) {
  if (decisions.length === 0)
    return html`<${EmptyState} title="No decisions yet" icon="decisions">Messages that name no agent are decided by the gateway.<//>`
  return html`<div class="stack-2">
    ${decisions.map(
      ({ id, score, runner_up: second, at, text }) => html`<div key=${id} class="row-apart">
        <a class="truncate grow" href=${`/console/decisions/${encodeURIComponent(id)}`}>${text === null ? html`<${Id} value=${id} />` : html`<${Text} value=${text} max=${80} />`}</a>
        <span class="muted small nowrap">${score === null ? '–' : score.toFixed(2)}${second && ` over ${second.agent} ${second.score.toFixed(2)}`} · <${Time} at=${at} /></span>
      </div>`,
    )}
  </div>`
}
