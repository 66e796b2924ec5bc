import { useId, useState } from 'preact/hooks'
import { html } from './html.js'

/**
 * Tabs with the keys of the ARIA pattern. Only the selected panel is rendered.
 *
 * @param {{ label: string, tabs: { id: string, title: import('preact').ComponentChildren, content: () => unknown }[],
 *   selected?: string, onSelect?: (id: string) => void }} props
 */
export function Tabs({ label, tabs, selected, onSelect }) {
  const id = useId()
  const [own, setOwn] = useState(tabs[0]?.id)
  const current = tabs.find((tab) => tab.id === (selected ?? own)) ?? tabs[0]
  const select = (/** @type {string} */ tab) => {
    setOwn(tab)
    onSelect?.(tab)
  }
  const onKeyDown = (/** @type {KeyboardEvent & { currentTarget: HTMLElement }} */ event) => {
    const at = tabs.findIndex((tab) => tab.id === current?.id)
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    const index = (to + tabs.length) % tabs.length
    select(tabs[index]?.id ?? '')
    const button = event.currentTarget.querySelectorAll('[role=tab]')[index]
    if (button instanceof HTMLElement) button.focus()
  }
  return html`<div class="stack">
    <div class="tabs" role="tablist" aria-label=${label} onKeyDown=${onKeyDown}>
      ${tabs.map(
        (
          tab,
        ) => html`<button key=${tab.id} type="button" role="tab" id=${`${id}-${tab.id}`} aria-controls=${`${id}-panel`}
          aria-selected=${tab === current ? 'true' : 'false'} tabindex=${tab === current ? 0 : -1} onClick=${() => select(tab.id)}>
          ${tab.title}
        </button>`,
      )}
    </div>
    <div role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${current?.id}`} tabindex="0">${current?.content()}</div>
  </div>`
}
