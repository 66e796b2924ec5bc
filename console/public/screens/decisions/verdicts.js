import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Badge } from '../../components/badge.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, CommandHint } from '../../components/page.js'
import { ErrorState } from '../../components/states.js'
import { Id, plainText, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useAction } from '../../load.js'

/**
 * @typedef {import('../../../types/answers.js').DecisionDetail} DecisionDetail
 * @typedef {import('../../../types/answers.js').VerdictAnswer} VerdictAnswer
 */

const notLearned = {
  learning_off: 'nothing was learned: the gateway runs with ROUTE_LEARNING=no',
  no_words: 'nothing was learned: no words of the message are stored with this decision',
  no_agent: 'nothing was learned: name the right agent, as the chosen one is not registered any more',
}

/** @param {VerdictAnswer} answer */
function recordedText({ not_learned: reason }) {
  if (reason === null) return 'The verdict is recorded, and the gateway has learned from it.'
  return `The verdict is recorded, but ${notLearned[reason]}.`
}

/**
 * The verdicts on the decision, and the form that records a verdict.
 *
 * @param {{ decision: DecisionDetail, reload: () => void }} props
 */
export function Verdicts({ decision, reload }) {
  const [isWrong, setWrong] = useState(false)
  const id = encodeURIComponent(decision.id)
  const { run, running, error } = useAction(async (/** @type {object} */ verdict) => {
    const answer = await api(`/operator/decisions/${id}/feedback`, { method: 'POST', body: verdict })
    setWrong(false)
    toast(recordedText(answer), answer.learned ? 'good' : 'warn')
    reload()
  })
  return html`<${Card} id="verdicts" title="Was this the right agent?"
    footer=${html`<${CommandHint} command=${`npx parley feedback ${decision.id} --wrong`} />`}>
    <div class="stack">
      <p class="muted small">The gateway learns from your answer: for similar messages, it counts against a wrong agent and for the right one.
        A later answer of yours replaces it.</p>
      ${decision.feedback.map(
        (verdict, index) => html`<div key=${index} class="stack-2 small">
          <span class="row"><${Badge} tone=${verdict.verdict === 'right' ? 'good' : 'bad'} icon=${verdict.verdict === 'right' ? 'check' : 'cross'}>${verdict.verdict === 'right' ? 'right' : 'wrong'}<//>
            ${verdict.right_agent !== null && html`<span>better: <strong><${Text} value=${verdict.right_agent} max=${80} /></strong></span>`}</span>
          ${verdict.comment !== null && html`<p><${Text} value=${verdict.comment} max=${2000} /></p>`}
          <span class="faint"><${Id} value=${verdict.by} length=${18} />, <${Time} at=${verdict.at} /></span>
        </div>`,
      )}
      ${error && html`<${ErrorState} error=${error} compact=${true} />`}
      ${
        isWrong
          ? html`<${WrongForm} decision=${decision} running=${running} save=${run} cancel=${() => setWrong(false)} />`
          : html`<div class="row">
            ${decision.chosen !== null && html`<button type="button" class="button" disabled=${running} onClick=${() => run({ verdict: 'right' })}><${Icon} name="check" />Yes</button>`}
            <button type="button" class="button" disabled=${running} onClick=${() => setWrong(true)}><${Icon} name="cross" />This was the wrong agent</button>
          </div>`
      }
    </div>
  <//>`
}

/** @param {{ decision: DecisionDetail, running: boolean, save: (verdict: object) => void, cancel: () => void }} props */
function WrongForm({ decision, running, save, cancel }) {
  const [agent, setAgent] = useState('')
  const [comment, setComment] = useState('')
  const names = new Set([
    ...decision.record.candidates.map((one) => one.agent.slug),
    ...decision.record.excluded.map((one) => one.agent),
  ])
  names.delete(decision.chosen ?? '')
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    save({
      verdict: 'wrong',
      ...(agent.trim() !== '' && { right_agent: agent.trim() }),
      ...(comment.trim() !== '' && { comment: comment.trim() }),
    })
  }
  return html`<form class="stack" onSubmit=${submit}>
    <${Field} label="The right agent" help="Similar messages will count for this agent. Leave it empty if none of them is right.">
      ${(/** @type {any} */ props) => html`<input ...${props} list="right-agents" maxlength="200" autocomplete="off" value=${agent} onInput=${(/** @type {any} */ event) => setAgent(event.target.value)} />`}
    <//>
    <datalist id="right-agents">${[...names].slice(0, 100).map((name) => html`<option key=${name} value=${plainText(name)}></option>`)}</datalist>
    <${Field} label="Why">
      ${(/** @type {any} */ props) => html`<textarea ...${props} rows="2" maxlength="2000" value=${comment} onInput=${(/** @type {any} */ event) => setComment(event.target.value)}></textarea>`}
    <//>
    <div class="row">
      <button type="submit" class="button primary" disabled=${running}>Record it</button>
      <button type="button" class="button plain" onClick=${cancel}>Cancel</button>
    </div>
  </form>`
}
