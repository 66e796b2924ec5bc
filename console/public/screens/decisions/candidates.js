import { Badge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { Text } from '../../components/text.js'
import { durationText } from '../../components/time.js'
import { ScoreBar, subscores } from './score-bar.js'

/** @typedef {import('../../../types/answers.js').Negotiation} Negotiation */
/** @typedef {Negotiation['candidates'][number]} Candidate */

/**
 * The compared agents, best first, with the parts of their scores and the reasons.
 *
 * @param {{ answer: Pick<Negotiation, 'candidates' | 'candidates_total'>, chosen: string | null,
 *   weights?: Record<string, unknown> | null, before?: Map<string, number> }} props `before` are scores to compare with
 */
export function Candidates({ answer, chosen, weights, before }) {
  const left = answer.candidates_total - answer.candidates.length
  return html`<ol class="candidates">
    ${answer.candidates.map(
      (
        candidate,
        index,
      ) => html`<li key=${`${candidate.agent.slug} ${index}`} class="candidate" data-chosen=${candidate.agent.slug === chosen}>
        <${CandidateView} candidate=${candidate} rank=${index + 1} isChosen=${candidate.agent.slug === chosen} weights=${weights} before=${before?.get(candidate.agent.slug)} />
      </li>`,
    )}
    ${left > 0 && html`<li class="candidate faint">${left} more candidates with lower scores were not recorded.</li>`}
  </ol>`
}

/** @param {{ candidate: Candidate, rank: number, isChosen: boolean, weights?: Record<string, unknown> | null, before?: number }} props */
function CandidateView({ candidate, rank, isChosen, weights, before }) {
  const { agent, score } = candidate
  const change = before === undefined ? undefined : score - before
  return html`
    <div class="candidate-head">
      <span class="faint">${rank}</span>
      <a class="strong truncate" href=${`/console/agents/${encodeURIComponent(agent.slug)}`}><${Text} value=${agent.name || agent.slug} max=${100} /></a>
      ${isChosen && html`<${Badge} tone="good" icon="check">chosen<//>`}
      ${!candidate.can_handle && html`<${Badge} tone="warn">cannot handle it<//>`}
      ${change !== undefined && Math.abs(change) >= 0.005 && html`<span class=${change > 0 ? 'good small' : 'bad small'}>${change > 0 ? '+' : '−'}${Math.abs(change).toFixed(2)}</span>`}
      <span class="candidate-score" title=${`Confidence ${candidate.confidence.toFixed(2)}`}>${score.toFixed(3)}</span>
    </div>
    <div class="subscores">
      ${subscores.map(([key, label]) => html`<${ScoreBar} key=${key} label=${labelOf(label, weights?.[key])} score=${candidate.subscores[key]} tone=${toneOf(candidate.subscores[key])} />`)}
    </div>
    <${Reasons} candidate=${candidate} />
  `
}

/**
 * @param {string} label
 * @param {unknown} weight
 */
function labelOf(label, weight) {
  return typeof weight === 'number'
    ? html`${label} <span class="faint">× ${weight.toFixed(2).replace(/\.?0+$/, '') || '0'}</span>`
    : label
}

/** @param {number} score */
function toneOf(score) {
  return score >= 0.66 ? 'good' : score >= 0.33 ? 'warn' : 'bad'
}

/** @param {{ candidate: Candidate }} props */
function Reasons({ candidate }) {
  const { skill_matches: skills, reasons, rejection_reason: rejection } = candidate
  // The reasons repeat those of the best skill and the rejection.
  const others = reasons.filter((reason) => reason !== rejection && !/^skill [^:]+: /.test(reason))
  const facts = [
    `queue ${candidate.queue_depth}`,
    candidate.estimated_latency_ms === undefined
      ? ''
      : `about ${durationText(candidate.estimated_latency_ms)}`,
    candidate.estimated_cost_amount === undefined ? '' : `costs ${candidate.estimated_cost_amount}`,
  ].filter((fact) => fact !== '')
  return html`
    ${rejection && html`<p class="bad small"><${Text} value=${rejection} max=${400} /></p>`}
    <ul class="reasons">
      ${skills.slice(0, 5).map(
        (skill, index) => html`<li key=${`${skill.skill_id} ${index}`}>
          <strong><${Text} value=${skill.skill_name} max=${80} /></strong> <span class="faint">${skill.score.toFixed(2)}</span>
          ${skill.reasons.slice(0, 6).map((reason, at) => html`<span key=${at} class="reason"><${Text} value=${reason} max=${160} /></span>`)}
        </li>`,
      )}
      ${others.length > 0 && html`<li>${others.slice(0, 12).map((reason, at) => html`<span key=${at} class="reason"><${Text} value=${reason} max=${160} /></span>`)}</li>`}
    </ul>
    <p class="faint small"><${Text} value=${facts.join(' · ')} max=${200} /></p>
  `
}

/**
 * The parts of the request, with the agent that would serve each of them. A record has no texts.
 *
 * @param {{ answer: Pick<Negotiation, 'needs'> }} props
 */
export function Needs({ answer: { needs = [] } }) {
  if (needs.length === 0) return ''
  return html`<dl class="facts">
    ${needs.map(
      ({
        position,
        text,
        agent,
        score,
      }) => html`<dt key=${position}>${text === undefined ? `Part ${position}` : html`<${Text} value=${text} max=${120} />`}</dt>
        <dd>${agent === null ? html`<span class="muted">no agent</span>` : html`<a href=${`/console/agents/${encodeURIComponent(agent)}`}><${Text} value=${agent} max=${60} /></a> <span class="faint">${score.toFixed(2)}</span>`}</dd>`,
    )}
  </dl>`
}

/**
 * The agents that were not compared, by the rule that excluded them.
 *
 * @param {{ answer: Pick<Negotiation, 'excluded' | 'excluded_total'> }} props
 */
export function Excluded({ answer }) {
  const left = answer.excluded_total - answer.excluded.length
  if (answer.excluded_total === 0) return html`<p class="muted">No agent was excluded.</p>`
  const rules = [...Map.groupBy(answer.excluded, ({ rule }) => rule)]
  return html`<dl class="facts">
    ${rules.map(
      ([rule, agents]) => html`<dt key=${rule}><${Text} value=${rule} max=${80} /></dt>
        <dd>
          ${agents.map(({ agent, temporary }, index) => html`<span key=${`${agent} ${index}`}>${index > 0 && ', '}<a href=${`/console/agents/${encodeURIComponent(agent)}`}><${Text} value=${agent} max=${60} /></a>${temporary && html` <span class="tag" title="The rule applies for a limited time">for now</span>`}</span>`)}
        </dd>`,
    )}
    ${left > 0 && html`<dt>others</dt><dd class="muted">${left} more agents</dd>`}
  </dl>`
}
