import { goToSignIn, session } from './session.js'

/**
 * A failed request, as a sentence and the next step.
 */
export class ApiError extends Error {
  /**
   * @param {string} message a sentence about the failure
   * @param {{ next?: string, status?: number, code?: number | string, reason?: string, retryAfterS?: number,
   *   requestId?: string | null, issues?: { path: string, message: string }[], body?: unknown }} [facts]
   */
  constructor(message, facts = {}) {
    super(message)
    this.name = 'ApiError'
    this.next = facts.next ?? ''
    this.status = facts.status ?? 0
    this.code = facts.code
    this.reason = facts.reason
    this.retryAfterS = facts.retryAfterS
    this.requestId = facts.requestId
    this.issues = facts.issues ?? []
    this.body = facts.body
  }
}

/**
 * Requests a path of the gateway with the session of the browser, and returns the JSON of its answer.
 *
 * @param {string} path a path of the gateway, such as `/operator/tasks`
 * @param {{ method?: string, query?: Record<string, unknown>, body?: unknown, signal?: AbortSignal,
 *   headers?: Record<string, string> }} [options]
 * @returns {Promise<any>}
 * @throws {ApiError}
 */
export async function api(path, options = {}) {
  const response = await request(path, options)
  const text = await response.text()
  const json = text === '' ? undefined : parse(text)
  if (response.ok) return json
  throw errorOf(response, json)
}

/**
 * Calls a JSON-RPC method through the gateway, or directly at one agent.
 *
 * @param {string} method such as `message/send`
 * @param {object} params
 * @param {{ agent?: string, signal?: AbortSignal }} [options]
 * @returns {Promise<any>} the result
 * @throws {ApiError}
 */
export async function rpc(method, params, { agent, signal } = {}) {
  const path = agent === undefined ? '/' : `/agents/${encodeURIComponent(agent)}/`
  const body = { jsonrpc: '2.0', id: crypto.randomUUID(), method, params }
  const answer = await api(path, { method: 'POST', body, signal })
  return answer?.result
}

/**
 * Like {@link api}, but returns the response unchanged, for streams and files.
 *
 * @param {string} path
 * @param {Parameters<typeof api>[1]} [options]
 * @returns {Promise<Response>}
 */
export async function request(path, { method = 'GET', query, body, signal, headers } = {}) {
  const early = earlyResponses.get(path)
  earlyResponses.delete(path)
  if (early !== undefined && method === 'GET' && queryOf(query) === '') return early
  const sent = { accept: 'application/json', ...headers }
  if (body !== undefined) Object.assign(sent, { 'content-type': 'application/json' })
  if (method !== 'GET') Object.assign(sent, { 'x-csrf-token': session.peek()?.csrf ?? '' })
  const url = `/console/api${path}${queryOf(query)}`
  const content = body === undefined ? undefined : JSON.stringify(body)
  const init = { method, headers: sent, signal, credentials: /** @type {const} */ ('same-origin') }
  const response = await fetchOrFail(url, content === undefined ? init : { ...init, body: content })
  if (response.status === 401) goToSignIn()
  return response
}

/**
 * Responses that were requested before the screen that uses them is shown, by path.
 *
 * @type {Map<string, Promise<Response>>}
 */
const earlyResponses = new Map()

/**
 * Requests a path whose response the next {@link request} of the same path returns.
 *
 * @param {string} path
 */
export function requestEarly(path) {
  const response = request(path)
  // The request that uses the response reports the failure.
  response.catch(() => {})
  earlyResponses.set(path, response)
  // A screen that could not be loaded leaves its data unread, and they would be old when it is opened again.
  setTimeout(() => earlyResponses.delete(path), 5000)
}

/** Reads the session; leaves for the sign-in page if there is none. */
export async function loadSession() {
  const response = await fetchOrFail('/console/session', { headers: { accept: 'application/json' } })
  if (response.status === 401) {
    goToSignIn()
    // The browser leaves this page.
    await new Promise(() => {})
  }
  const json = parse(await response.text())
  if (!response.ok) throw errorOf(response, json)
  session.value = json
}

/** @param {unknown} error */
export function isAborted(error) {
  return error instanceof DOMException && error.name === 'AbortError'
}

/**
 * @param {string} url
 * @param {RequestInit} init
 */
async function fetchOrFail(url, init) {
  try {
    return await fetch(url, init)
  } catch (error) {
    if (isAborted(error)) throw error
    throw new ApiError('The gateway cannot be reached.', {
      next: 'Check that it runs and that your network works, then try again.',
    })
  }
}

/** @param {Record<string, unknown> | undefined} query */
function queryOf(query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? '' : `?${text}`
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * @param {Response} response
 * @param {any} json
 */
export function errorOf(response, json) {
  const error = json?.error ?? {}
  const description = typeof error === 'string' ? json?.error_description : error.message
  const message = typeof description === 'string' && description !== '' ? sentence(description) : undefined
  const retryAfterS = Number(response.headers.get('retry-after')) || undefined
  const requestId = response.headers.get('x-request-id')
  const { sentence: known, next } = meaningOf(response.status, retryAfterS, requestId)
  return new ApiError(message ?? known, {
    next,
    status: response.status,
    code: typeof error === 'string' ? error : error.code,
    reason: error.data?.reason,
    retryAfterS,
    requestId,
    issues: Array.isArray(error.data?.issues) ? error.data.issues : [],
    body: json,
  })
}

/** @param {string} text */
function sentence(text) {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/**
 * @param {number} status
 * @param {number | undefined} retryAfterS
 * @param {string | null} requestId
 */
function meaningOf(status, retryAfterS, requestId) {
  const when = retryAfterS === undefined ? 'in a moment' : `in ${retryAfterS} s`
  if (status === 401) return { sentence: 'Your session has ended.', next: 'Sign in again.' }
  if (status === 402)
    return { sentence: 'This needs a payment.', next: 'Pay on the screen Waiting, or with a wallet.' }
  if (status === 403)
    return {
      sentence: 'Your account may not do this.',
      next: 'Sign in with an operator’s account, or have the owner do it.',
    }
  if (status === 404)
    return { sentence: 'This does not exist.', next: 'It may have been deleted, or belong to another owner.' }
  if (status === 409)
    return { sentence: 'This has changed in the meantime.', next: 'Reload the page and try again.' }
  if (status === 413) return { sentence: 'This is too large.', next: 'Send less, or a smaller file.' }
  if (status === 429) return { sentence: 'There are too many requests.', next: `Try again ${when}.` }
  if (status === 503) return { sentence: 'The gateway cannot do this now.', next: `Try again ${when}.` }
  if (status >= 500)
    return {
      sentence: 'The gateway failed.',
      next: `Try again. If it fails again, search its log for the request ${requestId ?? ''}.`,
    }
  return { sentence: 'The request was refused.', next: 'Correct the entry and try again.' }
}
