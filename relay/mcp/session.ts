import {
  Client,
  type ConnectOptions,
  type ElicitResult,
  type Progress,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from '@modelcontextprotocol/client'
import { version } from '@parley/kit/process/version'
import { currentTrace, inSpan } from '@parley/kit/telemetry/tracing'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine, cleanText } from '@parley/wire/model/clean-text'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import { AgentRefused, AgentUnreachable, InvalidAgentAnswer } from '../client/agent-errors.ts'
import type { InputResponses } from './input-requests.ts'
import { internalError, type McpTransport, taskField } from './mcp-transport.ts'
import { toolsMax } from './tools.ts'

/** The server answered a request with an error of JSON-RPC. */
export class ServerRefused extends Error {
  override readonly name = 'ServerRefused'
  readonly code: number

  constructor(code: number, message: string) {
    super(cleanLine(message, 1000) || `The server answered with the error ${code}`)
    this.code = code
  }
}

/** The server no longer knows the session, and has not processed the request. */
export class SessionEnded extends Error {
  override readonly name = 'SessionEnded'
}

/** What a server states about itself. Its texts are bounded and without control characters. */
export interface ServerInfo {
  name: string
  title: string | undefined
  version: string
  /** The instructions for models, which are shown as a description only. */
  instructions: string
  /** The revision of the protocol. */
  revision: string
  era: 'legacy' | 'modern'
}

/** A task handle of the tasks extension. */
const taskHandle = z.looseObject({
  taskId: z.string().min(1).max(1024),
  status: z.enum(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  statusMessage: z.string().optional().catch(undefined),
  pollIntervalMs: z.number().min(0).optional().catch(undefined),
  inputRequests: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.unknown().optional(),
})
export type TaskHandle = z.infer<typeof taskHandle>

/** The answer to a call of a tool. */
export type ToolAnswer =
  | { kind: 'result'; result: Record<string, unknown> }
  | { kind: 'task'; task: TaskHandle }
  | { kind: 'input'; requests: unknown; state: string | undefined }

export interface ToolCall {
  name: string
  inputSchema: JsonObject
  arguments: JsonObject
  /** The answers to an earlier answer of the kind `input`, with its state. */
  responses?: InputResponses | undefined
  state?: string | undefined
  progress: (text: string) => void
  signal: AbortSignal
}

export interface SessionTiming {
  /** Time limit for the handshake and for lists. Default 15 s. */
  requestMs?: number
  /** The longest time without progress of a tool, and in total. Default 10 minutes and 1 hour. */
  callMs?: number
  callMaxMs?: number
}

const pagesMax = 100
const listMaxChars = 8 * 1024 * 1024

/**
 * A session with an MCP server of the revisions 2024-11-05 to 2025-11-25 (legacy) or 2026-07-28 (modern).
 *
 * Every call throws AgentUnreachable, AgentRefused, ServerRefused, SessionEnded or InvalidAgentAnswer, or the signal's reason.
 */
export class McpSession implements AsyncDisposable {
  readonly info: ServerInfo
  /** Answers requests of a legacy server for input. By default, they are canceled. */
  onElicitation: ((params: Record<string, unknown>, signal: AbortSignal) => Promise<ElicitResult>) | undefined
  isClosed = false
  readonly #client: Client
  readonly #transport: McpTransport
  readonly #timing: Required<SessionTiming>

  private constructor(client: Client, transport: McpTransport, timing: SessionTiming) {
    this.#client = client
    this.#transport = transport
    this.#timing = { requestMs: 15_000, callMs: 600_000, callMaxMs: 3_600_000, ...timing }
    this.info = infoOf(client)
    Object.assign(client, { onclose: () => (this.isClosed = true) })
  }

  /** @param legacy skips the request of the modern revision, at which some servers end */
  static async open(
    transport: McpTransport,
    {
      signal,
      legacy = false,
      timing = {},
    }: { signal?: AbortSignal; legacy?: boolean; timing?: SessionTiming } = {},
  ): Promise<McpSession> {
    const session: { opened?: McpSession } = {}
    const client = new Client(
      { name: 'parley', version },
      {
        capabilities: {
          elicitation: { form: {}, url: {} },
          extensions: { 'io.modelcontextprotocol/tasks': {} },
        },
        versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(5000, timing.requestMs ?? 5000) } },
        inputRequired: { autoFulfill: false },
      },
    )
    client.setRequestHandler('elicitation/create', async ({ params }, { mcpReq }) => {
      const answer = session.opened?.onElicitation
      return answer === undefined ? { action: 'cancel' } : answer({ ...params }, mcpReq.signal)
    })
    const options: ConnectOptions = {
      timeout: timing.requestMs ?? 15_000,
      ...(signal !== undefined && { signal }),
      ...(legacy && { prior: { kind: 'legacy' } }),
    }
    try {
      await client.connect(transport, options)
    } catch (error) {
      await client.close().catch(() => {})
      await transport.close().catch(() => {})
      signal?.throwIfAborted()
      throw failureOf(error, transport)
    }
    session.opened = new McpSession(client, transport, timing)
    return session.opened
  }

  /** Reads all pages of the list of tools, unvalidated. */
  async listTools(signal?: AbortSignal): Promise<unknown[]> {
    const tools: unknown[] = []
    let cursor: string | undefined
    let chars = 0
    for (let page = 1; page <= pagesMax; page += 1) {
      const params = cursor === undefined ? {} : { cursor }
      const options = { timeout: this.#timing.requestMs, ...(signal !== undefined && { signal }) }
      const answer = await this.#try(signal, () =>
        this.#client.request(
          { method: 'tools/list', params },
          z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() }),
          options,
        ),
      )
      chars += JSON.stringify(answer.tools).length
      if (chars > listMaxChars)
        throw new InvalidAgentAnswer(`The list of tools is larger than ${listMaxChars} characters`)
      tools.push(...answer.tools)
      if (answer.nextCursor === undefined || answer.nextCursor === cursor || tools.length >= toolsMax) break
      cursor = answer.nextCursor
    }
    return tools
  }

  /** Makes a call a step of the trace, which the server receives in `_meta`. */
  callTool(call: ToolCall): Promise<ToolAnswer> {
    const attributes = {
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': call.name,
    }
    return inSpan('tools/call', { kind: 'client', attributes }, () => this.#callTool(call))
  }

  async #callTool(call: ToolCall): Promise<ToolAnswer> {
    const trace = currentTrace()
    const { name, inputSchema, responses, state, signal, progress } = call
    const params = {
      name,
      arguments: call.arguments,
      ...(responses !== undefined && { inputResponses: responses }),
      ...(state !== undefined && { requestState: state }),
      ...(trace !== undefined && { _meta: { ...trace } }),
    }
    const options = {
      signal,
      timeout: this.#timing.callMs,
      maxTotalTimeout: this.#timing.callMaxMs,
      resetTimeoutOnProgress: true,
      allowInputRequired: true,
      // Its parameters may have to be repeated in headers. Without an output schema, none is compiled.
      toolDefinition: { name, inputSchema: { ...inputSchema, type: 'object' as const } },
      onprogress: (given: Progress) => progress(progressText(given)),
    }
    const result: Record<string, unknown> = await this.#try(signal, () =>
      this.#client.callTool(params, options),
    )
    if (result['resultType'] === 'input_required') {
      const { inputRequests, requestState } = result
      return {
        kind: 'input',
        requests: inputRequests,
        state: typeof requestState === 'string' ? requestState : undefined,
      }
    }
    const { _meta: meta } = result
    const task = isObject(meta) ? taskHandle.safeParse(meta[taskField]).data : undefined
    return task === undefined ? { kind: 'result', result } : { kind: 'task', task }
  }

  async getTask(taskId: string, signal: AbortSignal): Promise<TaskHandle> {
    const result = await this.#task('get', { taskId }, signal)
    const task = taskHandle.safeParse(result).data
    if (task === undefined) throw new InvalidAgentAnswer('The server answered without a valid task')
    if (task.taskId !== taskId) throw new InvalidAgentAnswer('The server answered with another task')
    return task
  }

  async updateTask(taskId: string, inputResponses: InputResponses, signal: AbortSignal): Promise<void> {
    await this.#task('update', { taskId, inputResponses }, signal)
  }

  async cancelTask(taskId: string, signal: AbortSignal): Promise<void> {
    await this.#task('cancel', { taskId }, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true
    await this.#client.close().catch(() => {})
  }

  #task(method: 'get' | 'update' | 'cancel', params: Record<string, unknown>, signal: AbortSignal) {
    const options = { signal, timeout: this.#timing.requestMs }
    return this.#try(signal, () =>
      this.#client.request({ method: `parley/tasks/${method}`, params }, z.looseObject({}), options),
    )
  }

  async #try<T>(signal: AbortSignal | undefined, request: () => Promise<T>): Promise<T> {
    try {
      return await request()
    } catch (error) {
      signal?.throwIfAborted()
      throw failureOf(error, this.#transport)
    }
  }
}

