import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { refuseHostile } from '@parley/wire/jsonrpc/parse-json'

/** The methods of the tasks extension, which the client library does not send, and the names under which it sends them. */
const taskMethods = new Map([
  ['parley/tasks/get', 'tasks/get'],
  ['parley/tasks/update', 'tasks/update'],
  ['parley/tasks/cancel', 'tasks/cancel'],
])
/** The field of `_meta` in which the client library passes on a task handle, which it does not know. */
export const taskField = 'parley/task'

type Id = string | number

/**
 * Checks the messages between the client library and a server: answers are refused if they are nested too deeply, a request fails when
 * the stream of its answer ends without one, and the methods and results of the tasks extension pass the library.
 */
export class McpTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** The last failure of a request, which the client library may replace with its own. */
  lastFailure: unknown
  readonly #inner: Transport
  /** The requests without an answer. */
  readonly #open = new Set<Id>()

  /** @param inner creates the transport; its parameter receives failures of requests */
  constructor(inner: (failed: (error: unknown) => void) => Transport) {
    this.#inner = inner((error) => {
      this.lastFailure = error
    })
    Object.assign(this.#inner, {
      onclose: () => this.onclose?.(),
      onerror: (error: Error) => this.onerror?.(error),
      onmessage: (message: JSONRPCMessage) => this.#receive(message),
    })
  }

  get hasPerRequestStream(): boolean {
    return this.#inner.hasPerRequestStream === true
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version)
  }

  start(): Promise<void> {
    return this.#inner.start()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    const id = 'method' in message && 'id' in message ? message.id : undefined
    if (id === undefined) return this.#inner.send(message, options)
    this.#open.add(id)
    const name = 'method' in message ? taskMethods.get(message.method) : undefined
    const sent = name === undefined ? message : { ...message, method: name }
    await this.#inner.send(sent, { ...options, onRequestStreamEnd: () => this.#ended(id) })
  }

  #receive(message: JSONRPCMessage): void {
    if (!('result' in message) && !('error' in message)) {
      if (isAcceptable(message)) this.onmessage?.(message)
      return
    }
    const { id } = message
    // An answer to no request, or a second one.
    if (id === undefined || !this.#open.delete(id)) return
    if (!isAcceptable(message)) this.#fail(id, 'The answer of the server is nested too deeply')
    else this.onmessage?.('result' in message ? { ...message, result: taskResult(message.result) } : message)
  }

  #ended(id: Id): void {
    if (this.#open.delete(id)) this.#fail(id, 'The server ended its answer without a result')
  }

  #fail(id: Id, message: string): void {
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: internalError, message } })
  }
}

/** The code of the errors that this transport creates. */
export const internalError = -32_603

function isAcceptable(message: JSONRPCMessage): boolean {
  try {
    refuseHostile(message)
    return true
  } catch (error) {
    if (error instanceof ParleyError) return false
    throw error
  }
}

/** Returns a task handle as a complete result, which the client library accepts. */
function taskResult<T extends Record<string, unknown>>(result: T): T {
  if (result['resultType'] !== 'task') return result
  const { resultType: _, _meta: meta, ...task } = result
  const given = isObject(meta) ? meta : {}
  return { ...result, resultType: 'complete', content: [], _meta: { ...given, [taskField]: task } }
}
