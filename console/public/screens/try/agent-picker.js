import { useEffect, useId, useState } from 'preact/hooks'
import { html } from '../../components/html.js'
import { plainText } from '../../components/text.js'
import { useApi } from '../../load.js'
import { automatic } from './requests.js'

const shownMax = 20

/**
 * A field that suggests agents while the reader types. The server searches, so it works with any number of agents.
 * @param {{ value: string, pick: (slug: string) => void }} props
 */
export function AgentPicker({ value, pick }) {
  const id = useId()
  const [text, setText] = useState(value)
  const [query, setQuery] = useState('')
  useEffect(() => setText(value), [value])
  useEffect(() => {
    const timer = setTimeout(() => setQuery(text === value ? '' : text.trim()), 250)
    return () => clearTimeout(timer)
  }, [text])
  const { data } = useApi('/registry/agents', { q: query, limit: shownMax })
  /** @type {{ slug: string, description: string }[]} */
  const agents = data?.agents ?? []
  const apply = (/** @type {string} */ slug) => {
    const chosen = slug.trim() || automatic
    setText(chosen)
    if (chosen !== value) pick(chosen)
  }
  const isListed = (/** @type {string} */ slug) =>
    slug === automatic || agents.some((one) => one.slug === slug)
  return html`<div class="agent-picker">
    <label for=${id} class="muted small">Agent</label>
    <input id=${id} list=${`${id}-agents`} value=${text} autocomplete="off" spellcheck=${false} maxlength="63" placeholder=${automatic}
      onInput=${(/** @type {any} */ event) => {
        const { value: typed } = event.target
        setText(typed)
        // A browser reports the choice of a suggestion as an input that is not typed.
        if (event.inputType !== 'insertText' && isListed(typed)) apply(typed)
      }}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && apply(text)}
      onBlur=${() => apply(text)} />
    <datalist id=${`${id}-agents`}>
      <option value=${automatic}>The gateway chooses</option>
      ${agents.map((agent) => html`<option key=${agent.slug} value=${agent.slug}>${plainText(agent.description).slice(0, 80)}</option>`)}
    </datalist>
  </div>`
}
