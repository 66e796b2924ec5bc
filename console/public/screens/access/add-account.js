import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { CopyButton } from '../../components/copy-button.js'
import { Dialog } from '../../components/dialog.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { CommandHint } from '../../components/page.js'
import { ErrorState, Notice } from '../../components/states.js'
import { useAction } from '../../load.js'

/** @typedef {import('./accounts.js').Created} Created */

/** @param {{ done: (created: Created) => void, onClose: () => void }} props */
export function AddAccount({ done, onClose }) {
  const [name, setName] = useState('')
  const [role, setRole] = useState('caller')
  const [client, setClient] = useState('')
  const add = useAction(async () => {
    const clientId = role === 'caller' ? client.trim() : ''
    const body = { name: name.trim(), role, ...(clientId !== '' && { client_id: clientId }) }
    done(await api('/operator/accounts', { method: 'POST', body }))
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    void add.run()
  }
  return html`<${Dialog} title="Add an account" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <${Field} label="Name" help="Lower-case letters, digits, dot, underscore and hyphen.">
        ${(
          /** @type {object} */ field,
        ) => html`<input ...${field} type="text" required maxlength="63" pattern="[a-z0-9][a-z0-9._\\-]*" autocomplete="off" spellcheck=${false} value=${name}
          onInput=${(/** @type {any} */ event) => setName(event.target.value)} />`}
      <//>
      <${Field} label="Role" help=${role === 'operator' ? 'Sees and changes everything.' : 'Sees and sends only tasks of one client.'}>
        ${(
          /** @type {object} */ field,
        ) => html`<select ...${field} value=${role} onChange=${(/** @type {any} */ event) => setRole(event.target.value)}>
          <option value="caller">Caller</option><option value="operator">Operator</option>
        </select>`}
      <//>
      ${
        role === 'caller' &&
        html`<${Field} label="Client (optional)" help="The client ID of a program, to see its tasks. Without one, the account gets a client for itself.">
        ${(
          /** @type {object} */ field,
        ) => html`<input ...${field} type="text" maxlength="512" autocomplete="off" spellcheck=${false} value=${client}
          onInput=${(/** @type {any} */ event) => setClient(event.target.value)} />`}
      <//>`
      }
      ${add.error && html`<${ErrorState} error=${add.error} compact=${true} />`}
      <${CommandHint} command=${`npx parley operators add ${name.trim() || '<name>'} --role ${role}`} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="button primary" disabled=${add.running}>Add</button>
      </div>
    </form>
  <//>`
}

/**
 * Shows a generated password, which cannot be read again.
 * @param {{ created: Created, onClose: () => void }} props
 */
export function NewPassword({ created: { name, password }, onClose }) {
  return html`<${Dialog} title=${`The password of ${name}`} onClose=${onClose}>
    <div class="row boxed"><code class="password grow break">${password}</code><${CopyButton} text=${password} label="Copy the password">Copy<//></div>
    <${Notice} tone="warn">It is shown only now. Give it to ${name} by a safe way, or set a new one later.<//>
    <div class="dialog-actions"><button type="button" class="button primary" onClick=${onClose}>Done</button></div>
  <//>`
}
