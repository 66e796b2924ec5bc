import { CopyButton } from './copy-button.js'
import { html } from './html.js'
import { Text } from './text.js'

/**
 * A text in a fixed-width font with a button that copies it.
 *
 * @param {{ text: string, wrap?: boolean, label?: string }} props
 */
export function CodeBlock({ text, wrap = false, label = 'Copy' }) {
  return html`<div class="code-block">
    <pre class=${wrap ? 'code wrap' : 'code'} tabindex="0"><${Text} value=${text} none="" max=${200_000} /></pre>
    <${CopyButton} text=${text} label=${label} />
  </div>`
}

/**
 * JSON as a tree. Objects beyond the first levels are closed; long lists and texts are shortened.
 *
 * @param {{ value: unknown, open?: number }} props `open` is the number of open levels
 */
export function JsonView({ value, open = 2 }) {
  return html`<div class="code-block">
    <pre class="code wrap json" tabindex="0"><${JsonValue} value=${value} open=${open} depth=${0} /></pre>
    <${CopyButton} text=${() => JSON.stringify(value, null, 2)} label="Copy the JSON" />
  </div>`
}

const entriesMax = 100

/** @param {{ value: unknown, open: number, depth: number }} props */
function JsonValue({ value, open, depth }) {
  if (typeof value === 'string')
    return html`<span class="json-text">"<${Text} value=${value} none="" max=${4000} />"</span>`
  if (value === null || typeof value !== 'object')
    return html`<span class="json-scalar">${String(value)}</span>`
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  const [start, end] = isList ? ['[', ']'] : ['{', '}']
  if (entries.length === 0) return html`<span>${start}${end}</span>`
  if (depth > 60) return html`<span class="faint">${start} … ${end}</span>`
  const summary = isList
    ? `${entries.length} entries`
    : entries
        .slice(0, 4)
        .map(([name]) => name)
        .join(', ')
  return html`<details open=${depth < open}>
    <summary>${start}<span class="faint json-summary"> <${Text} value=${summary} max=${80} /> ${end}</span></summary>
    <div class="json-inside">
      ${entries.slice(0, entriesMax).map(
        ([name, one]) => html`<div key=${name}>
          ${!isList && html`<span class="json-name"><${Text} value=${name} max=${200} />: </span>`}<${JsonValue} value=${one} open=${open} depth=${depth + 1} />
        </div>`,
      )}
      ${entries.length > entriesMax && html`<div class="faint">${entries.length - entriesMax} more entries. Copy the JSON to see all.</div>`}
    </div>${end}
  </details>`
}
