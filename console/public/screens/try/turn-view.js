import { AgentName } from '../../components/agent-name.js'
import { StateBadge } from '../../components/badge.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Notice } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { hrefOf } from '../../router.js'
import { Bid } from '../waiting/answer.js'
import { PaymentPanel } from '../waiting/payment-panel.js'
import { bidOf, hasEnded, isPaused, textOf } from './conversation.js'
import { Parts } from './parts.js'
import { automatic } from './requests.js'

/**
 * @typedef {import('./conversation.js').Turn} Turn
 * @typedef {{ turn: Turn, talk: import('./talk.js').Talk, isActive: boolean }} Props
 */

/** @param {Props} props */
export function TurnView({ turn, talk, isActive }) {
  const { messages, artifacts, progress } = turn
  const said = textOf(messages.find(({ role }) => role === 'user')?.parts ?? [])
  return html`<article class="turn">
    <h2 class="hidden-visually"><${Text} value=${said} none="Files" max=${80} /></h2>
    ${messages.map(
      ({ role, parts }, index) => html`<div key=${index} class=${role === 'user' ? 'said said-user' : 'said'}>
        <span class="hidden-visually">${role === 'user' ? 'You: ' : 'Agent: '}</span><${Parts} parts=${parts} isUser=${role === 'user'} />
      </div>`,
    )}
    ${artifacts.map(
      (artifact) => html`<div key=${artifact.artifact_id} class="said">
        ${artifact.name !== 'result' && html`<h3 class="muted"><${Text} value=${artifact.name} max=${120} /></h3>`}
        <${Parts} parts=${artifact.parts} isPartial=${artifact.partial === true} />
      </div>`,
    )}
    ${progress !== '' && html`<p class="muted small" role="status"><${Text} value=${progress} max=${1000} /></p>`}
    <${Next} turn=${turn} talk=${talk} />
    <${Line} turn=${turn} talk=${talk} isActive=${isActive} />
  </article>`
}

/**
 * The next step of the reader: pay, answer an offer, try again.
 * @param {{ turn: Turn, talk: import('./talk.js').Talk }} props
 */
function Next({ turn, talk }) {
  const { key, agent, taskId, state, unpaid, error } = turn
  const isPayment = unpaid || state === 'payment-required'
  const bid = bidOf(turn)
  return html`
    ${error !== '' && !unpaid && html`<${Notice} tone="bad" actions=${html`<${Again} turn=${turn} talk=${talk} />`}><span role="alert"><${Text} value=${error} max=${1000} /></span><//>`}
    ${unpaid && html`<${Notice} tone="warn">The agent <${Text} value=${agent} none="" /> requires a payment for this message. It is sent when you have paid.<//>`}
    ${isPayment && agent !== undefined && html`<${PaymentPanel} agent=${agent} taskId=${taskId} onPaid=${(/** @type {string} */ session) => talk.pay(key, session)} />`}
    ${bid !== undefined && html`<${Bid} running=${false} send=${(/** @type {import('./conversation.js').Part[]} */ parts) => talk.reply(key, parts)} />`}
    ${state === 'auth-required' && html`<p class="muted small">Complete the sign-in that the agent describes, then send any message to continue.</p>`}
  `
}

/** @param {{ turn: Turn, talk: import('./talk.js').Talk }} props */
function Again({ turn: { key, state, taskId }, talk }) {
  if (state === 'not sent')
    return html`<button type="button" class="button" onClick=${() => talk.repeat(key)}>Send again</button>`
  if (taskId === undefined || hasEnded(state)) return null
  return html`<button type="button" class="button" onClick=${() => talk.follow(key)}>Reconnect</button>`
}

/** @param {Turn} turn */
const whyOf = ({ decisionId, taskId }) =>
  decisionId === undefined
    ? hrefOf('/console/decisions', { task: taskId })
    : `/console/decisions/${encodeURIComponent(decisionId)}`

/**
 * The agent, the decision, the state and the task.
 * @param {Props} props
 */
function Line({ turn, talk, isActive }) {
  const { agent, decisionId, taskId, state, key } = turn
  const isOpen = taskId !== undefined && !hasEnded(state)
  const cancel = () =>
    confirm({
      title: 'Cancel this task?',
      body: html`<p>The agent stops, and the task ends without a result.</p>`,
      action: 'Cancel the task',
      danger: true,
      run: () => talk.cancel(key),
    })
  return html`<div class="turn-line row small muted">
    ${state === 'sending' || state === 'not sent' ? html`<span role="status">${state === 'sending' ? 'Sending …' : 'Not sent'}</span>` : html`<${StateBadge} state=${state} />`}
    ${agent !== undefined && html`<span>${decisionId === undefined ? '' : 'chosen: '}<${AgentName} slug=${agent} /></span>`}
    ${(decisionId !== undefined || talk.agent === automatic) && agent !== undefined && html`<a href=${whyOf(turn)}>Why this agent?</a>`}
    ${taskId !== undefined && html`<a href=${hrefOf(`/console/tasks/${taskId}`, { agent })}>Task</a>`}
    ${isOpen && (isActive || isPaused(state)) && html`<button type="button" class="button tiny" onClick=${cancel}>Cancel …</button>`}
  </div>`
}
