import {
  CLIENT_CAPABILITIES_META_KEY,
  type JSONRPCRequest,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { FastifyRequest } from 'fastify'
import type { CallerCalls } from '../calls/agent-calls.ts'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import { type ElicitationSupport, elicitationSupport } from './pauses.ts'

export const tasksExtension = 'io.modelcontextprotocol/tasks'

/** One HTTP request of an MCP client. */
export interface Exchange {
  /** What the session states about the client, if it began with `initialize`. */
  session: ElicitationSupport
  request: FastifyRequest
  caller: AuthenticatedCaller
  /** The calls of agents in the name of the caller. */
  calls: CallerCalls
  /** The agents that the caller may see. */
  directory: AgentDirectory
  /** The slug of the agent that the address names; undefined at the gateway's address. */
  agent: string | undefined
  /** Sends a request to a client before 2026-07-28, on the stream of its request. */
  push: (request: JSONRPCRequest, context: RequestContext) => Promise<void>
  /** The tools of the response as JSON, if the response has an empty list in their place. */
  toolsJson?: Buffer
  /** The methods in the body: one, or those of a batch. */
  methods: readonly string[]
}

/** The facts about a request and the ways to its client, which are those of the library. */
export interface RequestContext {
  mcpReq: Pick<
    ServerContext['mcpReq'],
    'id' | '_meta' | 'envelope' | 'signal' | 'notify' | 'requestState' | 'inputResponses'
  >
}

/** What the client of a request can do. Clients before 2026-07-28 do not state it in their requests. */
export interface ClientSupport {
  /** Whether the client speaks revision 2026-07-28 or later. */
  isModern: boolean
  tasks: boolean
  elicitation: ElicitationSupport
}

export function clientSupport(
  { mcpReq: { envelope } }: RequestContext,
  { session }: Pick<Exchange, 'session'>,
): ClientSupport {
  const capabilities = isObject(envelope) ? envelope[CLIENT_CAPABILITIES_META_KEY] : undefined
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined
  return {
    isModern: envelope !== undefined,
    tasks: isObject(extensions) && isObject(extensions[tasksExtension]),
    elicitation: envelope === undefined ? session : elicitationSupport(capabilities),
  }
}
