import { api } from '../../api.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Card, CommandHint } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useApi } from '../../load.js'
import { orReload } from '../conflict.js'

/** @typedef {{ id: string, client: string, name: string, scope: string, resource?: string, created_at: string, expires_at: string, created_by?: string }} Key */

/**
 * The long-lived keys of a client.
 * @param {{ clientId: string }} props
 */
export function Keys({ clientId }) {
  const loaded = useApi('/client-keys', { client: clientId })
  const columns = [
    {
      title: 'Name',
      kind: 'fill',
      label: false,
      cell: (/** @type {Key} */ key) =>
        html`<div><${Text} value=${key.name} none="without a name" max=${120} /><div class="muted small"><${Id} value=${key.id} /></div></div>`,
    },
    {
      title: 'Scope',
      kind: 'narrow',
      cell: (/** @type {Key} */ { scope }) => html`<${Text} value=${scope} max=${120} />`,
    },
    {
      title: 'Server',
      kind: 'max',
      wideOnly: true,
      cell: (/** @type {Key} */ { resource }) =>
        html`<span class="truncate"><${Text} value=${resource} none="all" max=${200} /></span>`,
    },
    {
      title: 'Created',
      kind: 'narrow',
      wideOnly: true,
      cell: (/** @type {Key} */ { created_at: at }) => html`<${Time} at=${at} />`,
    },
    {
      title: 'Expires',
      kind: 'narrow',
      cell: (/** @type {Key} */ { expires_at: at }) => html`<${Time} at=${at} />`,
    },
    {
      title: 'Actions',
      kind: 'narrow',
      label: false,
      cell: (/** @type {Key} */ key) =>
        html`<button type="button" class="button danger tiny" onClick=${() => revoke(key, loaded.reload)}>Revoke …</button>`,
    },
  ]
  return html`<${Card} title="Keys" id="keys" padded=${false} footer=${html`<${CommandHint} command=${`npx parley token --long-lived --client ${clientId} --name "…"`} />`}>
    <${Loading} loaded=${loaded}>
      ${(/** @type {{ keys: Key[] }} */ { keys }) =>
        keys.length === 0
          ? html`<${EmptyState} title="No long-lived keys" icon="lock">Programs that cannot use OAuth send a key in place of a token. The command below creates one and prints it once.<//>`
          : html`<${Table} caption="Keys" columns=${columns} rows=${keys} rowKey=${(/** @type {Key} */ { id }) => id} />`}
    <//>
  <//>`
}

/**
 * @param {Key} key
 * @param {() => void} reload
 */
function revoke({ id, name }, reload) {
  return confirm({
    title: 'Revoke this key?',
    body: html`<p>Programs that use the key <strong><${Text} value=${name} none=${id} /></strong> are refused from the next request on. A revoked key cannot be restored.</p>
      <p class="muted small">CLI: <code>npx parley clients revoke-key ${id}</code></p>`,
    action: 'Revoke',
    danger: true,
    run: async () => {
      await orReload(() => api(`/client-keys/${encodeURIComponent(id)}`, { method: 'DELETE' }), reload)
      toast('The key is revoked.')
      reload()
    },
  })
}
