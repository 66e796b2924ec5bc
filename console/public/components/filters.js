import { useEffect, useId, useState } from 'preact/hooks'
import { route, setQuery } from '../router.js'
import { html } from './html.js'
import { Icon } from './icon.js'

/**
 * A filter that is a parameter of the URL.
 *
 * @typedef {{ name: string, label: string, kind?: 'text' | 'select' | 'check' | 'day', placeholder?: string,
 *   empty?: string, options?: [value: string, label: string][] }} Filter options do not include the empty one, which `empty` names
 */

/**
 * The filters of a list. They are in the URL, so that a filtered list can be linked.
 *
 * @param {{ filters: Filter[], label?: string, children?: import('preact').ComponentChildren }} props
 */
export function Filters({ filters, label = 'Filters', children }) {
  const { query } = route.value
  const used = filters.filter(({ name }) => query.has(name))
  const clear = () => setQuery(Object.fromEntries(filters.map(({ name }) => [name, undefined])))
  return html`<form class="filters" role="search" aria-label=${label} onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    ${filters.map((filter) => html`<${FilterField} key=${filter.name} filter=${filter} value=${query.get(filter.name) ?? ''} />`)}
    ${used.length > 0 && html`<button type="button" class="button plain" onClick=${clear}><${Icon} name="close" />Clear</button>`}
    ${children}
  </form>`
}

/** @param {{ filter: Filter, value: string }} props */
function FilterField({ filter, value }) {
  const id = useId()
  const { name, label, kind = 'text', options = [] } = filter
  const set = (/** @type {string} */ next) => setQuery({ [name]: next })
  if (kind === 'check')
    return html`<label class="check button" for=${id}>
      <input id=${id} type="checkbox" checked=${value === 'true'} onChange=${(/** @type {any} */ event) => set(event.target.checked ? 'true' : '')} />${label}
    </label>`
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${
      kind === 'select'
        ? html`<select id=${id} value=${value} onChange=${(/** @type {any} */ event) => set(event.target.value)}>
          <option value="">${filter.empty ?? 'All'}</option>
          ${options.map(([option, text]) => html`<option key=${option} value=${option}>${text}</option>`)}
          ${value !== '' && !options.some(([option]) => option === value) && html`<option value=${value}>${value}</option>`}
        </select>`
        : html`<${TextFilter} id=${id} type=${kind === 'day' ? 'date' : 'search'} value=${value} placeholder=${filter.placeholder} set=${set} />`
    }
  </div>`
}

/**
 * Applies its text when the reader presses Enter, leaves the field, or stops typing.
 *
 * @param {{ id: string, type: string, value: string, placeholder?: string, set: (value: string) => void }} props
 */
function TextFilter({ id, type, value, placeholder, set }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return undefined
    const timer = setTimeout(() => set(text.trim()), 500)
    return () => clearTimeout(timer)
  }, [text])
  const apply = () => text.trim() !== value && set(text.trim())
  return html`<input id=${id} type=${type} value=${text} placeholder=${placeholder} autocomplete="off" spellcheck=${false} maxlength="512"
    onInput=${(/** @type {any} */ event) => setText(event.target.value)} onBlur=${apply}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && apply()} />`
}

/**
 * A field of a form with its label, help and error.
 *
 * @param {{ label: string, help?: import('preact').ComponentChildren, error?: string,
 *   children: (props: { id: string, 'aria-describedby': string | undefined, 'aria-invalid': boolean | undefined }) => import('preact').ComponentChildren }} props
 */
export function Field({ label, help, error, children }) {
  const id = useId()
  const describedBy = error ? `${id}-error` : help ? `${id}-help` : undefined
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children({ id, 'aria-describedby': describedBy, 'aria-invalid': error ? true : undefined })}
    ${error ? html`<span class="error" id=${`${id}-error`}>${error}</span>` : help && html`<span class="help" id=${`${id}-help`}>${help}</span>`}
  </div>`
}
