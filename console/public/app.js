import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, loadSession, requestEarly } from './api.js'
import { Confirmations, Dialog } from './components/dialog.js'
import { html } from './components/html.js'
import { Page } from './components/page.js'
import { EmptyState, ErrorState, Skeleton } from './components/states.js'
import { Toasts, toast } from './components/toast.js'
import { useLive } from './live.js'
import { asApiError } from './load.js'
import { keptPosition, navigate, route, startRouter } from './router.js'
import { screenAt } from './screens.js'
import { isOperator, session } from './session.js'
import { shortcutList, showsHelp, startShortcuts } from './shortcuts.js'
import { SideNavigation, TopBar } from './side-navigation.js'

/**
 * The console: navigation, the present screen, and the places of dialogs and messages.
 *
 * @param {{ first: LoadedScreen | undefined }} props
 */
function App({ first }) {
  const { path } = route.value
  // The stream is open on every screen, so that its state is always known.
  useLive([], () => {})
  return html`<a class="skip-link" href="#main">Skip to the content</a>
    <div class="shell">
      <${TopBar} />
      <${SideNavigation} path=${path} />
      <main id="main" tabindex="-1"><${CurrentScreen} path=${path} first=${first} /></main>
    </div>
    <div class="hidden-visually" aria-live="polite" id="announcer"></div>
    ${showsHelp.value && html`<${ShortcutHelp} />`}
    <${Confirmations} />
    <${Toasts} />`
}

/** @typedef {{ path: string, component?: any, error?: any }} LoadedScreen `path` is the pattern of the screen */

/**
 * Loads the modules of a screen. Never rejects: the error is shown in place of the screen.
 *
 * @param {import('./screens.js').Screen} screen
 * @returns {Promise<LoadedScreen>}
 */
function loadScreen({ path, load }) {
  return load()
    .then((module) => ({ path, component: module.default }))
    .catch((error) => ({ path, error }))
}

/** @param {{ path: string, first: LoadedScreen | undefined }} props */
function CurrentScreen({ path, first }) {
  const match = screenAt(path)
  const [loaded, setLoaded] = useState(first)
  const pattern = match?.screen.path
  useEffect(() => {
    if (match === undefined || loaded?.path === pattern) return undefined
    let isCurrent = true
    // A screen may arrive after the reader has gone to another one, which is shown already.
    void loadScreen(match.screen).then((screen) => isCurrent && setLoaded(screen))
    return () => {
      isCurrent = false
    }
  }, [pattern])
  const isShown = loaded !== undefined && loaded.path === pattern
  const isRefused = match?.screen.operator === true && !isOperator.value
  useEffect(() => {
    if (isRefused && path === '/console') navigate('/console/tasks', { replace: true })
  }, [isRefused, path])
  useArrival(path, isShown)
  if (match === undefined) return html`<${NotFound} />`
  if (isRefused) return html`<${ForOperators} title=${match.screen.title} />`
  if (!isShown) return html`<div class="page"><${Skeleton} lines=${6} /></div>`
  if (loaded.error !== undefined) return html`<${Failed} error=${loaded.error} />`
  const Screen = loaded.component
  return html`<${Screen} key=${path} params=${match.params} />`
}

/**
 * Moves the focus to the heading after the reader has gone to another screen, and scrolls to where it was left.
 *
 * @param {string} path
 * @param {boolean} isShown
 */
function useArrival(path, isShown) {
  const [first] = useState(() => ({ path, done: false }))
  useEffect(() => {
    if (!isShown) return
    if (!first.done && first.path === path) {
      first.done = true
      return
    }
    first.done = true
    document.getElementById('page-title')?.focus({ preventScroll: true })
    window.scrollTo(0, keptPosition())
    const announcer = document.getElementById('announcer')
    if (announcer !== null) announcer.textContent = document.title
  }, [path, isShown])
}

function NotFound() {
  return html`<${Page} title="This page does not exist">
    <${EmptyState} title="The console has no page at this address." icon="question"
      action=${html`<a class="button primary" href="/console">Go to the overview</a>`}>
      Check the address, or choose a screen in the navigation.
    <//>
  <//>`
}

/** @param {{ title: string }} props */
function ForOperators({ title }) {
  return html`<${Page} title=${title}>
    <${EmptyState} title="This screen is for operators" icon="lock" action=${html`<a class="button primary" href="/console/tasks">Go to your tasks</a>`}>
      Sign in with an operator’s account to see it.
    <//>
  <//>`
}

/** @param {{ error: unknown }} props */
function Failed({ error }) {
  return html`<${Page} title="This screen could not be loaded">
    <${ErrorState} error=${asApiError(error)} retry=${() => location.reload()} />
  <//>`
}

function ShortcutHelp() {
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${() => (showsHelp.value = false)}>
    <div class="columns">
      ${shortcutList().map(
        ({ group, entries }) => html`<section key=${group} class="stack-2">
          <h3>${group}</h3>
          <dl class="facts">
            ${entries.map(({ keys, text }) => html`<dt key=${text}>${keys.map((key) => html`<kbd key=${key}>${key}</kbd> `)}</dt><dd>${text}</dd>`)}
          </dl>
        </section>`,
      )}
    </div>
    <div class="dialog-actions">
      <button type="button" class="button primary" onClick=${() => (showsHelp.value = false)}>Close</button>
    </div>
  <//>`
}

/** Checks the session at the server shortly before it ends, while the page stays open. */
function watchSession() {
  setInterval(() => {
    const end = Date.parse(session.peek()?.expires_at ?? '')
    const left = end - Date.now()
    if (left > 0 && left < 300_000) {
      api('/operator/overview').catch(() => {})
      loadSession().catch(() => {})
    }
  }, 60_000)
}

async function start() {
  const place = document.getElementById('app')
  if (place === null) throw new Error('The page has no element #app')
  addEventListener('unhandledrejection', ({ reason }) => toast(asApiError(reason).message, 'bad'))
  const match = screenAt(route.peek().path)
  const opened = match && loadScreen(match.screen)
  try {
    await loadSession()
  } catch (error) {
    const retry = () => location.reload()
    render(
      html`<main class="page"><h1 class="hidden-visually">Parley console</h1><${ErrorState} error=${asApiError(error)} retry=${retry} /></main>`,
      place,
    )
    return
  }
  if (match?.screen.data !== undefined && isOperator.peek()) requestEarly(match.screen.data)
  // The first paint shows the screen, without a placeholder before it.
  const first = await opened
  startRouter()
  startShortcuts()
  watchSession()
  place.replaceChildren()
  render(html`<${App} first=${first} />`, place)
}

void start()
