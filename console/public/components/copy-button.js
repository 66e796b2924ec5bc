import { useState } from 'preact/hooks'
import { html } from './html.js'
import { Icon } from './icon.js'
import { toast } from './toast.js'

/**
 * @param {{ text: string | (() => string), label?: string, children?: import('preact').ComponentChildren }} props
 */
export function CopyButton({ text, label = 'Copy', children }) {
  const [copied, setCopied] = useState(false)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
      setCopied(true)
      setTimeout(() => setCopied(false), 1500)
    } catch {
      toast('The browser did not allow copying. Select the text and copy it with the keyboard.', 'warn')
    }
  }
  const isSquare = children === undefined
  return html`<button type="button" class=${isSquare ? 'button plain tiny square' : 'button tiny'} onClick=${copy}
    title=${label} aria-label=${isSquare ? label : undefined}>
    <${Icon} name=${copied ? 'check' : 'copy'} />${children}
    <span class="hidden-visually" role="status">${copied ? 'Copied' : ''}</span>
  </button>`
}
