import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Dialog } from '../../components/dialog.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { CommandHint } from '../../components/page.js'
import { ErrorState } from '../../components/states.js'
import { toast } from '../../components/toast.js'
import { useAction } from '../../load.js'
import { orReload } from '../conflict.js'

/**
 * Replaces all limits of a client. An empty field removes its limit.
 * @param {{ client: import('./clients.js').Client, loaded: import('../../load.js').Loaded<import('./clients.js').Client>,
 *   onClose: () => void }} props
 */
export function Limits({ client: { id, limits }, loaded, onClose }) {
  const [form, setForm] = useState({
    scope: limits.scope ?? '',
    perMinute: limits.per_minute === undefined ? '' : String(limits.per_minute),
    expires: limits.expires_at?.slice(0, 10) ?? '',
    resources: (limits.resources ?? []).join('\n'),
  })
  const save = useAction(async () => {
    const body = { id, ...limitsOf(form) }
    const changed = await orReload(() => api('/clients/limit', { method: 'POST', body }), loaded.reload)
    loaded.change(changed)
    toast('The limits are saved. They apply to the next request.')
    onClose()
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    void save.run()
  }
  const input =
    (/** @type {keyof typeof form} */ name, /** @type {object} */ attributes) =>
    (/** @type {object} */ field) =>
      html`<input ...${field} ...${attributes} value=${form[name]} autocomplete="off" onInput=${(/** @type {any} */ event) => setForm({ ...form, [name]: event.target.value })} />`
  return html`<${Dialog} title="Limit this client" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <${Field} label="Only these scopes" help="For example agent:read. Separate several with a space.">${input('scope', { type: 'text', maxlength: 256, placeholder: 'no limit', spellcheck: false })}<//>
      <${Field} label="Requests per minute">${input('perMinute', { type: 'number', min: 1, max: 1_000_000, placeholder: 'no limit' })}<//>
      <${Field} label="Expires at the end of (UTC)">${input('expires', { type: 'date' })}<//>
      <${Field} label="Only these servers" help="One address or DID per line.">
        ${(
          /** @type {object} */ field,
        ) => html`<textarea ...${field} rows="3" maxlength="20000" spellcheck=${false} placeholder="all servers" value=${form.resources}
          onInput=${(/** @type {any} */ event) => setForm({ ...form, resources: event.target.value })}></textarea>`}
      <//>
      ${save.error && html`<${ErrorState} error=${save.error} compact=${true} />`}
      <${CommandHint} command=${commandOf(id, limitsOf(form))} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="button primary" disabled=${save.running}>Save limits</button>
      </div>
    </form>
  <//>`
}

/** @param {{ scope: string, perMinute: string, expires: string, resources: string }} form */
function limitsOf({ scope, perMinute, expires, resources }) {
  const servers = resources.split(/\s+/).filter((one) => one !== '')
  return {
    ...(scope.trim() !== '' && { scope: scope.trim().replace(/\s+/g, ' ') }),
    ...(perMinute !== '' && { per_minute: Number(perMinute) }),
    ...(expires !== '' && { expires_at: `${expires}T23:59:59Z` }),
    ...(servers.length > 0 && { resources: servers }),
  }
}

/**
 * @param {string} id
 * @param {{ scope?: string, per_minute?: number, resources?: string[] }} limits
 */
function commandOf(id, { scope, per_minute: rate, resources = [] }) {
  const options = [
    scope === undefined ? '' : ` --scope '${scope}'`,
    rate === undefined ? '' : ` --per-minute ${rate}`,
    ...resources.map((one) => ` --resource ${one}`),
  ].join('')
  return `npx parley clients limit ${id}${options === '' ? ' --none' : options}`
}
