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

/** @typedef {import('../../../types/answers.js').DecisionDetail} DecisionDetail */

/**
 * The verdicts on the decision, and the form that records a verdict.
 *
 * @param {{ decision: DecisionDetail, reload: () => void }} props
 */
export function Verdicts({ decision, reload }) {
  const [isWrong, setWrong] = useState(false)
  const id = encodeURIComponent(decision.id)
  const { run, running, error } = useAction(async (/** @type {object} */ verdict) => {
    await api(`/operator/decisions/${id}/feedback`, { method: 'POST', body: verdict })
    setWrong(false)
    toast('The verdict was recorded. Decisions about similar requests take it into account.')
    reload()
  })
  return html`<${Card} id="verdicts" title="Was this the right agent?"
    footer=${html`<${CommandHint} command=${`npx parley feedback ${decision.id} --wrong`} />`}>
    <div class="stack">
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
    <${Field} label="The right agent" help="Leave it empty if none of them is right.">
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
