import { useState } from 'preact/hooks'
import { errorOf, request } from '../../api.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { CommandHint } from '../../components/page.js'
import { ErrorState } from '../../components/states.js'
import { toast } from '../../components/toast.js'
import { useAction } from '../../load.js'
import { hrefOf } from '../../router.js'
import { orReload } from '../conflict.js'
import { messageRequest, partsOf, pathOf } from '../try/requests.js'
import { PaymentPanel } from './payment-panel.js'

/** @typedef {import('../try/conversation.js').Part} Part */

/**
 * Sends the next message of a paused task.
 * @param {import('./waiting.js').WaitingTask} task
 * @param {Part[]} parts
 * @param {string} [paymentSession]
 */
async function continueTask({ agent, task_id: taskId, context_id: contextId }, parts, paymentSession) {
  const body = messageRequest({ parts, contextId, taskId, paymentSession, streams: false })
  const headers = { 'idempotency-key': body.id }
  const response = await request(pathOf(agent), { method: 'POST', body, headers })
  if (response.ok) return
  throw errorOf(response, await response.json().catch(() => undefined))
}

/**
 * The reply to a pause, in the form that its state requires.
 * @param {{ task: import('./waiting.js').WaitingTask, done: () => void }} props
 */
export function Answer({ task, done }) {
  const [text, setText] = useState('')
  const send = useAction(
    async (/** @type {Part[]} */ parts, /** @type {string | undefined} */ paymentSession) => {
      await orReload(() => continueTask(task, parts, paymentSession), done)
      setText('')
      toast(`The answer is sent to ${task.agent}.`, 'good', {
        href: hrefOf(`/console/tasks/${task.task_id}`, { agent: task.agent }),
        link: 'Open the task',
      })
      done()
    },
  )
  const error = send.error && html`<${ErrorState} error=${send.error} compact=${true} />`
  if (task.state === 'payment-required') {
    const paid = (/** @type {string} */ session) => send.run([{ kind: 'text', text: 'Paid' }], session)
    return html`<${PaymentPanel} agent=${task.agent} taskId=${task.task_id} terms=${task.payment} onPaid=${paid} />${error}`
  }
  if (task.state === 'negotiation-bid-submitted')
    return html`<${Bid} send=${send.run} running=${send.running} />${error}`
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    if (text.trim() !== '') void send.run(partsOf(text, []), undefined)
  }
  return html`<form class="stack-2" onSubmit=${submit}>
    <${Field} label="Your answer">
      ${(/** @type {object} */ field) => html`<textarea ...${field} rows="2" maxlength="100000" required value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>`}
    <//>
    ${error}
    <div class="row-apart"><button type="submit" class="button primary" disabled=${send.running}>Answer</button>
      <${CommandHint} command=${`npx parley send ${task.agent} --task ${task.task_id} "…"`} /></div>
  </form>`
}

/** @param {{ send: (parts: Part[], session: undefined) => Promise<unknown>, running: boolean }} props */
export function Bid({ send, running }) {
  const reply = (/** @type {boolean} */ accept) => send([{ kind: 'data', data: { accept } }], undefined)
  return html`<div class="row">
    <button type="button" class="button primary" disabled=${running} onClick=${() => reply(true)}>Accept the offer</button>
    <button type="button" class="button" disabled=${running} onClick=${() => reply(false)}>Decline</button>
  </div>`
}
