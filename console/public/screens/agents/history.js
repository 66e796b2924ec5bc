import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, CommandHint } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { isOperator } from '../../session.js'

/** @typedef {import('../../../types/answers.js').HistoryRow} HistoryRow */

const looks =
  /** @type {Record<string, [tone: string, icon: import('../../components/icon.js').IconName, text: string]>} */ ({
    registered: ['quiet', 'plus', 'Registered'],
    admitted: ['good', 'check', 'Admitted'],
    dismissed: ['warn', 'slash', 'Admission ended'],
    ready: ['good', 'check', 'Reachable'],
    unreachable: ['bad', 'cross', 'Unreachable'],
    left: ['quiet', 'out', 'Left'],
    ejected: ['bad', 'alert', 'Ejected after failures'],
    reinstated: ['good', 'check', 'Reinstated'],
    quarantined: ['bad', 'slash', 'Quarantined'],
    released: ['good', 'check', 'Released'],
    card_changed: ['info', 'file', 'Card changed'],
    examples_tried: ['info', 'file', 'Examples tried'],
  })

/**
 * The changes of an agent's health and admission, newest first.
 * @param {{ agent: import('./agent.js').Agent }} props
 */
export function History({ agent: { slug } }) {
  const loaded = useApi(`/operator/agents/${encodeURIComponent(slug)}/history`, { limit: 30 })
  useLiveReload(['agent'], loaded.reload, 5000)
  if (!isOperator.value) return null
  return html`<${Card} title="History" id="history" footer=${html`<${CommandHint} command=${`npx parley history ${slug}`} />`}>
    <${Loading} loaded=${loaded}>
      ${(/** @type {{ history: HistoryRow[] }} */ { history }) =>
        history.length === 0
          ? html`<${EmptyState} title="Nothing is recorded yet" icon="waiting">Changes of health, admission and card appear here.<//>`
          : html`<ol class="timeline">${history.map((row, index) => html`<${Entry} key=${index} row=${row} />`)}</ol>`}
    <//>
  <//>`
}

/** @param {{ row: HistoryRow }} props */
function Entry({ row: { at, kind, reason, by } }) {
  const [tone, icon, text] = looks[kind] ?? ['quiet', 'dot', kind]
  return html`<li class="timeline-entry">
    <span class=${tone}><${Icon} name=${icon} /></span>
    <div>
      <div class="row-apart"><strong>${text}</strong><span class="muted small"><${Time} at=${at} /></span></div>
      ${reason !== null && html`<p class="muted small break"><${Text} value=${reason} max=${500} /></p>`}
      ${by !== null && html`<p class="faint small">by <${Text} value=${by} max=${100} /></p>`}
    </div>
  </li>`
}
