import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Badge } from '../../components/badge.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Card, Facts, Page } from '../../components/page.js'
import { Loading, Notice } from '../../components/states.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useApi } from '../../load.js'
import { hrefOf, navigate } from '../../router.js'
import { session } from '../../session.js'
import { orReload } from '../conflict.js'
import { Keys } from './keys.js'
import { Limits } from './limits.js'

/** @typedef {import('./clients.js').Client} Client */

/**
 * One OAuth client: its limits and keys; revoke, enable, remove.
 * @param {{ params: Record<string, string> }} props
 */
export default function ClientScreen({ params: { id = '' } }) {
  const loaded = useApi(`/clients/${encodeURIComponent(id)}`)
  const [limiting, setLimiting] = useState(false)
  const client = /** @type {Client | undefined} */ (loaded.data)
  const title = client === undefined ? id : html`<${Text} value=${client.name} none=${id} max=${120} />`
  const crumbs = [{ href: '/console/clients', text: 'Clients' }]
  return html`<${Page} title=${title} name=${client?.name || id} crumbs=${crumbs} command=${`npx parley clients show ${id}`}
    actions=${client && html`<${Actions} client=${client} loaded=${loaded} limit=${() => setLimiting(true)} />`}>
    <${Loading} loaded=${loaded} lines=${8}>
      ${(/** @type {Client} */ one) => html`<${Content} client=${one} />`}
    <//>
    ${limiting && client && html`<${Limits} client=${client} loaded=${loaded} onClose=${() => setLimiting(false)} />`}
  <//>`
}

/** @param {{ client: Client, loaded: import('../../load.js').Loaded<Client>, limit: () => void }} props */
function Actions({ client: { id, enabled, kind }, loaded, limit }) {
  const isOwn = session.value?.client_id === id
  if (isOwn) return html`<${Badge}>The client of your session<//>`
  const { reload, change } = loaded
  const post = async (/** @type {string} */ action) => {
    const path = `/clients/${action}`
    change(await orReload(() => api(path, { method: 'POST', body: { id } }), reload))
  }
  return html`
    <button type="button" class="button" onClick=${limit}>Limit …</button>
    ${
      enabled
        ? html`<button type="button" class="button danger" onClick=${() => revoke(id, () => post('revoke'))}>Revoke …</button>`
        : html`<button type="button" class="button" onClick=${() => post('enable').then(() => toast('The client is enabled.'), failed)}>Enable</button>`
    }
    ${kind !== 'managed' && html`<button type="button" class="button danger" onClick=${() => remove(id, reload)}>Remove …</button>`}
  `
}

/** @param {Error & { next?: string }} error */
const failed = ({ message, next = '' }) => toast(`${message} ${next}`, 'bad')

/**
 * @param {string} id
 * @param {() => Promise<void>} run
 */
function revoke(id, run) {
  return confirm({
    title: 'Revoke this client?',
    body: html`<p>All tokens, keys and approvals of <code class="break">${id}</code> end, at all agents. You can enable the client again; its keys stay revoked.</p>
      <p class="muted small">CLI: <code class="break">npx parley clients revoke ${id}</code></p>`,
    action: 'Revoke',
    danger: true,
    run: async () => {
      await run()
      toast('The client is revoked.')
    },
  })
}

/**
 * @param {string} id
 * @param {() => void} reload
 */
function remove(id, reload) {
  return confirm({
    title: 'Remove this client?',
    body: html`<p><code class="break">${id}</code> is deleted with its tokens, keys, limits and tags. The program may register again, without these limits. Revoke it instead to keep it out.</p>`,
    action: 'Remove',
    danger: true,
    run: async () => {
      await orReload(() => api(`/clients/${encodeURIComponent(id)}`, { method: 'DELETE' }), reload)
      toast('The client is removed.')
      navigate('/console/clients')
    },
  })
}

/** @param {{ client: Client }} props */
function Content({ client }) {
  const { id, limits, enabled } = client
  return html`
    ${!enabled && html`<${Notice} tone="bad">The client is revoked. Its requests are refused everywhere.<//>`}
    <div class="split">
      <${Keys} clientId=${id} />
      <${Card} title="About" id="about">
        <${Facts} facts=${[
          ['ID', html`<${Id} value=${id} length=${24} copies=${true} label="client ID" />`],
          [
            'State',
            html`<${Badge} tone=${enabled ? 'good' : 'bad'} icon=${enabled ? 'check' : 'slash'}>${enabled ? 'Enabled' : 'Revoked'}<//>`,
          ],
          ['Kind', kindText[client.kind] ?? client.kind],
          ['Scope', html`<${Text} value=${client.scope} max=${256} />`],
          [
            'Tags',
            client.tags.length === 0
              ? 'none'
              : client.tags.map((tag) => html`<span key=${tag} class="tag">${tag}</span> `),
          ],
          ['Limit of scopes', limits.scope ?? 'none'],
          [
            'Requests',
            limits.per_minute === undefined ? 'no limit of this client' : `${limits.per_minute} per minute`,
          ],
          [
            'Expires',
            limits.expires_at === undefined
              ? 'never'
              : html`<${Time} at=${limits.expires_at} exact=${true} />`,
          ],
          [
            'Servers',
            limits.resources === undefined
              ? 'all'
              : limits.resources.map((one) => html`<div key=${one} class="break"><code>${one}</code></div>`),
          ],
          ['Created', html`<${Time} at=${client.created_at} none="unknown" />`],
          ['Last token', html`<${Time} at=${client.last_token_at} none="never" />`],
          ['Last used', html`<${Time} at=${client.last_used_at} none="never" />`],
        ]} />
        <p class="small"><a href=${hrefOf('/console/tasks', { owner: id })}>Tasks</a> · <a href=${hrefOf('/console/money', { owner: id })}>Usage</a> · <a href=${hrefOf('/console/audit', { who: id })}>Audit</a></p>
      <//>
    </div>
  `
}

/** @type {Record<string, string>} */
const kindText = {
  managed: 'created by the gateway',
  agent: 'an agent of the registry',
  registered: 'registered with the initial access token',
  'self-registered': 'an application that registered itself',
  document: 'an application with a metadata document',
}
