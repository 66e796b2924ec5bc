import { StateBadge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { Card, Facts, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useApi } from '../../load.js'
import { hrefOf } from '../../router.js'
import { AskAgain } from './ask-again.js'
import { Candidates, Excluded, Needs } from './candidates.js'
import { Verdicts } from './verdicts.js'

/** @typedef {import('../../../types/answers.js').DecisionDetail} DecisionDetail */

/**
 * One decision: which agents were compared, why one was chosen, and which were excluded by which rule.
 *
 * @param {{ params: Record<string, string> }} props
 */
export default function DecisionScreen({ params }) {
  const id = params['id'] ?? ''
  const loaded = useApi(`/operator/decisions/${encodeURIComponent(id)}`)
  const decision = /** @type {DecisionDetail | undefined} */ (loaded.data)
  return html`<${Page} title=${titleOf(decision)} name="Decision" crumbs=${[{ href: '/console/decisions', text: 'Decisions' }]}
    command=${`npx parley decisions ${id}`} actions=${decision && html`<${StateBadge} state=${decision.outcome} />`}
    lead=${decision?.text && html`<span class="clamp-2">“<${Text} value=${decision.text} max=${300} />”</span>`}>
    <${Loading} loaded=${loaded} lines=${10}>${(/** @type {DecisionDetail} */ data) => html`<${Content} decision=${data} reload=${loaded.reload} />`}<//>
  <//>`
}

/** @param {DecisionDetail | undefined} decision */
function titleOf(decision) {
  if (decision === undefined) return 'Decision'
  if (decision.chosen === null) return 'Why no agent was chosen'
  return html`Why <${Text} value=${decision.chosen} max=${60} />?`
}

/** @param {{ decision: DecisionDetail, reload: () => void }} props */
function Content({ decision, reload }) {
  const { record } = decision
  return html`<div class="split">
    <div class="stack">
      <${Card} id="candidates" title=${html`Candidates <span class="count">${record.candidates_total}</span>`} padded=${false}>
        ${
          record.candidates.length === 0
            ? html`<${EmptyState} title="No agent matched" icon="decisions">No skill of an agent shares enough words with the request. The list of excluded agents says which rules applied.<//>`
            : html`<${Candidates} answer=${record} chosen=${decision.chosen} weights=${decision.weights} />`
        }
      <//>
      <${AskAgain} key=${decision.id} decision=${decision} />
    </div>
    <div class="stack">
      <${Card} id="facts" title="Facts"><${DecisionFacts} decision=${decision} /><//>
      <${Verdicts} decision=${decision} reload=${reload} />
      ${record.needs !== undefined && html`<${Card} id="needs" title="Parts of the request"><${Needs} answer=${record} /><//>`}
      <${Card} id="excluded" title=${html`Excluded <span class="count">${record.excluded_total}</span>`}><${Excluded} answer=${record} /><//>
    </div>
  </div>`
}

/** @param {{ decision: DecisionDetail }} props */
function DecisionFacts({ decision }) {
  const { record, runner_up: second } = decision
  const margin = second === null || decision.score === null ? null : decision.score - second.score
  const tried = record.tried.map(
    ({ agent, outcome }, index) =>
      html`<span key=${index}>${index > 0 && ', '}<${Text} value=${agent} max=${60} /> (<${Text} value=${outcome} max=${60} />)</span>`,
  )
  return html`<${Facts} facts=${[
    ['Decided', html`<${Time} at=${decision.at} />`],
    ['Method', html`<code>${decision.method}</code>`],
    ['Score', decision.score === null ? null : decision.score.toFixed(3)],
    [
      'Margin',
      margin === null
        ? null
        : html`${margin.toFixed(3)} ahead of <${Text} value=${second?.agent} max=${60} />`,
    ],
    ['Tried', tried.length > 0 ? tried : null],
    [
      'Task',
      decision.task_id &&
        html`<a href=${hrefOf(`/console/tasks/${encodeURIComponent(decision.task_id)}`, { agent: decision.chosen })}>Open the task</a>`,
    ],
    [
      'Owner',
      decision.owner && html`<${Id} value=${decision.owner} length=${20} copies=${true} label="owner" />`,
    ],
    ['Decision', html`<${Id} value=${decision.id} copies=${true} label="decision id" />`],
    [
      'Trace',
      decision.trace_id && html`<${Id} value=${decision.trace_id} copies=${true} label="trace id" />`,
    ],
  ]} />`
}
