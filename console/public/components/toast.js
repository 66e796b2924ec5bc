import { signal } from '@preact/signals'
import { html } from './html.js'
import { Icon } from './icon.js'

/** @type {import('@preact/signals').Signal<{ id: number, text: string, tone: import('../../types/answers.js').Tone, href?: string, link?: string }[]>} */
const toasts = signal([])
let last = 0

/**
 * Shows a short message that leaves after some seconds. Screen readers read it. Errors of a form belong into the form.
 *
 * @param {string} text
 * @param {import('../../types/answers.js').Tone} [tone]
 * @param {{ href: string, link: string }} [to]
 */
export function toast(text, tone = 'good', to) {
  const id = ++last
  toasts.value = [...toasts.value.slice(-3), { id, text, tone, ...to }]
  setTimeout(() => dismiss(id), tone === 'bad' ? 15_000 : 7000)
}

/** @param {number} id */
function dismiss(id) {
  toasts.value = toasts.value.filter((one) => one.id !== id)
}

/** The place of the toasts, once per page. */
export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${toasts.value.map(
      ({ id, text, tone, href, link }) => html`<div class="toast" key=${id}>
        <span class=${tone}><${Icon} name=${tone === 'good' ? 'check' : 'alert'} /></span>
        <span class="grow"><bdi>${text}</bdi> ${href && html`<a href=${href}>${link}</a>`}</span>
        <button type="button" class="button plain tiny square" aria-label="Dismiss" onClick=${() => dismiss(id)}>
          <${Icon} name="close" />
        </button>
      </div>`,
    )}
  </div>`
}