function progressText({ progress, total, message }: Progress): string {
  const text = cleanLine(message ?? '', 1000)
  if (text !== '') return text
  return total === undefined ? `Progress: ${progress}` : `Progress: ${progress} of ${total}`
}

function infoOf(client: Client): ServerInfo {
  const { name = '', version: given = '', title } = client.getServerVersion() ?? {}
  return {
    name: cleanLine(name, 128),
    title: title === undefined ? undefined : cleanLine(title, 128) || undefined,
    version: cleanLine(given, 50) || '1.0.0',
    instructions: cleanText((client.getInstructions() ?? '').slice(0, 4000)).trim(),
    revision: client.getNegotiatedProtocolVersion() ?? '',
    era: client.getProtocolEra() === 'modern' ? 'modern' : 'legacy',
  }
}

const knownErrors = [AgentUnreachable, AgentRefused, InvalidAgentAnswer]

/** Returns the failure of a request in our terms. The client library replaces some errors with its own. */
function failureOf(error: unknown, transport: McpTransport): unknown {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
    if (knownErrors.some((known) => cause instanceof known)) return cause
  if (error instanceof ProtocolError) {
    if (error.code !== internalError || transport.lastFailure === undefined)
      return new ServerRefused(error.code, error.message)
  }
  const { lastFailure } = transport
  if (knownErrors.some((known) => lastFailure instanceof known)) return lastFailure
  if (error instanceof SdkHttpError) {
    if (error.status === 404 && transport.sessionId !== undefined)
      return new SessionEnded('The session has ended')
    return new InvalidAgentAnswer(
      `The server answered HTTP ${error.status ?? 'without a status'}`,
      error.status,
    )
  }
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.RequestTimeout)
      return new AgentUnreachable('The server did not answer in time', { received: true, cause: error })
    if (error.code === SdkErrorCode.ConnectionClosed)
      return new AgentUnreachable('The connection to the server ended', { received: true, cause: error })
    if (error.code === SdkErrorCode.NotConnected)
      return new AgentUnreachable('The server is not connected', { received: false, cause: error })
  }
  return new InvalidAgentAnswer(
    error instanceof Error ? cleanLine(error.message, 500) : 'The answer is not valid',
  )
}
