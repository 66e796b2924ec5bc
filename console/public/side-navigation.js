import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { html } from './components/html.js'
import { Icon } from './components/icon.js'
import { Text } from './components/text.js'
import { toast } from './components/toast.js'
import { liveState } from './live.js'
import { asApiError } from './load.js'
import { navigation, screenAt } from './screens.js'
import { isOperator, session } from './session.js'
import { showsHelp } from './shortcuts.js'

const isOpen = signal(false)

/** @typedef {'light' | 'dark' | 'system'} Theme */
const theme = signal(/** @type {Theme} */ (document.documentElement.dataset.theme ?? 'system'))

/** The bar of narrow screens, with the button that opens the navigation. */
export function TopBar() {
  return html`<header class="top">
    <button type="button" class="button plain square" aria-label="Navigation" aria-expanded=${isOpen.value ? 'true' : 'false'}
      aria-controls="side" onClick=${() => (isOpen.value = !isOpen.value)}><${Icon} name="menu" /></button>
    <${Brand} />
    <span class="end"><${LiveMark} /></span>
  </header>`
}

/** @param {{ path: string }} props */
export function SideNavigation({ path }) {
  const side = useRef(/** @type {HTMLElement | null} */ (null))
  const open = isOpen.value
  useEffect(() => {
    isOpen.value = false
  }, [path])
  useEffect(() => {
    if (!open) return undefined
    side.current?.querySelector('a')?.focus()
    const onKey = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === 'Escape') isOpen.value = false
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [open])
  const current = currentPath(path)
  return html`
    ${open && html`<button type="button" class="scrim phone-only" aria-label="Close the navigation" onClick=${() => (isOpen.value = false)}></button>`}
    <aside class="side" id="side" aria-label="Navigation and account" data-open=${open ? 'true' : 'false'} ref=${side}>
      <${Brand} />
      <nav aria-label="Screens">
        ${navigation(isOperator.value).map(
          ({ group, screens }) => html`<div key=${group}>
            <h2 id=${`nav-${group}`}>${group}</h2>
            <ul aria-labelledby=${`nav-${group}`}>
              ${screens.map(
                ({ path: to, title, nav }) => html`<li key=${to}>
                  <a href=${to} aria-current=${to === current ? 'page' : undefined} title=${`g ${nav?.key}`} onClick=${() => (isOpen.value = false)}>
                    <${Icon} name=${nav?.icon} />${title}
                  </a>
                </li>`,
              )}
            </ul>
          </div>`,
        )}
      </nav>
      <${Account} />
    </aside>`
}

function Brand() {
  const production = session.value?.gateway.production
  return html`<a class="brand" href="/console">
    <img src="/console/assets/icon.svg" alt="" width="22" height="22" />Parley
    ${production === false && html`<span class="tag" title="This deployment is not in production mode">dev</span>`}
  </a>`
}

/** The path of the navigation to which a screen belongs: its own, or that of the list above it. */
function currentPath(/** @type {string} */ path) {
  const { screen } = screenAt(path) ?? {}
  if (screen?.nav !== undefined || screen === undefined) return screen?.path
  return path.split('/').slice(0, 3).join('/')
}

export function LiveMark() {
  const words = { connecting: 'Connecting', open: 'Live', lost: 'Reconnecting' }
  const state = liveState.value
  return html`<span class="live" data-state=${state} role="status">${words[state]}</span>`
}

function Account() {
  const current = session.value
  if (current === undefined) return null
  return html`<div class="account">
    <div class="row">
      <span class="account-name grow">
        <span class="truncate strong"><${Text} value=${current.name} max=${80} /></span>
        <span class="faint small">${current.role === 'operator' ? 'Operator' : 'Caller'} · ${current.gateway.version}</span>
      </span>
      <${LiveMark} />
    </div>
    <div class="row">
      <${ThemeSwitch} />
      <button type="button" class="button plain tiny square" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)"
        onClick=${() => (showsHelp.value = true)}><${Icon} name="keyboard" /></button>
      <button type="button" class="button plain tiny end" onClick=${signOut}><${Icon} name="out" />Sign out</button>
    </div>
  </div>`
}

function ThemeSwitch() {
  const order = /** @type {Theme[]} */ (['system', 'light', 'dark'])
  const names = { system: 'as the system', light: 'light', dark: 'dark' }
  const next = order[(order.indexOf(theme.value) + 1) % order.length] ?? 'system'
  const icons = /** @type {const} */ ({ system: 'screen', light: 'sun', dark: 'moon' })
  return html`<button type="button" class="button plain tiny square" onClick=${() => setTheme(next)}
    aria-label=${`Colours: ${names[theme.value]}. Change to ${names[next]}`} title=${`Colours: ${names[theme.value]}`}>
    <${Icon} name=${icons[theme.value]} />
  </button>`
}

/** @param {Theme} next */
function setTheme(next) {
  theme.value = next
  const { dataset } = document.documentElement
  if (next === 'system') delete dataset.theme
  else dataset.theme = next
  try {
    if (next === 'system') localStorage.removeItem('parley.theme')
    else localStorage.setItem('parley.theme', next)
  } catch {
    // The browser does not allow storage; the choice lasts as long as the page.
  }
}

async function signOut() {
  try {
    const headers = { 'x-csrf-token': session.peek()?.csrf ?? '' }
    const answer = await fetch('/console/sign-out', { method: 'POST', headers })
    if (!answer.ok && answer.status !== 401) throw new Error(`Sign-out returned ${answer.status}`)
    location.assign('/console/sign-in')
  } catch (error) {
    toast(`You are still signed in. ${asApiError(error).next}`, 'bad')
  }
}
