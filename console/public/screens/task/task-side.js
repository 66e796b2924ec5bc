import { isEnded, lookOf, StateBadge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { Card, Facts } from '../../components/page.js'
import { Id, Text } from '../../components/text.js'
import { Duration, Time } from '../../components/time.js'
import { hrefOf } from '../../router.js'

/** @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail */

/**
 * The facts about a task, and where they lead.
 *
 * @param {{ task: TaskDetail }} props
 */
export function TaskSide({ task }) {
  return html`<div class="stack">
    <${Card} id="facts" title="Facts"><${TaskFacts} task=${task} /><//>
    ${(task.parent !== null || task.children.length > 0 || task.references.length > 0) && html`<${Card} id="related" title="Related tasks"><${Related} task=${task} /><//>`}
    ${task.webhooks.length > 0 && html`<${Card} id="webhooks" title="Webhooks"><${Webhooks} task=${task} /><//>`}
    ${task.payments.length > 0 && html`<${Card} id="payments" title="Payments"><${Payments} task=${task} /><//>`}
  </div>`
}

/** @param {{ task: TaskDetail }} props */
function TaskFacts({ task }) {
  const waited = task.started_at === null ? null : Date.parse(task.started_at) - Date.parse(task.created_at)
  const usage = task.usage
  return html`<${Facts} facts=${[
    [
      'Agent',
      html`<a href=${`/console/agents/${encodeURIComponent(task.agent)}`}><${Text} value=${task.agent} max=${80} /></a>`,
    ],
    [
      'Chosen',
      task.decision_id &&
        html`<a href=${`/console/decisions/${encodeURIComponent(task.decision_id)}`}>Why this agent?</a>`,
    ],
    ['Owner', html`<${Id} value=${task.owner} length=${22} copies=${true} label="owner" />`],
    [
      'For',
      task.delegation &&
        html`<${Text} value=${task.delegation.subject} max=${120} />, through <${Text} value=${task.delegation.agents.join(' → ')} max=${200} />`,
    ],
    ['Skill', task.skill && html`<${Text} value=${task.skill} max=${80} />`],
    ['Created', html`<${Time} at=${task.created_at} />`],
    [
      isEnded(task.state) ? lookOf(task.state).label : `${lookOf(task.state).label} since`,
      html`<${Time} at=${task.since} />`,
    ],
    ['Waited', waited !== null && html`<${Duration} ms=${waited} /> in the queue`],
    ['Worked', html`<${Duration} ms=${task.worked_ms} />`],
    ['Starts', task.starts > 1 && html`<span class="warn">${task.starts}</span>`],
    ['Deadline', task.deadline_at && html`<${Time} at=${task.deadline_at} />`],
    [
      'Tokens',
      usage &&
        `${usage.input_tokens.toLocaleString('en')} in, ${usage.output_tokens.toLocaleString('en')} out`,
    ],
    [
      'Models',
      usage && usage.models.length > 0 && html`<${Text} value=${usage.models.join(', ')} max=${200} />`,
    ],
    [
      'Rating',
      task.feedback &&
        html`${task.feedback.rating ?? ''} <${Text} value=${task.feedback.text} max=${300} none="" />`,
    ],
    ['Task', html`<${Id} value=${task.task_id} copies=${true} label="task id" />`],
    [
      'Context',
      html`<${Id} value=${task.context_id} copies=${true} href=${hrefOf('/console/tasks', { context: task.context_id })} label="context id" />`,
    ],
    ['Trace', task.trace_id && html`<${Id} value=${task.trace_id} copies=${true} label="trace id" />`],
  ].map(([name, value]) => [name, value === false ? null : value])} />`
}

/** @param {{ task: TaskDetail }} props */
function Related({ task }) {
  const line = (
    /** @type {string} */ role,
    /** @type {string | undefined} */ id,
    /** @type {string | undefined} */ agent,
  ) => html`<li class="row" key=${`${role} ${agent} ${id}`}>
    <span class="faint small">${role}</span>
    ${id === undefined ? html`<${Text} value=${agent} max=${60} />` : html`<a href=${hrefOf(`/console/tasks/${encodeURIComponent(id)}`, { agent })}><${Text} value=${agent ?? id.slice(0, 13)} max=${60} /></a>`}
  </li>`
  return html`<ul class="plain-list">
    ${task.parent !== null && line('Created by', task.parent.task_id, task.parent.agent)}
    ${task.children.slice(0, 50).map(({ agent, task_id: id }) => line('Created', id, agent))}
    ${task.references.slice(0, 50).map((id) => line('Uses the result of', id, undefined))}
  </ul>`
}

/** @param {{ task: TaskDetail }} props */
function Webhooks({ task }) {
  return html`<ul class="plain-list">
    ${task.webhooks.map(
      (webhook) => html`<li key=${webhook.config_id} class="stack-2">
        <span class="row"><${StateBadge} state=${webhook.state} /><span class="faint small">${webhook.delivered} of ${webhook.events} events, ${webhook.attempts} attempts</span></span>
        <a class="break small" href=${`/console/webhooks/${[task.agent, task.task_id, webhook.config_id].map(encodeURIComponent).join('/')}`}><${Text} value=${webhook.url} max=${200} /></a>
        ${webhook.last_error !== null && html`<span class="small bad"><${Text} value=${webhook.last_error} max=${300} /></span>`}
      </li>`,
    )}
  </ul>`
}

/** @param {{ task: TaskDetail }} props */
function Payments({ task }) {
  return html`<ul class="plain-list">
    ${task.payments.map(
      (payment) => html`<li key=${payment.payment_id} class="stack-2">
        <span class="row"><${StateBadge} state=${payment.state} tone=${payment.state === 'settled' ? 'good' : undefined} />
        <strong><${Text} value=${`${payment.amount} ${payment.asset_name}`} max=${60} /></strong>${payment.sandbox && html`<span class="tag">sandbox</span>`}</span>
        <span class="faint small"><${Time} at=${payment.completed_at ?? payment.created_at} /> on <${Text} value=${payment.network} max=${60} /></span>
      </li>`,
    )}
  </ul>`
}
