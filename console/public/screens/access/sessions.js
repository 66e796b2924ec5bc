import { api } from '../../api.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Card } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { orReload } from '../conflict.js'

/** @typedef {import('../../../types/answers.js').ConsoleSession} Session */

/**
 * The sessions of all accounts.
 * @param {{ loaded: import('../../load.js').Loaded<any> }} props
 */
export function Sessions({ loaded }) {
  const columns = [
    {
      title: 'Account',
      kind: 'fill',
      label: false,
      cell: (/** @type {Session} */ { name, current }) =>
        html`<strong><${Text} value=${name} max=${64} /></strong>${current && html` <span class="tag">this one</span>`}`,
    },
    {
      title: 'Role',
      kind: 'narrow',
      cell: (/** @type {Session} */ { role }) => (role === 'operator' ? 'Operator' : 'Caller'),
    },
    {
      title: 'Address',
      kind: 'narrow',
      cell: (/** @type {Session} */ { address }) => html`<${Text} value=${address} max=${60} />`,
    },
    {
      title: 'Browser',
      kind: 'max',
      cell: (/** @type {Session} */ { user_agent: agent }) =>
        html`<span class="truncate small muted"><${Text} value=${agent} max=${200} /></span>`,
    },
    {
      title: 'Signed in',
      kind: 'narrow',
      wideOnly: true,
      cell: (/** @type {Session} */ { created_at: at }) => html`<${Time} at=${at} />`,
    },
    {
      title: 'Last seen',
      kind: 'narrow',
      cell: (/** @type {Session} */ { last_seen: at }) => html`<${Time} at=${at} />`,
    },
    {
      title: 'Actions',
      kind: 'narrow',
      label: false,
      cell: (/** @type {Session} */ one) =>
        one.current
          ? null
          : html`<button type="button" class="button danger tiny" onClick=${() => revoke(one, loaded.reload)}>Revoke …</button>`,
    },
  ]
  return html`<${Card} title="Sessions" id="sessions" padded=${false}>
    <${Loading} loaded=${loaded}>
      ${(/** @type {{ sessions: Session[] }} */ { sessions }) =>
        sessions.length === 0
          ? html`<${EmptyState} title="No one is signed in" icon="sessions">Sessions appear here after a sign-in.<//>`
          : html`<${Table} caption="Sessions" columns=${columns} rows=${sessions} rowKey=${(/** @type {Session} */ { id }) => id} />`}
    <//>
  <//>`
}

/**
 * @param {Session} session
 * @param {() => void} reload
 */
function revoke({ id, name }, reload) {
  return confirm({
    title: `End this session of ${name}?`,
    body: html`<p>The browser has to sign in again. To keep the person out, disable the account.</p><p class="muted small">CLI: <code>npx parley operators revoke ${id}</code></p>`,
    action: 'End the session',
    danger: true,
    run: async () => {
      await orReload(() => api(`/operator/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' }), reload)
      toast('The session has ended.')
      reload()
    },
  })
}
