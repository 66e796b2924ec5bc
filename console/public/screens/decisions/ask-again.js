import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card } from '../../components/page.js'
import { ErrorState } from '../../components/states.js'
import { useAction } from '../../load.js'
import { Candidates, Excluded, Needs } from './candidates.js'
import { subscores } from './score-bar.js'

/** @typedef {import('../../../types/answers.js').DecisionDetail} DecisionDetail */

/**
 * Compares the agents again with other weights. No agent receives a message.
 *
 * @param {{ decision: DecisionDetail }} props
 */
export function AskAgain({ decision }) {
  const recorded = weightsOf(decision.weights)
  const [weights, setWeights] = useState(recorded)
  const [text, setText] = useState(decision.text ?? '')
  const [answer, setAnswer] = useState(
    /** @type {import('../../../types/answers.js').Negotiation | undefined} */ (undefined),
  )
  const { run, running, error } = useAction(async () => {
    setAnswer(
      await api('/agent/negotiation', { method: 'POST', body: { task_summary: text, weights, limit: 10 } }),
    )
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    if (text.trim() !== '') void run()
  }
  const before = new Map(decision.record.candidates.map(({ agent, score }) => [agent.slug, score]))
  return html`<${Card} id="ask-again" title="Ask again with other weights">
    <form class="ask-again" onSubmit=${submit}>
      <div class="stack">
        <${Field} label="Text" help=${decision.text === null ? 'The text of this request is not shown to you. Enter a similar one.' : undefined}>
          ${(/** @type {any} */ props) => html`<textarea ...${props} rows="4" required maxlength="100000" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea>`}
        <//>
        <div class="row">
          <button type="submit" class="button primary" disabled=${running || text.trim() === ''}><${Icon} name="decisions" />${running ? 'Comparing …' : 'Compare the agents'}</button>
          <button type="button" class="button plain" onClick=${() => setWeights(recorded)}>Recorded weights</button>
        </div>
      </div>
      <fieldset class="sliders">
        <legend>Weights</legend>
        ${subscores.map(([key, label]) => html`<${Slider} key=${key} label=${label} value=${weights[key] ?? 0} set=${(/** @type {number} */ value) => setWeights((old) => ({ ...old, [key]: value }))} />`)}
      </fieldset>
    </form>
    ${error && html`<${ErrorState} error=${error} compact=${true} />`}
    ${
      answer &&
      html`<div class="stack ask-again-answer" aria-live="polite">
      <p>${answer.agent === null ? 'No agent would be chosen.' : html`With these weights, <strong><bdi>${answer.agent.slug}</bdi></strong> would be ${answer.agent.slug === decision.chosen ? 'chosen again' : 'chosen'}.`}</p>
      <${Needs} answer=${answer} />
      <${Candidates} answer=${answer} chosen=${answer.agent?.slug ?? null} weights=${weights} before=${before} />
      ${answer.excluded_total > 0 && html`<${Excluded} answer=${answer} />`}
    </div>`
    }
  <//>`
}

/** @param {{ label: string, value: number, set: (value: number) => void }} props */
function Slider({ label, value, set }) {
  return html`<label class="slider">
    <span>${label}</span>
    <input type="range" min="0" max="1" step="0.05" value=${value} onInput=${(/** @type {any} */ event) => set(Number(event.target.value))} />
    <output>${value.toFixed(2)}</output>
  </label>`
}

/**
 * @param {Record<string, unknown> | null} weights
 * @returns {Record<string, number>}
 */
function weightsOf(weights) {
  return Object.fromEntries(
    subscores.map(([key]) => [
      key,
      typeof weights?.[key] === 'number' ? /** @type {number} */ (weights[key]) : 0,
    ]),
  )
}
