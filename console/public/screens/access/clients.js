import { Badge } from '../../components/badge.js'
import { Filters } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Card, Page } from '../../components/page.js'
import { EmptyState, Loading } from '../../components/states.js'
import { Pager, Table } from '../../components/table.js'
import { Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useApi } from '../../load.js'
import { route } from '../../router.js'

/**
 * @typedef {object} Client
 * @property {string} id
 * @property {string} name
 * @property {string} scope
 * @property {string} kind
 * @property {boolean} enabled
 * @property {string[]} tags
 * @property {{ scope?: string, per_minute?: number, expires_at?: string, resources?: string[] }} limits
 * @property {string | null} created_at
 * @property {string | null} last_token_at
 * @property {string | null} last_used_at
 */

/** The clients of the embedded OAuth server. */
export default function Clients() {
  const { query } = route.value
  const q = query.get('q') ?? undefined
  const loaded = useApi('/clients', { q, cursor: query.get('cursor') ?? undefined, limit: 50 })
  return html`<${Page} title="Clients" lead="Programs and applications that may get tokens, their limits and their keys."
    command=${q === undefined ? 'npx parley clients' : `npx parley clients --query ${JSON.stringify(q)}`}>
    <${Filters} filters=${[{ name: 'q', label: 'Search', placeholder: 'ID or name' }]} />
    <${Card} padded=${false}>
      <${Loading} loaded=${loaded} lines=${8}>
        ${(
          /** @type {{ clients: Client[], next_cursor: string | null }} */ { clients, next_cursor: cursor },
        ) =>
          clients.length === 0
            ? html`<${EmptyState} title=${q === undefined ? 'There are no clients' : 'No client matches this search'} icon="clients">
                ${q === undefined ? html`Register one with the initial access token: <code>npx parley token --initial</code>.` : 'Search for fewer letters.'}
              <//>`
            : html`<${Table} caption="Clients" columns=${columns} rows=${clients} rowKey=${(/** @type {Client} */ { id }) => id} linked=${true} />
                <${Pager} cursor=${cursor} shown=${clients.length} noun=${clients.length === 1 ? 'client' : 'clients'} order="name" />`}
      <//>
    <//>
  <//>`
}

const columns = [
  {
    title: 'Client',
    kind: 'fill',
    label: false,
    cell: (/** @type {Client} */ { id, name }) => html`<div class="truncate">
      <a class="row-link" href=${`/console/clients/${encodeURIComponent(id)}`}><${Text} value=${name} none=${id} max=${120} /></a>
      ${name !== '' && name !== id && html`<span class="muted small truncate"><${Text} value=${id} max=${200} /></span>`}
    </div>`,
  },
  {
    title: 'State',
    kind: 'narrow',
    cell: (/** @type {Client} */ { enabled }) =>
      html`<${Badge} tone=${enabled ? 'good' : 'bad'} icon=${enabled ? 'check' : 'slash'}>${enabled ? 'Enabled' : 'Revoked'}<//>`,
  },
  { title: 'Kind', kind: 'narrow', cell: (/** @type {Client} */ { kind }) => kind },
  {
    title: 'Limits',
    kind: 'max',
    cell: (/** @type {Client} */ { limits }) =>
      html`<span class="truncate small"><${Text} value=${limitText(limits)} none="none" max=${120} /></span>`,
  },
  {
    title: 'Tags',
    kind: 'narrow',
    wideOnly: true,
    cell: (/** @type {Client} */ { tags }) =>
      tags.slice(0, 4).map((tag) => html`<span key=${tag} class="tag">${tag}</span> `),
  },
  {
    title: 'Last used',
    kind: 'narrow',
    cell: (/** @type {Client} */ { last_used_at: at }) => html`<${Time} at=${at} none="never" />`,
  },
]

/** @param {Client['limits']} limits */
function limitText({ scope, per_minute: rate, expires_at: end, resources }) {
  return [
    rate !== undefined && `${rate} per minute`,
    scope,
    end !== undefined && `until ${end.slice(0, 10)}`,
    resources !== undefined && `${resources.length} servers`,
  ]
    .filter(Boolean)
    .join(', ')
}
