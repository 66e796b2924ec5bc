import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Notice } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { navigate } from '../../router.js'
import { isOperator } from '../../session.js'
import { orReload } from '../conflict.js'
import { Admission } from './admission.js'
import { Quarantine } from './quarantine.js'

/**
 * @typedef {import('./agent.js').Agent} Agent
 * @typedef {{ agent: Agent, reload: () => void, change: (agent: Agent) => void }} Props
 */

/** @param {string} slug */
const pathOf = (slug) => `/registry/agents/${encodeURIComponent(slug)}`

/** @param {Props} props */
function release({ agent: { slug }, reload, change }) {
  return confirm({
    title: `Release ${slug} from quarantine?`,
    body: html`<p>The gateway sends work to the agent again.</p><p class="muted small">CLI: <code>npx parley release ${slug}</code></p>`,
    action: 'Release',
    run: async () => {
      change(await orReload(() => api(`${pathOf(slug)}/release`, { method: 'POST', body: {} }), reload))
      toast(`${slug} is released.`)
    },
  })
}

/** @param {Props} props */
function remove({ agent: { slug }, reload }) {
  return confirm({
    title: `Remove ${slug} from the registry?`,
    body: html`<p>The entry is deleted with the decisions of operators about it. The agent may register again and then waits for an admission.</p>
      <p class="muted small">CLI: <code>npx parley remove ${slug}</code></p>`,
    action: 'Remove',
    danger: true,
    run: async () => {
      await orReload(() => api(pathOf(slug), { method: 'DELETE' }), reload)
      toast(`${slug} is removed.`)
      navigate('/console/agents')
    },
  })
}

/**
 * The operator's actions for an agent.
 * @param {Props} props
 */
export function Actions(props) {
  const { agent } = props
  const [dialog, setDialog] = useState(/** @type {'admit' | 'quarantine' | undefined} */ (undefined))
  if (!isOperator.value) return null
  const close = () => setDialog(undefined)
  const isQuarantined = agent.quarantine !== null
  const isRemovable = agent.origin === 'registered' || agent.status === 'unreachable'
  return html`
    ${!agent.admitted && html`<button type="button" class="button primary" onClick=${() => setDialog('admit')}><${Icon} name="check" />Admit …</button>`}
    ${agent.admitted && (agent.card_changes.length > 0 || agent.relay !== undefined) && html`<button type="button" class="button" onClick=${() => setDialog('admit')}>Admit again …</button>`}
    ${isQuarantined && html`<button type="button" class="button" onClick=${() => release(props)}>Release …</button>`}
    ${agent.quarantine?.by !== 'operator' && html`<button type="button" class="button danger" onClick=${() => setDialog('quarantine')}>Quarantine …</button>`}
    ${isRemovable && html`<button type="button" class="button danger" onClick=${() => remove(props)}>Remove …</button>`}
    ${dialog === 'admit' && html`<${Admission} ...${props} onClose=${close} />`}
    ${dialog === 'quarantine' && html`<${Quarantine} ...${props} onClose=${close} />`}
  `
}

/**
 * The reasons why the agent receives no work, with the next step.
 * @param {Props} props
 */
export function Warnings(props) {
  const { agent } = props
  const { quarantine, admitted, status, left } = agent
  return html`
    ${left !== undefined && html`<${Notice} tone="warn">The agent has left <${Time} at=${left} />. It may register again.<//>`}
    ${quarantine !== null && html`<${Quarantined} quarantine=${quarantine} />`}
    ${!admitted && html`<${Notice} tone="warn">The agent waits for an admission and receives no work. Read its card and identity, then admit it.<//>`}
    ${admitted && agent.card_changes.length > 0 && html`<${Notice}>The card has changed since the admission. <a href="#changes">Read the changes</a>, then admit the agent again or quarantine it.<//>`}
    ${status === 'unreachable' && left === undefined && html`<${Notice} tone="bad">The agent does not answer since <${Time} at=${agent.last_seen} none="its registration" />. Check its process and its log; it returns by itself when it answers.<//>`}
  `
}

/** @param {{ quarantine: NonNullable<Agent['quarantine']> }} props */
function Quarantined({ quarantine: { by, reason, since, until } }) {
  const what =
    by === 'operator' ? 'An operator quarantined the agent' : 'The gateway ejected the agent after failures'
  return html`<${Notice} tone="bad">
    ${what} <${Time} at=${since} />: <${Text} value=${reason} max=${500} />.
    ${until === null ? ' It receives no work until it is released.' : html` The gateway probes it again <${Time} at=${until} />.`}
  <//>`
}
