import { api } from '../../api.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Card, CommandHint, Facts } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useApi } from '../../load.js'
import { isOperator } from '../../session.js'

/**
 * @typedef {import('../../../types/answers.js').Learned} LearnedAnswer
 * @typedef {{ word: string, weight: number }} Word
 */

/**
 * The sums of the examples from which the gateway has learned about an agent, and a button that removes them.
 * @param {{ slug: string }} props
 */
export function Learned({ slug }) {
  const path = `/operator/agents/${encodeURIComponent(slug)}/learned`
  const loaded = useApi(path)
  if (!isOperator.value) return null
  const count = /** @type {LearnedAnswer | undefined} */ (loaded.data)?.examples ?? 0
  const forget = () =>
    confirm({
      title: `Forget what was learned about ${slug}?`,
      body: html`<p>All examples of the agent are removed at every gateway of this store: ratings, failed tasks and verdicts. The agent is then
          chosen by its card and its measurements until there are new ones.</p>
        <p class="muted small">CLI: <code>npx parley learned ${slug} --forget</code>, of one caller with <code>--caller</code></p>`,
      action: 'Forget',
      danger: true,
      run: async () => {
        const { forgotten } = await api(path, { method: 'DELETE' })
        toast(`Forgotten: ${forgotten} ${forgotten === 1 ? 'example' : 'examples'} of ${slug}.`)
        loaded.reload()
      },
    })
  return html`<${Card} title="Learned" id="learned" footer=${html`<${CommandHint} command=${`npx parley learned ${slug}`} />`}
    actions=${count > 0 && html`<button type="button" class="button danger" onClick=${forget}>Forget …</button>`}>
    <${Loading} loaded=${loaded}>
      ${(/** @type {LearnedAnswer} */ learned) =>
        learned.examples === 0
          ? html`<${EmptyState} title="Nothing is learned yet" icon="decisions">Ratings, failed tasks and answers to “Was this the right agent?” add examples.<//>`
          : html`<${Sums} learned=${learned} />`}
    <//>
  <//>`
}

/** @param {{ learned: LearnedAnswer }} props */
function Sums({ learned }) {
  const { examples, positive, negative, callers_total: callers, since, words } = learned
  return html`<${Facts} facts=${[
    ['Examples', `${examples}: ${positive} positive, ${negative} negative`],
    ['Callers', String(callers)],
    ['Since', html`<${Time} at=${since} />`],
    ['Score', scoreText(learned)],
    ['Words for it', words === null ? 'not shown' : html`<${Words} words=${words.positive} />`],
    ['Words against it', words === null ? 'not shown' : html`<${Words} words=${words.negative} />`],
  ]} />`
}

/** @param {LearnedAnswer} learned */
function scoreText({ learning, raises_score: raises, missing }) {
  if (!learning) return 'not changed: ROUTE_LEARNING=no'
  if (raises) return 'raised for similar messages'
  const needed = [
    missing.examples > 0 && `positive examples: ${missing.examples} more`,
    missing.callers > 0 && `callers with positive examples: ${missing.callers} more`,
  ].filter(Boolean)
  return `not raised yet (${needed.join('; ')})`
}

/** @param {{ words: Word[] }} props */
function Words({ words }) {
  if (words.length === 0) return html`<span class="muted">none</span>`
  return html`<span class="row">${words.map(({ word }) => html`<span key=${word} class="tag"><${Text} value=${word} max=${40} /></span>`)}</span>`
}
