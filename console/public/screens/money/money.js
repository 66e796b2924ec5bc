import { html } from '../../components/html.js'
import { Page } from '../../components/page.js'
import { Tabs } from '../../components/tabs.js'
import { navigate, route } from '../../router.js'
import { isOperator } from '../../session.js'
import { Orphaned } from './orphaned.js'
import { Payments } from './payments.js'
import { Usage } from './usage.js'

/** Usage and spending, and the ledgers of all agents. */
export default function Money() {
  const { query } = route.value
  const selected = query.get('tab') === 'payments' ? 'payments' : 'usage'
  const select = (/** @type {string} */ tab) =>
    navigate(tab === 'usage' ? '/console/money' : '/console/money?tab=payments')
  const lead = isOperator.value
    ? 'The usage and spending of callers, and the income of agents.'
    : 'Your usage and spending.'
  return html`<${Page} title="Money" lead=${lead} command=${selected === 'usage' ? usageCommand(query) : paymentsCommand(query)}>
    <${Tabs} label="Money" selected=${selected} onSelect=${select} tabs=${[
      { id: 'usage', title: 'Usage and spending', content: () => html`<${Usage} />` },
      {
        id: 'payments',
        title: 'Payments',
        content: () => html`<div class="stack"><${Orphaned} /><${Payments} /></div>`,
      },
    ]} />
  <//>`
}

/** @param {URLSearchParams} query */
function usageCommand(query) {
  const [days, owner, agent] = ['days', 'owner', 'agent'].map((name) => query.get(name))
  const options = [days && `--since ${days}d`, owner && `--caller '${owner}'`, agent && `--agent '${agent}'`]
  return ['npx parley usage', ...options.filter(Boolean)].join(' ')
}

/** @param {URLSearchParams} query */
const paymentsCommand = (query) =>
  `npx parley payments${query.get('state') ? ` --state ${query.get('state')}` : ''}`
