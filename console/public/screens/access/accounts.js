import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Badge } from '../../components/badge.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useApi } from '../../load.js'
import { hrefOf } from '../../router.js'
import { session } from '../../session.js'
import { orReload } from '../conflict.js'
import { AddAccount, NewPassword } from './add-account.js'
import { Sessions } from './sessions.js'

/**
 * @typedef {import('../../../types/answers.js').Account} Account
 * @typedef {{ name: string, password: string }} Created
 */

/** People who may sign in to the console, and their sessions. */
export default function Accounts() {
  const loaded = useApi('/operator/accounts')
  const sessions = useApi('/operator/sessions')
  // Changes of an account end its sessions.
  const reload = () => {
    loaded.reload()
    sessions.reload()
  }
  const [adding, setAdding] = useState(false)
  const [created, setCreated] = useState(/** @type {Created | undefined} */ (undefined))
  const reset = (/** @type {Created} */ account) => {
    setCreated(account)
    reload()
  }
  const done = (/** @type {Created} */ account) => {
    setAdding(false)
    reset(account)
  }
  return html`<${Page} title="Accounts" lead="People who may sign in to this console, and where they are signed in."
    command=${['npx parley operators', 'npx parley operators sessions']}
    actions=${html`<button type="button" class="button primary" onClick=${() => setAdding(true)}><${Icon} name="plus" />Add an account …</button>`}>
    <${Card} title="Accounts" id="accounts" padded=${false}>
      <${Loading} loaded=${loaded}>
        ${(/** @type {{ accounts: Account[] }} */ { accounts }) =>
          accounts.length === 0
            ? html`<${EmptyState} title="There are no accounts" icon="clients">Add one, or use <code>npx parley operators add</code>.<//>`
            : html`<${AccountTable} accounts=${accounts} reload=${reload} reset=${reset} />`}
      <//>
    <//>
    <${Sessions} loaded=${sessions} />
    ${adding && html`<${AddAccount} done=${done} onClose=${() => setAdding(false)} />`}
    ${created && html`<${NewPassword} created=${created} onClose=${() => setCreated(undefined)} />`}
  <//>`
}

/** @param {{ accounts: Account[], reload: () => void, reset: (created: Created) => void }} props */
function AccountTable({ accounts, reload, reset }) {
  const own = session.value?.client_id
  const columns = [
    {
      title: 'Name',
      kind: 'fill',
      label: false,
      cell: (/** @type {Account} */ { name, client_id: id }) =>
        html`<strong><${Text} value=${name} max=${64} /></strong>${id === own && html` <span class="tag">you</span>`}`,
    },
    {
      title: 'Role',
      kind: 'narrow',
      cell: (/** @type {Account} */ { role }) => (role === 'operator' ? 'Operator' : 'Caller'),
    },
    {
      title: 'State',
      kind: 'narrow',
      cell: (/** @type {Account} */ { disabled }) =>
        html`<${Badge} tone=${disabled ? 'bad' : 'good'} icon=${disabled ? 'slash' : 'check'}>${disabled ? 'Disabled' : 'Enabled'}<//>`,
    },
    {
      title: 'Client',
      kind: 'max',
      wideOnly: true,
      cell: (/** @type {Account} */ { client_id: id }) =>
        html`<a class="truncate" href=${hrefOf('/console/tasks', { owner: id })} title="Tasks of this client"><${Text} value=${id} max=${120} /></a>`,
    },
    {
      title: 'Created',
      kind: 'narrow',
      wideOnly: true,
      cell: (/** @type {Account} */ { created_at: at }) => html`<${Time} at=${at} />`,
    },
    {
      title: 'Last sign-in',
      kind: 'narrow',
      cell: (/** @type {Account} */ { last_sign_in: at }) => html`<${Time} at=${at} none="never" />`,
    },
    {
      title: 'Actions',
      kind: 'narrow',
      label: false,
      cell: (/** @type {Account} */ account) =>
        html`<${AccountActions} account=${account} isOwn=${account.client_id === own} reload=${reload} reset=${reset} />`,
    },
  ]
  return html`<${Table} caption="Accounts" columns=${columns} rows=${accounts} rowKey=${(/** @type {Account} */ { name }) => name} />`
}

/** @param {{ account: Account, isOwn: boolean, reload: () => void, reset: (created: Created) => void }} props */
function AccountActions({ account: { name, disabled }, isOwn, reload, reset }) {
  if (isOwn) return null
  const path = `/operator/accounts/${encodeURIComponent(name)}`
  const change = async (/** @type {boolean} */ to) => {
    await orReload(() => api(path, { method: 'POST', body: { disabled: to } }), reload)
    reload()
  }
  const disable = () =>
    confirm({
      title: `Disable ${name}?`,
      body: html`<p>All sessions of the account end, and it cannot sign in until it is enabled again.</p><p class="muted small">CLI: <code>npx parley operators disable ${name}</code></p>`,
      action: 'Disable',
      danger: true,
      run: () => change(true),
    })
  const password = () =>
    confirm({
      title: `Set a new password for ${name}?`,
      body: html`<p>The old password and all sessions of the account end. The new password is shown once.</p><p class="muted small">CLI: <code>npx parley operators reset-password ${name}</code></p>`,
      action: 'Set a new password',
      run: async () =>
        reset(await orReload(() => api(`${path}/password`, { method: 'POST', body: {} }), reload)),
    })
  const enable = () =>
    change(false).then(
      () => toast(`${name} is enabled.`),
      ({ message }) => toast(message, 'bad'),
    )
  const remove = () =>
    confirm({
      title: `Remove ${name}?`,
      body: html`<p>The account is deleted and its sessions end. Its tasks and the audit log stay.</p><p class="muted small">CLI: <code>npx parley operators remove ${name}</code></p>`,
      action: 'Remove',
      danger: true,
      run: async () => {
        await orReload(() => api(path, { method: 'DELETE' }), reload)
        toast(`${name} is removed.`)
        reload()
      },
    })
  return html`<span class="row">
    ${disabled ? html`<button type="button" class="button tiny" onClick=${enable}>Enable</button>` : html`<button type="button" class="button tiny" onClick=${disable}>Disable …</button>`}
    <button type="button" class="button tiny" onClick=${password}>New password …</button>
    <button type="button" class="button danger tiny" onClick=${remove}>Remove …</button>
  </span>`
}
