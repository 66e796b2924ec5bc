import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Dialog } from '../../components/dialog.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { CommandHint } from '../../components/page.js'
import { ErrorState, Notice, Unread } from '../../components/states.js'
import { toast } from '../../components/toast.js'
import { useAction, useApi } from '../../load.js'

/**
 * @typedef {import('./webhooks.js').DeliveryRow} DeliveryRow
 * @typedef {{ configs: number, events: number, unread?: { agent: string, reason: string }[] }} Resent
 */

const periods = /** @type {const} */ ([
  ['1', 'the last hour'],
  ['6', 'the last 6 hours'],
  ['24', 'the last 24 hours'],
  ['168', 'the last 7 days'],
])

/**
 * Sends the events again that were dropped since a time, for the agent and caller of the filters.
 * @param {{ filters: Record<string, string | undefined>, reload: () => void, onClose: () => void }} props
 */
export function ResendSince({ filters: { agent, owner }, reload, onClose }) {
  const [hours, setHours] = useState('24')
  const [now] = useState(() => Date.now())
  const since = new Date(now - Number(hours) * 3_600_000).toISOString()
  const dropped = useApi('/operator/deliveries', { state: 'dropped', agent, owner, since, limit: 200 })
  const resend = useAction(async () => {
    const body = { since, ...(agent !== undefined && { agent }), ...(owner !== undefined && { owner }) }
    const {
      configs,
      events,
      unread = [],
    } = /** @type {Resent} */ (await api('/operator/deliveries/resend', { method: 'POST', body }))
    const missing = unread.length > 0 ? ` ${unread.length} agents could not be read.` : ''
    toast(
      `${events} events of ${configs} webhooks are sent again.${missing}`,
      unread.length > 0 ? 'warn' : 'good',
    )
    reload()
    onClose()
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    void resend.run()
  }
  const scope = [agent && `the agent ${agent}`, owner && `the caller ${owner}`].filter(Boolean).join(' and ')
  return html`<${Dialog} title="Resend dropped events" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p>Events that were dropped in this period are sent to their receivers again${scope === '' ? '' : `, only for ${scope}`}. Receivers recognize an event that they have by its <code>event_id</code>.</p>
      <${Field} label="Since">
        ${(
          /** @type {object} */ field,
        ) => html`<select ...${field} value=${hours} onChange=${(/** @type {any} */ event) => setHours(event.target.value)}>
          ${periods.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}
        </select>`}
      <//>
      <${Preview} loaded=${dropped} />
      ${resend.error && html`<${ErrorState} error=${resend.error} compact=${true} />`}
      <${CommandHint} command=${`npx parley deliveries --resend --since ${hours}h${agent ? ` --agent ${agent}` : ''}${owner ? ` --owner ${owner}` : ''}`} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="button primary" disabled=${resend.running || dropped.loading}>Resend</button>
      </div>
    </form>
  <//>`
}

/** @param {{ loaded: import('../../load.js').Loaded<any> }} props */
function Preview({ loaded: { data, error } }) {
  if (error !== undefined) return html`<${ErrorState} error=${error} compact=${true} />`
  if (data === undefined) return html`<p class="muted" role="status">Counting …</p>`
  /** @type {DeliveryRow[]} */
  const rows = data.deliveries
  const events = rows.reduce(
    (sum, { dropped }) => sum + Object.values(dropped).reduce((all, count) => all + count, 0),
    0,
  )
  const more = data.next_cursor === null ? '' : 'at least '
  return html`<${Unread} unread=${data.unread} />
    <${Notice}><span role="status">${rows.length === 0 ? 'No event was dropped in this period.' : `${more}${events} events of ${rows.length} webhooks were dropped.`}</span><//>`
}
