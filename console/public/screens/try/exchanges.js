import { signal } from '@preact/signals'
import { request } from '../../api.js'
import { frames } from './frames.js'

/** The requests of a conversation and their answers, as they were on the wire. */

/**
 * @typedef {object} Exchange
 * @property {string} id The ID of the JSON-RPC request
 * @property {string} path
 * @property {import('./requests.js').RpcRequest} request
 * @property {number} at
 * @property {number | undefined} status The HTTP status
 * @property {Record<string, string>} headers The headers of the answer that explain it
 * @property {string[]} received The body of the answer, or the data of its frames
 * @property {number} omitted The number of frames that are not kept
 * @property {boolean} done
 */

const exchangesMax = 50
const framesMax = 300
/** Retries of a request that the server could not process yet. The idempotency key prevents a second task. */
const retriesMax = 3
const retryWaitMaxS = 10
const shownHeaders = ['content-type', 'x-agent', 'x-negotiation-id', 'x-request-id', 'retry-after']

export class Exchanges {
  /** Newest first. */
  list = signal(/** @type {Exchange[]} */ ([]))

  /**
   * Sends a request, and records it with the head of its answer. A refusal that names a short wait is retried after it.
   * @param {string} path
   * @param {import('./requests.js').RpcRequest} body
   * @param {AbortSignal} abort
   * @returns {Promise<Response>}
   */
  async send(path, body, abort) {
    const { id } = body
    const started = { id, path, request: body, at: Date.now(), status: undefined, headers: {}, received: [] }
    this.list.value = [{ ...started, omitted: 0, done: false }, ...this.list.value].slice(0, exchangesMax)
    const headers = { accept: 'text/event-stream, application/json', 'idempotency-key': id }
    const post = () =>
      request(path, { method: 'POST', body, signal: abort, headers }).catch((error) => {
        this.#change(id, { done: true, received: [String(error)] })
        throw error
      })
    let response = await post()
    for (let retries = 0; retries < retriesMax; retries++) {
      const waitS = Number(response.headers.get('retry-after'))
      if (response.status !== 503 || !(waitS > 0 && waitS <= retryWaitMaxS)) break
      await response.body?.cancel()
      await wait(waitS * 1000, abort)
      response = await post()
    }
    const kept = shownHeaders.flatMap((name) => {
      const value = response.headers.get(name)
      return value === null ? [] : [[name, value]]
    })
    this.#change(id, { status: response.status, headers: Object.fromEntries(kept) })
    return response
  }

  /**
   * Reads the JSON of an answer.
   * @param {string} id
   * @param {Response} response
   * @returns {Promise<any>}
   */
  async json(id, response) {
    const text = await response.text()
    this.#change(id, { received: [text], done: true })
    try {
      return JSON.parse(text)
    } catch {
      return undefined
    }
  }

  /**
   * Yields the events of an answer.
   * @param {string} id
   * @param {ReadableStream<BufferSource>} body
   * @returns {AsyncGenerator<any>}
   */
  async *events(id, body) {
    try {
      for await (const data of frames(body)) {
        this.#received(id, data)
        yield JSON.parse(data)
      }
    } finally {
      this.#change(id, { done: true })
    }
  }

  /**
   * @param {string} id
   * @param {string} data
   */
  #received(id, data) {
    const { received = [], omitted = 0 } = this.list.value.find((one) => one.id === id) ?? {}
    if (received.length < framesMax) this.#change(id, { received: [...received, data] })
    else this.#change(id, { omitted: omitted + 1 })
  }

  /**
   * @param {string} id
   * @param {Partial<Exchange>} changes
   */
  #change(id, changes) {
    this.list.value = this.list.value.map((one) => (one.id === id ? { ...one, ...changes } : one))
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} abort rejects the wait
 * @returns {Promise<void>}
 */
function wait(ms, abort) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(abort.reason)
    }
    const timer = setTimeout(() => {
      abort.removeEventListener('abort', stop)
      resolve()
    }, ms)
    abort.addEventListener('abort', stop, { once: true })
    if (abort.aborted) stop()
  })
}
