import { JsonView } from '../../components/code.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Markdown } from '../../components/markdown.js'
import { plainText, Text } from '../../components/text.js'
import { toast } from '../../components/toast.js'
import { sizeText } from './attachments.js'

/**
 * @typedef {import('./conversation.js').Part} Part
 * @typedef {import('./conversation.js').WireFile} WireFile
 */

const partsMax = 50

/**
 * The parts of a message or an artifact. Texts of agents are shown as Markdown once they are complete.
 * @param {{ parts: Part[], isUser?: boolean, isPartial?: boolean }} props
 */
export function Parts({ parts, isUser = false, isPartial = false }) {
  return html`${parts.slice(0, partsMax).map((part, index) => html`<${PartView} key=${index} part=${part} isPlain=${isUser || isPartial} />`)}
    ${parts.length > partsMax && html`<p class="muted small">${parts.length - partsMax} more parts are on the page of the task.</p>`}`
}

/** @param {{ part: Part, isPlain: boolean }} props */
function PartView({ part: { kind, text, data, file }, isPlain }) {
  if (kind === 'text') {
    if (isPlain) return html`<div class="plain-text"><${Text} value=${text} none="" max=${100_000} /></div>`
    return html`<${Markdown} text=${text ?? ''} />`
  }
  if (kind === 'data') return html`<${JsonView} value=${data} open=${0} />`
  if (kind === 'file' && file !== undefined) return html`<${FileView} file=${file} />`
  return html`<p class="muted small">A part of the unknown kind <${Text} value=${kind} max=${40} />.</p>`
}

/** @param {{ file: WireFile }} props */
function FileView({ file: { name = 'file', mime_type: type = 'application/octet-stream', bytes, uri } }) {
  const size = bytes === undefined ? '' : sizeText(Math.floor((bytes.length * 3) / 4))
  return html`<span class="file-chip"><${Icon} name="file" /><span class="truncate"><${Text} value=${name} max=${120} /></span>
    <span class="muted small nowrap"><${Text} value=${type} max=${60} /> ${size}</span>
    ${bytes !== undefined && html`<${Download} name=${name} bytes=${bytes} />`}
    ${uri !== undefined && html`<code class="small break">${plainText(uri).slice(0, 300)}</code>`}
  </span>`
}

/**
 * Saves a file. The type is always that of unknown bytes, so that the browser never shows it as a page of the console.
 * @param {{ name: string, bytes: string }} props
 */
function Download({ name, bytes }) {
  const save = () => {
    try {
      const binary = Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))
      const url = URL.createObjectURL(new Blob([binary], { type: 'application/octet-stream' }))
      const link = document.createElement('a')
      link.href = url
      link.download = plainText(name)
        .replace(/[\\/:*?"<>|]/g, '_')
        .slice(0, 200)
      link.click()
      setTimeout(() => URL.revokeObjectURL(url), 60_000)
    } catch {
      toast('The bytes of this file are not base64, so it cannot be saved.', 'bad')
    }
  }
  return html`<button type="button" class="button tiny" aria-label=${`Save ${plainText(name)}`} onClick=${save}>Save</button>`
}
