import { signal } from '@preact/signals'
import { useEffect, useId, useRef } from 'preact/hooks'
import { asApiError } from '../load.js'
import { html } from './html.js'
import { ErrorState } from './states.js'

/**
 * A modal dialog. It closes with Escape, and the focus returns to where it was.
 *
 * @param {{ title: import('preact').ComponentChildren, onClose: () => void, wide?: boolean,
 *   children: import('preact').ComponentChildren }} props
 */
export function Dialog({ title, onClose, wide = false, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null))
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  const onClick = (/** @type {MouseEvent} */ event) => event.target === element.current && onClose()
  return html`<dialog ref=${element} aria-labelledby=${id} data-wide=${wide} onClick=${onClick}
    onCancel=${(/** @type {Event} */ event) => {
      event.preventDefault()
      onClose()
    }}>
    <div class="dialog"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`
}

/**
 * A question before something that cannot be undone.
 *
 * @typedef {{ title: string, body: import('preact').ComponentChildren, action: string, danger?: boolean,
 *   run: () => Promise<unknown> }} Confirmation `action` is the verb on the button; `run` does it
 */

/** @type {import('@preact/signals').Signal<(Confirmation & { done: (confirmed: boolean) => void, running: boolean, error?: import('../api.js').ApiError }) | undefined>} */
const open = signal(undefined)

/**
 * Requests a confirmation and runs the action. An error is shown in the dialog, where the reader can try again.
 *
 * @param {Confirmation} confirmation
 * @returns {Promise<boolean>} true after the action has succeeded, false if the reader canceled
 */
export function confirm(confirmation) {
  open.peek()?.done(false)
  return new Promise((resolve) => {
    open.value = { ...confirmation, running: false, done: resolve }
  })
}

/** The place of the confirmation, once per page. */
export function Confirmations() {
  const current = open.value
  if (current === undefined) return null
  const close = (/** @type {boolean} */ confirmed) => {
    open.value = undefined
    current.done(confirmed)
  }
  const run = async () => {
    open.value = { ...current, running: true, error: undefined }
    try {
      await current.run()
      close(true)
    } catch (thrown) {
      open.value = { ...current, running: false, error: asApiError(thrown) }
    }
  }
  const { title, body, action, danger, running, error } = current
  return html`<${Dialog} title=${title} onClose=${() => close(false)}>
    <div>${body}</div>
    ${error && html`<${ErrorState} error=${error} compact=${true} />`}
    <div class="dialog-actions">
      <button type="button" class="button" onClick=${() => close(false)}>Keep as it is</button>
      <button type="button" class=${danger ? 'button danger' : 'button primary'} disabled=${running} onClick=${run}>
        ${running ? 'Please wait …' : action}
      </button>
    </div>
  <//>`
}
