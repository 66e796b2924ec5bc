import { signal } from '@preact/signals'

/**
 * The address of the page. Screens have real URLs below `/console`, so links, the history and reloading work.
 *
 * @typedef {{ path: string, query: URLSearchParams, entry: string }} Route
 */

/** @type {import('@preact/signals').Signal<Route>} */
export const route = signal(read())

/** Paths below `/console` that the server answers itself. */
const served = /^\/console\/(api|assets|vendor|artifacts|session|sign-in|sign-out)(\/|$)/
/** Scroll positions by history entry, to restore them when the reader goes back. */
const positions = new Map()

function read() {
  const path = location.pathname.replace(/\/+$/, '') || '/console'
  return { path, query: new URLSearchParams(location.search), entry: String(history.state?.entry ?? '0') }
}

function keepPosition() {
  positions.set(route.peek().entry, window.scrollY)
  if (positions.size > 200) positions.delete(positions.keys().next().value)
}

/**
 * Shows another address of the console, or leaves the console if the address is not one of its screens.
 *
 * @param {string} href
 * @param {{ replace?: boolean }} [options]
 */
export function navigate(href, { replace = false } = {}) {
  const to = new URL(href, location.href)
  if (!isScreen(to)) return location.assign(to)
  keepPosition()
  const entry = replace ? route.peek().entry : crypto.randomUUID()
  history[replace ? 'replaceState' : 'pushState']({ entry }, '', to)
  route.value = read()
}

/**
 * Changes parameters of the query, such as filters. The list starts at its first page again, unless `cursor` is given.
 *
 * @param {Record<string, string | undefined>} changes an empty or missing value removes the parameter
 * @param {{ replace?: boolean }} [options]
 */
export function setQuery(changes, options) {
  const query = new URLSearchParams(route.peek().query)
  for (const [name, value] of Object.entries({ cursor: undefined, ...changes })) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  navigate(hrefOf(route.peek().path, query), options)
}

/**
 * @param {string} path
 * @param {URLSearchParams | Record<string, string | number | boolean | undefined | null>} query
 */
export function hrefOf(path, query) {
  const pairs = query instanceof URLSearchParams ? [...query] : Object.entries(query)
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? path : `${path}?${text}`
}

/**
 * The position to which a screen scrolls when it is shown.
 *
 * @returns {number}
 */
export function keptPosition() {
  return positions.get(route.peek().entry) ?? 0
}

/** Makes links and the history change `route`. Called once. */
export function startRouter() {
  history.scrollRestoration = 'manual'
  addEventListener('popstate', () => {
    keepPosition()
    route.value = read()
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || !isPlain(event) || link.target !== '' || link.hasAttribute('download')) return
    const to = new URL(link.href, location.href)
    if (!isScreen(to) || (to.hash !== '' && to.pathname === location.pathname)) return
    event.preventDefault()
    navigate(link.href)
  })
}

/** @param {URL} to */
function isScreen(to) {
  const { origin, pathname } = to
  return origin === location.origin && /^\/console(\/|$)/.test(pathname) && !served.test(pathname)
}

/** @param {MouseEvent} event */
function isPlain(event) {
  return (
    !event.defaultPrevented &&
    event.button === 0 &&
    !event.metaKey &&
    !event.ctrlKey &&
    !event.shiftKey &&
    !event.altKey
  )
}
