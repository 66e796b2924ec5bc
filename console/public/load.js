import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError, api, isAborted } from './api.js'

/**
 * The state of something that is loaded. While it is loaded again, `data` is the previous value.
 *
 * @template T
 * @typedef {{ data: T | undefined, error: ApiError | undefined, loading: boolean, reload: () => void,
 *   change: (data: T) => void }} Loaded
 */

/**
 * Loads something when `key` changes, and cancels the request when the screen changes.
 *
 * @template T
 * @param {string} key
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @returns {Loaded<T>}
 */
export function useLoad(key, load) {
  const [state, setState] = useState(
    /** @type {{ key: string, data?: T, error?: ApiError, loading: boolean }} */ ({ key, loading: true }),
  )
  const [turn, setTurn] = useState(0)
  const latest = useRef(load)
  latest.current = load
  // A layout effect starts the request before the first paint.
  useLayoutEffect(() => {
    const controller = new AbortController()
    setState((old) => ({ ...(old.key === key && { data: old.data }), key, loading: true }))
    latest
      .current(controller.signal)
      .then((data) => setState({ key, data, loading: false }))
      .catch((thrown) => {
        if (controller.signal.aborted || isAborted(thrown)) return
        const error = asApiError(thrown)
        setState((old) => ({ ...(old.key === key && { data: old.data }), key, error, loading: false }))
      })
    return () => controller.abort()
  }, [key, turn])
  const reload = useCallback(() => setTurn((old) => old + 1), [])
  const change = useCallback((/** @type {T} */ data) => setState({ key, data, loading: false }), [key])
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    loading: isCurrent ? state.loading : true,
    reload,
    change,
  }
}

const unreadRetriesMax = 3
const unreadRetryMs = 5000

/**
 * Loads a path of the gateway. A list without the entries of some agents, which could not be read, is loaded again a few
 * times.
 *
 * @param {string} path
 * @param {Record<string, unknown>} [query]
 * @returns {Loaded<any>}
 */
export function useApi(path, query = {}) {
  const key = `${path} ${JSON.stringify(query)}`
  const loaded = useLoad(key, (signal) => api(path, { query, signal }))
  const retried = useRef({ key, times: 0 })
  const { data, reload } = loaded
  useEffect(() => {
    if (retried.current.key !== key) retried.current = { key, times: 0 }
    if (data === undefined) return undefined
    if (!(data.unread?.length > 0)) retried.current.times = 0
    else if (retried.current.times < unreadRetriesMax) {
      retried.current.times += 1
      const timer = setTimeout(reload, unreadRetryMs)
      return () => clearTimeout(timer)
    }
    return undefined
  }, [key, data])
  return loaded
}

/**
 * An action of the reader, such as a button's: whether it runs, and its error.
 *
 * @template {unknown[]} A
 * @template T
 * @param {(...args: A) => Promise<T>} action
 * @returns {{ run: (...args: A) => Promise<T | undefined>, running: boolean, error: ApiError | undefined,
 *   clear: () => void }}
 */
export function useAction(action) {
  const [state, setState] = useState(
    /** @type {{ running: boolean, error?: ApiError }} */ ({ running: false }),
  )
  const busy = useRef(false)
  const run = async (/** @type {A} */ ...args) => {
    if (busy.current) return undefined
    busy.current = true
    setState({ running: true })
    try {
      const result = await action(...args)
      setState({ running: false })
      return result
    } catch (thrown) {
      setState(isAborted(thrown) ? { running: false } : { running: false, error: asApiError(thrown) })
      return undefined
    } finally {
      busy.current = false
    }
  }
  return { run, running: state.running, error: state.error, clear: () => setState({ running: false }) }
}

/** @param {unknown} thrown */
export function asApiError(thrown) {
  if (thrown instanceof ApiError) return thrown
  console.error(thrown)
  return new ApiError('This page failed.', { next: 'Reload it. If it fails again, report what you did.' })
}
