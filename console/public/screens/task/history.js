import { StateBadge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { EmptyState } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { Id, Text } from '../../components/text.js'
import { clockText, durationText } from '../../components/time.js'
import { PartView } from './artifacts.js'

/**
 * @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail
 * @typedef {import('../../../types/answers.js').TaskEvent} TaskEvent
 * @typedef {{ role?: string, parts?: import('./artifacts.js').Part[] }} Message
 */

/**
 * The messages of a task in order.
 *
 * @param {{ task: TaskDetail }} props
 */
export function Messages({ task }) {
  const messages = messagesOf(task)
  if (messages.length === 0) {
    const why =
      task.task === null ? 'Texts of other owners are hidden in this deployment.' : 'This task has none.'
    return html`<${EmptyState} title="No messages to show" icon="chat">${why}<//>`
  }
  return html`<ol class="messages">
    ${messages.map(
      (message, index) => html`<li key=${index} data-role=${message.role === 'user' ? 'user' : 'agent'}>
        <span class="small faint">${message.role === 'user' || message.role === 'system' ? 'Caller' : html`<${Text} value=${task.agent} max=${60} />`}</span>
        <div class="message stack-2">${(message.parts ?? []).map((part, at) => html`<${PartView} key=${at} part=${part} />`)}</div>
      </li>`,
    )}
  </ol>`
}

/**
 * @param {TaskDetail} task
 * @returns {Message[]}
 */
export function messagesOf(task) {
  const history = task.task?.['history']
  const messages = Array.isArray(history)
    ? history.filter((one) => typeof one === 'object' && one !== null)
    : []
  const status = /** @type {any} */ (task.task?.['status'])?.message
  const isNew =
    typeof status === 'object' &&
    status !== null &&
    !messages.some((one) => one.message_id !== undefined && one.message_id === status.message_id)
  return isNew ? [...messages, status] : messages
}

/**
 * The numbered events of a task.
 *
 * @param {{ task: TaskDetail }} props
 */
export function Events({ task }) {
  if (task.events.length === 0)
    return html`<${EmptyState} title="No events yet" icon="tasks">The first one follows when an agent starts the task.<//>`
  const start = Date.parse(task.created_at)
  return html`<${Table} caption="Events" columns=${eventColumns(start)} rows=${task.events} rowKey=${(/** @type {TaskEvent} */ { sequence }) => String(sequence)} />`
}

/**
 * @param {number} start
 * @returns {import('../../components/table.js').Column<TaskEvent>[]}
 */
function eventColumns(start) {
  return [
    { title: 'Number', kind: 'number', cell: ({ sequence }) => sequence },
    {
      title: 'Time',
      kind: 'narrow',
      cell: ({ at }) =>
        html`<time class="nowrap" datetime=${at}>${clockText(Date.parse(at), { ms: true })}</time>`,
    },
    { title: 'After', kind: 'number', cell: ({ at }) => durationText(Date.parse(at) - start) },
    {
      title: 'Event',
      kind: 'narrow',
      cell: ({ kind, state }) =>
        kind === 'artifact-update'
          ? html`<span class="badge" data-tone="info">Artifact</span>`
          : html`<${StateBadge} state=${state ?? 'working'} />`,
    },
    {
      title: 'Text',
      kind: 'fill',
      cell: (event) =>
        event.text
          ? html`<span class="clamp-2"><${Text} value=${event.text} max=${1000} /></span>`
          : event.artifact_id
            ? html`<${Id} value=${event.artifact_id} />`
            : '',
    },
  ]
}
