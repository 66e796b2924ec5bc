import { html } from '../../components/html.js'
import { Bar } from '../../components/page.js'

/**
 * A score from 0 to 1 as a bar and a figure.
 *
 * @param {{ score: number | null | undefined, label?: string, tone?: import('../../../types/answers.js').Tone }} props
 */
export function ScoreBar({ score, label, tone = 'info' }) {
  if (score === null || score === undefined) return html`<span class="faint">–</span>`
  return html`<span class="score">
    ${label && html`<span class="score-label">${label}</span>`}
    <${Bar} share=${score} tone=${tone} /><span class="score-figure">${score.toFixed(2)}</span>
  </span>`
}

/** The parts of a score, in the order in which they are shown. */
export const subscores = /** @type {const} */ ([
  ['skill_match', 'Skill match'],
  ['io_compatibility', 'Formats'],
  ['performance', 'Performance'],
  ['load', 'Load'],
  ['cost', 'Cost'],
])
