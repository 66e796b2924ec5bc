import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

/**
 * The one stream of changes of the page (`GET /operator/events`). The browser connects again with the id of the last event, and the
 * gateway sends what was missed, or `reset` if it no longer has it; then screens load their lists again.
 *
 * @typedef {{ type: string, data: any }} LiveEvent
 */

/** @type {import('@preact/signals').Signal<'connecting' | 'open' | 'lost'>} */
export const liveState = signal('connecting')

/** The types of events. A stream sends each under its name. */
const types = ['task', 'decision', 'agent', 'delivery', 'audit', 'load', 'reset']

/** @type {Set<(event: LiveEvent) => void>} */
const listeners = new Set()
/** @type {EventSource | undefined} */
let source
let lastId = ''
let retryMs = 1000
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

/**
 * Calls `listener` with each change while the component is shown. The list of types limits the calls; `reset` is always passed on.
 *
 * @param {string[]} wanted
 * @param {(event: LiveEvent) => void} listener
 */
export function useLive(wanted, listener) {
  const latest = useRef(listener)
  latest.current = listener
  useEffect(() => {
    const own = (/** @type {LiveEvent} */ event) => {
      if (event.type === 'reset' || wanted.includes(event.type)) latest.current(event)
    }
    listeners.add(own)
    connect()
    return () => {
      listeners.delete(own)
    }
  }, [wanted.join()])
}

/**
 * Calls `reload` after changes of the given types, at most once per `everyMs`.
 *
 * @param {string[]} wanted
 * @param {() => void} reload
 * @param {number} [everyMs]
 */
export function useLiveReload(wanted, reload, everyMs = 2000) {
  const state = useRef(/** @type {{ timer?: ReturnType<typeof setTimeout>, at: number }} */ ({ at: 0 }))
  useLive(wanted, () => {
    const { current } = state
    if (current.timer !== undefined) return
    current.timer = setTimeout(
      () => {
        current.timer = undefined
        current.at = Date.now()
        reload()
      },
      Math.max(100, current.at + everyMs - Date.now()),
    )
  })
  useEffect(() => () => clearTimeout(state.current.timer), [])
}

function connect() {
  if (source !== undefined || document.hidden) return
  clearTimeout(timer)
  const query = lastId === '' ? '' : `?last_event_id=${encodeURIComponent(lastId)}`
  const opened = new EventSource(`/console/api/operator/events${query}`)
  source = opened
  opened.addEventListener('open', () => {
    liveState.value = 'open'
    retryMs = 1000
  })
  opened.addEventListener('error', () => {
    liveState.value = 'lost'
    // The browser would connect with the id in the address, which is older than the last one.
    connectLater()
  })
  for (const type of types) opened.addEventListener(type, (event) => receive(type, event))
}

function connectLater() {
  disconnect()
  timer = setTimeout(connect, retryMs)
  retryMs = Math.min(60_000, retryMs * 2)
}

function disconnect() {
  source?.close()
  source = undefined
}

/**
 * @param {string} type
 * @param {MessageEvent} event
 */
function receive(type, event) {
  if (event.lastEventId !== '') lastId = event.lastEventId
  let data
  try {
    data = JSON.parse(event.data)
  } catch {
    return
  }
  for (const listener of listeners) listener({ type, data })
}

// Browsers allow six connections per server over HTTP/1.1, so hidden pages give theirs up.
/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiding
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding)
  if (document.hidden) hiding = setTimeout(disconnect, 10_000)
  else if (listeners.size > 0) connect()
})
