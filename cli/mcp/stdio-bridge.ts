import { PassThrough, Writable } from 'node:stream'
import {
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  parseJSONRPCMessage,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import type { TokenSource } from '../server/token-source.ts'
import { CommandFailed } from '../terminal/faults.ts'
import { type Io, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

const initialized = z.looseObject({ protocolVersion: z.string() })
const cancellation = z.looseObject({
  method: z.literal('notifications/cancelled'),
  params: z.looseObject({ requestId: z.union([z.string(), z.number()]) }),
})
const taskRequest = z.looseObject({
  method: z.string().startsWith('tasks/'),
  params: z.looseObject({ taskId: z.string() }),
})
const internalError = -32603
/** Time for running requests after the host has closed the input. */
const drainMs = 2000

export interface BridgeTarget {
  /** The address of the MCP server. */
  url: string
  token: TokenSource | undefined
}

/** Connects the MCP host that started this process to the MCP server at `url` until the host closes the input. */
export async function bridgeStdio(io: Io, target: BridgeTarget): Promise<void> {
  const bridge = new StdioBridge(io, target)
  await bridge.run()
}

/** Passes messages on in both directions. It reads only those that open a session or cancel a request. */
class StdioBridge {
  readonly #io: Io
  readonly #url: string
  readonly #host: StdioServerTransport
  readonly #server: StreamableHTTPClientTransport
  /** The requests of the host without an answer. */
  readonly #running = new Map<string | number, AbortController>()
  readonly #ended = Promise.withResolvers<void>()
  #handshake: string | number | undefined
  #isInputClosed = false

  constructor(io: Io, { url, token }: BridgeTarget) {
    this.#io = io
    this.#url = url
    this.#host = hostOf(io)
    this.#server = new StreamableHTTPClientTransport(new URL(url), {
      fetch: fetchWithTaskName,
      ...(token !== undefined && { authProvider: { token } }),
    })
    const end = this.#ended.resolve
    Object.assign(this.#host, {
      onmessage: (message: JSONRPCMessage) => this.#fromHost(message),
      onclose: end,
    })
    Object.assign(this.#server, { onmessage: (message: JSONRPCMessage) => this.#fromServer(message) })
    io.stdin.once('end', () => {
      this.#isInputClosed = true
      if (this.#running.size === 0) end()
      else setTimeout(end, drainMs).unref()
    })
  }

  async run(): Promise<void> {
    await this.#server.start()
    await this.#host.start()
    await this.#ended.promise
    await this.#server.terminateSession().catch(() => {})
    await this.#server.close()
  }

  #fromHost(message: JSONRPCMessage): void {
    const canceled = cancellation.safeParse(message)
    if (isJSONRPCRequest(message) && message.method === 'initialize') this.#handshake = message.id
    void this.#send(message).finally(() => {
      if (canceled.success) this.#running.get(canceled.data.params.requestId)?.abort()
    })
  }

  async #send(message: JSONRPCMessage): Promise<void> {
    const abort = new AbortController()
    if (isJSONRPCRequest(message)) this.#running.set(message.id, abort)
    const onRequestStreamEnd = () => this.#fail(message, new Error('the connection was closed'))
    await this.#server
      .send(message, { requestSignal: abort.signal, onRequestStreamEnd })
      .catch((error: unknown) => this.#fail(message, error))
  }

  #fromServer(message: JSONRPCMessage): void {
    const isResult = isJSONRPCResultResponse(message)
    if (isResult && message.id === this.#handshake) {
      const { data } = initialized.safeParse(message.result)
      if (data !== undefined) this.#server.setProtocolVersion(data.protocolVersion)
    }
    this.#answer(message)
    if ((isResult || isJSONRPCErrorResponse(message)) && message.id !== undefined) this.#settle(message.id)
  }

  /** Answers a request that has no answer yet. */
  #fail(message: JSONRPCMessage, error: unknown): void {
    if (isJSONRPCRequest(message) && !this.#running.has(message.id)) return
    const answer = answerIn(error)
    const text = oneLine(`${this.#url}: ${error instanceof Error ? error.message : String(error)}`, 500)
    if (answer === undefined) say(this.#io, `parley mcp: ${text}`)
    if (!isJSONRPCRequest(message)) return
    const { id } = message
    this.#answer(answer ?? { jsonrpc: '2.0', id, error: { code: internalError, message: text } })
    this.#settle(id)
  }

  #answer(message: JSONRPCMessage): void {
    this.#host.send(message).catch(() => this.#ended.resolve())
  }

  #settle(id: string | number): void {
    this.#running.delete(id)
    if (this.#isInputClosed && this.#running.size === 0) this.#ended.resolve()
  }
}

/** @throws CommandFailed if the output is not a stream of a process */
function hostOf({ stdin, stdout }: Io): StdioServerTransport {
  if (!(stdout instanceof Writable)) throw new CommandFailed('--stdio needs an output.')
  // The transport closes when its input ends, and could then not send the answers of running requests.
  const input = new PassThrough()
  stdin.pipe(input, { end: false })
  return new StdioServerTransport(input, stdout)
}

/** The transport of the SDK sends the header `Mcp-Name` for tools but not for tasks. */
const fetchWithTaskName: typeof fetch = (input, init) => {
  const { data } = taskRequest.safeParse(typeof init?.body === 'string' ? jsonOf(init.body) : undefined)
  if (data === undefined) return fetch(input, init)
  const headers = new Headers(init?.headers)
  if (headers.has('mcp-method')) headers.set('mcp-name', data.params.taskId)
  return fetch(input, { ...init, headers })
}

/** The JSON-RPC error that a refusal has as its body. */
function answerIn(error: unknown): JSONRPCMessage | undefined {
  if (!(error instanceof SdkHttpError) || typeof error.data?.text !== 'string') return undefined
  try {
    const answer = parseJSONRPCMessage(jsonOf(error.data.text))
    return isJSONRPCErrorResponse(answer) && answer.id !== undefined ? answer : undefined
  } catch {
    return undefined
  }
}
