import { html } from '../../components/html.js'
import { Card } from '../../components/page.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { valueChanges, valueText } from './value-changes.js'

/**
 * The changes of the card since the agent was admitted.
 * @param {{ agent: import('./agent.js').Agent }} props
 */
export function CardChanges({ agent: { card_changes: changes } }) {
  const count = html`<span class="count">${changes.length}</span>`
  return html`<${Card} title="Changed since admission" id="changes" actions=${count}
    footer="Admit the agent again to accept these changes.">
    <${ChangeList} changes=${changes} />
  <//>`
}

/** @param {{ changes: import('./agent.js').CardChange[] }} props */
export function ChangeList({ changes }) {
  return html`<div class="stack">
    ${changes.toReversed().map(
      ({ at, field, before, after }, index) => html`<div key=${index} class="stack-2">
        <h3 class="row"><code class="break"><${Text} value=${field} max=${200} /></code> <span class="muted small"><${Time} at=${at} /></span></h3>
        <${ValueDiff} before=${before ?? undefined} after=${after ?? undefined} />
      </div>`,
    )}
  </div>`
}

/**
 * Two values as removed and added lines.
 * @param {{ before: unknown, after: unknown }} props
 */
export function ValueDiff({ before, after }) {
  const changes = valueChanges(before, after)
  if (changes.length === 0)
    return html`<p class="muted small">Both values are too long for the registry. Compare the card below with the version that you admitted.</p>`
  return html`<div class="diff" role="list" aria-label="Differences">
    ${changes.map(
      ({ path, before: old, after: now }) => html`<div key=${path} role="listitem" class="diff-entry">
        ${path !== '' && html`<div class="diff-path"><${Text} value=${path} max=${200} /></div>`}
        ${old !== undefined && html`<del class="diff-line"><span class="hidden-visually">removed: </span><${Text} value=${valueText(old)} max=${4000} /></del>`}
        ${now !== undefined && html`<ins class="diff-line"><span class="hidden-visually">added: </span><${Text} value=${valueText(now)} max=${4000} /></ins>`}
      </div>`,
    )}
  </div>`
}
