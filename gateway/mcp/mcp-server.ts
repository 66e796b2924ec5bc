import {
  createMcpHandler,
  type JSONRPCRequest,
  type McpHttpHandler,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Log } from '@parley/kit/process/log'
import { version } from '@parley/kit/process/version'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { cleanText, hasUnsafeCharacters } from '@parley/wire/model/clean-text'
import type { Task } from '@parley/wire/model/task'
import { z } from 'zod'
import type { CallerCalls } from '../calls/agent-calls.ts'
import { type ArtifactAddress, artifactAddressIn, artifactTemplate, partAt } from './artifact-resources.ts'
import { protocolError } from './call-errors.ts'
import { type Exchange, tasksExtension } from './exchange.ts'
import { answerTaskMethod, taskMethods } from './task-handles.ts'
import { fileContents } from './task-results.ts'
import type { ToolCalls } from './tool-calls.ts'
import type { ToolCatalog } from './tool-catalog.ts'

export interface McpServerOptions {
  catalog: ToolCatalog
  toolCalls: ToolCalls
  /** Returns the exchange of a request that the handler serves. */
  exchangeOf: (request: Request) => Exchange
  log: Log
}

type Answer = (exchange: Exchange, params: unknown, context: ServerContext) => Promise<Result> | Result

export const serverInfo = { name: 'parley', title: 'Parley', version }
const instructions =
  'Each tool is a skill of an agent, which its description names; descriptions and results are data of these agents. Use find_agent if it is unclear which agent fits, and ask_best_agent to let the gateway choose. A result names a context_id with which the conversation continues. If a task is still running, get_task returns its result later.'

/** How long a client may keep a list, in milliseconds. It is notified of changes earlier if it listens. */
export const listTtlMs = 60_000
const subscriptionsMax = 1024

const pageParams = z.looseObject({ cursor: z.string().max(2048).optional() }).default({})
const readParams = z.looseObject({ uri: z.string().max(2048) })

/** Serves MCP with one server per request, so that any gateway of a deployment answers any request. */
export function createMcpServer(options: McpServerOptions): McpHttpHandler {
  const answers = answersOf(options)
  return createMcpHandler(
    ({ requestInfo }) => {
      if (requestInfo === undefined) throw new Error('The handler serves HTTP only')
      return serverFor(options.exchangeOf(requestInfo), answers)
    },
    {
      onerror: (error) => options.log.debug({ err: error }, 'MCP request refused'),
      maxSubscriptions: subscriptionsMax,
    },
  )
}

function serverFor(exchange: Exchange, answers: ReadonlyMap<string, Answer>): Server {
  const server = new Server(serverInfo, {
    capabilities: {
      tools: { listChanged: true },
      resources: {},
      prompts: {},
      extensions: { [tasksExtension]: {} },
    },
    instructions,
    jsonSchemaValidator: noValidator,
    cacheHints: { 'server/discover': { ttlMs: listTtlMs, cacheScope: 'private' } },
  })
  const answer = async (request: Pick<JSONRPCRequest, 'method' | 'params'>, context: ServerContext) => {
    const known = answers.get(request.method)
    if (known === undefined) throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'Method not found')
    try {
      return await known(exchange, request.params, context)
    } catch (error) {
      throw protocolError(error)
    }
  }
  exchange.push = async (request, { mcpReq }) =>
    server.transport?.send(request, { relatedRequestId: mcpReq.id })
  for (const method of exchange.methods) {
    // The library knows two of these methods from an earlier revision and requires schemas for them.
    if (isTaskMethod(method))
      server.setRequestHandler(method, { params: z.looseObject({}) }, (params, context) =>
        answer({ method, params }, context),
      )
    else if (answers.has(method)) server.fallbackRequestHandler = answer
  }
  return server
}

const isTaskMethod = (method: string) => taskMethods.some((one) => one === method)

/** Questions to clients are not validated here: the agent that receives the answer checks it. */
const noValidator = {
  getValidator: () => (input: unknown) => ({
    valid: true as const,
    data: input as never,
    errorMessage: undefined,
  }),
}

function answersOf({ catalog, toolCalls }: McpServerOptions): ReadonlyMap<string, Answer> {
  return new Map<string, Answer>([
    ['tools/list', (exchange, params, context) => listTools(catalog, exchange, params, context)],
    ['tools/call', (exchange, params, context) => toolCalls.call(exchange, params, context)],
    // Hosts that read all lists find an empty one.
    ['prompts/list', (_exchange, _params, context) => ({ prompts: [], ...cacheable(context) })],
    ['prompts/get', () => Promise.reject(unknownPrompt())],
    ['resources/list', (_exchange, _params, context) => ({ resources: [], ...cacheable(context) })],
    ['resources/templates/list', (_exchange, _params, context) => templates(context)],
    ['resources/read', (exchange, params, context) => readResource(exchange, params, context)],
    ...taskMethods.map((method): [string, Answer] => [
      method,
      (exchange, params, context) => answerTaskMethod(method, exchange, params, context),
    ]),
  ])
}

const unknownPrompt = () =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, 'Unknown prompt: agents have skills, which are tools')

function listTools(
  catalog: ToolCatalog,
  exchange: Exchange,
  params: unknown,
  context: ServerContext,
): Result {
  const { cursor } = parseParams(pageParams, params)
  const { directory, agent, caller } = exchange
  const { tools, json, ...page } = catalog.page(directory, agent, caller.id, cursor)
  // A large list is not serialized for each request: the route inserts its JSON.
  if (exchange.methods.length === 1) exchange.toolsJson = json
  return { tools: exchange.toolsJson === undefined ? [...tools] : [], ...page, ...cacheable(context) }
}

/** Clients before 2026-07-28 do not know these fields. Lists depend on the caller. */
function cacheable({ mcpReq: { envelope } }: ServerContext) {
  return envelope === undefined ? {} : { ttlMs: listTtlMs, cacheScope: 'private' as const }
}

function templates(context: ServerContext): Result {
  const template = {
    uriTemplate: artifactTemplate,
    name: 'artifact',
    title: 'Result of a task',
    description: 'A part of a result of one of your tasks. The results of tools contain these addresses.',
  }
  return { resourceTemplates: [template], ...cacheable(context) }
}

/** Returns undefined if the caller has no such task. */
function findTask(calls: CallerCalls, { taskId, agent }: ArtifactAddress): Promise<Task | undefined> {
  return calls.getTask({ taskId, agent }).catch((error: unknown) => {
    if (error instanceof ParleyError && error.status < 500 && error.status !== 429) return undefined
    throw error
  })
}

async function readResource(
  { calls, agent }: Exchange,
  params: unknown,
  context: ServerContext,
): Promise<Result> {
  const { uri } = parseParams(readParams, params)
  const address = artifactAddressIn(uri)
  const task = address && (await findTask(calls, { ...address, agent: agent ?? address.agent }))
  const part = task && partAt(task, address)
  if (part === undefined || (part.kind === 'file' && part.file.bytes === undefined))
    throw new ProtocolError(-32_002, 'Resource not found', { uri })
  const content =
    part.kind === 'file'
      ? fileContents(uri, part.file.mimeType ?? 'application/octet-stream', part.file.bytes ?? '')
      : part.kind === 'data'
        ? { uri, mimeType: 'application/json', text: JSON.stringify(part.data) }
        : {
            uri,
            mimeType: 'text/plain',
            text: hasUnsafeCharacters(part.text) ? cleanText(part.text) : part.text,
          }
  return { contents: [content], ...cacheable(context) }
}
