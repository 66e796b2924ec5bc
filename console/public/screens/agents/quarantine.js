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
 * Stops all traffic to an agent. The reason is public, so that callers learn why.
 * @param {import('./agent-actions.js').Props & { onClose: () => void }} props
 */
export function Quarantine({ agent: { slug }, reload, change, onClose }) {
  const [reason, setReason] = useState('')
  const [missing, setMissing] = useState(false)
  const quarantine = useAction(async () => {
    const path = `/registry/agents/${encodeURIComponent(slug)}/quarantine`
    change(await orReload(() => api(path, { method: 'POST', body: { reason: reason.trim() } }), reload))
    toast(`${slug} is quarantined.`)
    onClose()
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    setMissing(reason.trim() === '')
    if (reason.trim() !== '') void quarantine.run()
  }
  return html`<${Dialog} title=${`Quarantine ${slug}`} onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p>The agent receives no messages until an operator releases it. Its running tasks continue.</p>
      <${Field} label="Reason (public)" error=${missing ? 'Enter a reason: callers of the agent see it.' : undefined}>
        ${(
          /** @type {object} */ field,
        ) => html`<input ...${field} type="text" maxlength="500" required value=${reason} placeholder="Returns wrong totals since the last release"
          onInput=${(/** @type {any} */ event) => setReason(event.target.value)} />`}
      <//>
      ${quarantine.error && html`<${ErrorState} error=${quarantine.error} compact=${true} />`}
      <${CommandHint} command=${`npx parley quarantine ${slug} --reason ${JSON.stringify(reason.trim() || '…')}`} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="button danger" disabled=${quarantine.running}>Quarantine</button>
      </div>
    </form>
  <//>`
}
