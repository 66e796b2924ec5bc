import { signal } from '@preact/signals'
import { navigate } from './router.js'
import { navigation } from './screens.js'
import { isOperator } from './session.js'

/** Whether the dialog with the shortcuts is open. */
export const showsHelp = signal(false)

/** The shortcuts, for the help. */
export function shortcutList() {
  const goTo = navigation(isOperator.value)
    .flatMap(({ screens }) => screens)
    .map(({ title, nav }) => ({ keys: ['g', nav?.key ?? ''], text: title }))
  return [
    {
      group: 'Everywhere',
      entries: [
        { keys: ['?'], text: 'Show the shortcuts' },
        { keys: ['/'], text: 'Go to the first filter' },
        { keys: ['Esc'], text: 'Close the dialog or the navigation' },
      ],
    },
    {
      group: 'Lists',
      entries: [
        { keys: ['j'], text: 'Next entry' },
        { keys: ['k'], text: 'Previous entry' },
        { keys: ['Enter'], text: 'Open the entry' },
        { keys: ['n'], text: 'Show new entries' },
      ],
    },
    { group: 'Go to', entries: goTo },
  ]
}

let goingSince = 0

/** Starts to listen for the shortcuts. Called once. */
export function startShortcuts() {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (isTyping(event.target) || document.querySelector('dialog[open]') !== null) return
    if (handle(event.key)) event.preventDefault()
  })
}

/**
 * @param {string} key
 * @returns {boolean} whether the key is a shortcut
 */
function handle(key) {
  if (Date.now() - goingSince < 1500) {
    goingSince = 0
    const screens = navigation(isOperator.value).flatMap((group) => group.screens)
    const screen = screens.find(({ nav }) => nav?.key === key)
    if (screen !== undefined) navigate(screen.path)
    return screen !== undefined
  }
  if (key === 'g') goingSince = Date.now()
  else if (key === '?') showsHelp.value = true
  else if (key === '/') return focusOn(document.querySelector('main .filters :is(input, select)'))
  else if (key === 'j' || key === 'k') return focusOn(rowLink(key === 'j' ? 1 : -1))
  else if (key === 'n') return press(document.querySelector('main .new-entries'))
  else return false
  return true
}

/** @param {1 | -1} step */
function rowLink(step) {
  const links = [...document.querySelectorAll('main a.row-link')]
  const at = document.activeElement === null ? -1 : links.indexOf(document.activeElement)
  return links[Math.min(links.length - 1, Math.max(0, at + step))] ?? null
}

/** @param {Element | null} element */
function focusOn(element) {
  if (!(element instanceof HTMLElement)) return false
  element.focus()
  return true
}

/** @param {Element | null} element */
function press(element) {
  if (!(element instanceof HTMLElement)) return false
  element.click()
  return true
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  )
}
