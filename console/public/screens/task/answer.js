import { useState } from 'preact/hooks'
import { rpc } from '../../api.js'
import { isPaused, lookOf } from '../../components/badge.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { ErrorState, Notice } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { toast } from '../../components/toast.js'
import { useAction } from '../../load.js'
import { session } from '../../session.js'

/** @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail */

/**
 * The question of a paused task, and the form for the answer.
 *
 * @param {{ task: TaskDetail, reload: () => void }} props
 */
export function Pause({ task, reload }) {
  if (!isPaused(task.state)) return null
  const isOwn = task.owner === session.value?.client_id
  return html`<section class="card pause" aria-labelledby="pause-title">
    <div class="card-body stack">
      <div class="stack-2">
        <h2 id="pause-title" class="row"><span class=${lookOf(task.state).tone}><${Icon} name=${lookOf(task.state).icon} /></span>${questions[task.state] ?? 'This task waits'}</h2>
        <p class="question"><${Text} value=${task.reason} none="The agent gave no reason." /></p>
      </div>
      ${
        task.state === 'payment-required'
          ? html`<div class="row"><a class="button primary" href="/console/waiting">Pay or decline</a></div>`
          : isOwn
            ? html`<${AnswerForm} task=${task} reload=${reload} />`
            : html`<${Notice}>Only its owner can answer: <span class="break"><${Text} value=${task.owner} max=${200} /></span>. You can cancel the task.<//>`
      }
    </div>
  </section>`
}

const questions = /** @type {Record<string, string>} */ ({
  'input-required': 'The agent has a question',
  'auth-required': 'The agent needs an authorization',
  'payment-required': 'The agent requests a payment',
  'negotiation-bid-submitted': 'The agent has made an offer',
})

/** @param {{ task: TaskDetail, reload: () => void }} props */
function AnswerForm({ task, reload }) {
  const [text, setText] = useState('')
  const { run, running, error } = useAction(async () => {
    const message = {
      role: 'user',
      kind: 'message',
      messageId: crypto.randomUUID(),
      taskId: task.task_id,
      contextId: task.context_id,
      parts: [{ kind: 'text', text }],
    }
    await rpc('message/send', { message }, { agent: task.agent })
    setText('')
    toast('The answer was sent. The task continues.')
    reload()
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    if (text.trim() !== '') void run()
  }
  return html`<form class="stack" onSubmit=${submit}>
    <${Field} label="Your answer">
      ${(
        /** @type {any} */ props,
      ) => html`<textarea ...${props} rows="3" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && submit(event)}></textarea>`}
    <//>
    ${error && html`<${ErrorState} error=${error} compact=${true} />`}
    <div class="row">
      <button type="submit" class="button primary" disabled=${running || text.trim() === ''}><${Icon} name="send" />${running ? 'Sending …' : 'Send the answer'}</button>
      <span class="faint small"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>
    </div>
  </form>`
}
