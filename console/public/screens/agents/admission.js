import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Dialog } from '../../components/dialog.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { CommandHint } from '../../components/page.js'
import { ErrorState, Notice } from '../../components/states.js'
import { toast } from '../../components/toast.js'
import { useAction } from '../../load.js'
import { orReload } from '../conflict.js'
import { ChangeList, ValueDiff } from './card-changes.js'

/** @typedef {import('./agent.js').Agent} Agent */

/**
 * Admits exactly the revision that the dialog shows. If the agent changes before that, the gateway refuses, and the dialog shows the
 * new revision.
 * @param {import('./agent-actions.js').Props & { onClose: () => void }} props
 */
export function Admission({ agent, reload, change, onClose }) {
  const { slug, revision, relay } = agent
  const [own, setOwn] = useState(false)
  const [credential, setCredential] = useState('')
  const admit = useAction(async () => {
    const body = { revision, own, ...(credential !== '' && { credential }) }
    const path = `/registry/agents/${encodeURIComponent(slug)}/admit`
    const admitted = await orReload(() => api(path, { method: 'POST', body }), reload)
    change(admitted)
    const alike = (admitted.look_alikes ?? []).map((/** @type {{ agent: string }} */ other) => other.agent)
    if (alike.length > 0)
      toast(
        `${slug} is admitted. It resembles ${alike.join(', ')}: check that callers cannot confuse them.`,
        'warn',
      )
    else toast(`${slug} is admitted and receives work.`)
    onClose()
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    void admit.run()
  }
  return html`<${Dialog} title=${`Admit ${slug}`} onClose=${onClose} wide=${true}>
    <form class="stack" onSubmit=${submit}>
      <${Reviewed} agent=${agent} />
      ${!agent.verified && html`<${Notice} tone="warn">The agent has not proven a key. Admit it only if you know its address: <code class="break">${agent.url}</code><//>`}
      ${
        relay === undefined
          ? html`<label class="check"><input type="checkbox" checked=${own} onChange=${(/** @type {any} */ event) => setOwn(event.target.checked)} />
            This deployment runs the agent: trust its statements about tasks, and read its tasks here</label>`
          : relay.security.length > 0 &&
            html`<${Credential} value=${credential} set=${setCredential} kinds=${relay.security} />`
      }
      ${admit.error && html`<${ErrorState} error=${admit.error} compact=${true} />`}
      <${CommandHint} command=${`npx parley admit ${slug} --revision ${revision}${own ? ' --own' : ''}${credential === '' ? '' : ' --credential -'}`} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="button primary" disabled=${admit.running}>Admit this revision</button>
      </div>
    </form>
  <//>`
}

/**
 * Shows the changes since the last admission, or all statements of a new agent.
 * @param {{ agent: Agent }} props
 */
function Reviewed({ agent }) {
  const { card_changes: changes, admitted } = agent
  if (admitted && changes.length === 0)
    return html`<p>The agent is admitted, and its card has not changed.</p>`
  if (admitted)
    return html`<p>These changes of the card are accepted:</p>
      <div class="scroll" tabindex="0" role="region" aria-label="Changes"><${ChangeList} changes=${changes} /></div>`
  return html`<p>The agent was not admitted before, or its admission has ended. Everything that it states is new:</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Statements of the agent"><${ValueDiff} before=${{}} after=${statementsOf(agent)} /></div>
    ${changes.length > 0 && html`<details><summary>Changes of its card since it registered</summary><${ChangeList} changes=${changes} /></details>`}`
}

/** @param {Agent} agent */
function statementsOf({ name, description, url, did, keys, skills, card }) {
  const { executionCost: price, capabilities, securitySchemes: security, version } = card
  const stated = {
    name,
    description,
    version,
    url,
    did: did ?? undefined,
    keys,
    price,
    capabilities,
    security,
  }
  const named = skills.map(({ id, name: title, description: text }) => ({
    id,
    name: title,
    description: text,
  }))
  return JSON.parse(JSON.stringify({ ...stated, skills: named }))
}

/** @param {{ value: string, set: (value: string) => void, kinds: string[] }} props */
function Credential({ value, set, kinds }) {
  const help = `The agent requires: ${kinds.join(', ')}. The credential is stored encrypted and never shown. Leave the field empty to keep the present one.`
  return html`<${Field} label="Credential" help=${help}>
    ${(
      /** @type {object} */ field,
    ) => html`<input ...${field} type="password" autocomplete="off" maxlength="20000" value=${value}
      onInput=${(/** @type {any} */ event) => set(event.target.value)} />`}
  <//>`
}
