import type { Codec, RestRoute, RpcPath } from '@parley/wire/codecs/codec'
import type { ErrorName } from '@parley/wire/errors'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { z } from 'zod'
import type { Scope } from '../auth/caller.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The description of the route in the OpenAPI document. Every route has one. */
    api?: RouteDescription
  }
}

/** The groups of routes in the OpenAPI document. */
export const tags = {
  tasks: 'Send messages and follow tasks',
  discovery: 'Agent cards, skills and catalogs',
  negotiation: 'Find the best agent for a task',
  payments: 'Pay for tasks, and the ledger of payments',
  identity: 'DID documents and public keys',
  registry: 'Registered agents and their policies',
  clients: 'OAuth clients and long-lived keys',
  oauth: 'The OAuth 2.0 server',
  operator: 'What the agents do: tasks, decisions, webhooks, usage and the audit log',
  operations: 'Health, metrics and maintenance',
  agents: 'Requests that the gateway forwards to an agent',
  mcp: 'Model Context Protocol',
  openai: 'The OpenAI-compatible API',
  console: 'The console for people',
} as const

/**
 * Who may call a route: every caller, a caller with a valid token, with a token of a scope, or with the HTTP Basic credentials
 * of a client. With `optional`, a token is not required, but one that is sent must be valid. `statement` is an operator statement
 * of the gateway, and `session` the cookie of a session of the console.
 */
export type Access = 'public' | 'optional' | 'token' | 'basic' | 'session' | 'statement' | Scope

/** Content by media type. */
export type Content = Readonly<Record<string, z.ZodType>>

/** A stream of server-sent events. */
export const eventStream: Content = {
  'text/event-stream': z.object({
    data: z.string().optional(),
    id: z.string().optional(),
    event: z.string().optional(),
    retry: z.int().optional(),
  }),
}

export interface DescribedResponse {
  description: string
  /** The schema of a JSON response. */
  json?: z.ZodType
  /** Responses of other media types. */
  content?: Content
  /** Descriptions of headers by name. */
  headers?: Readonly<Record<string, string>>
}

/** An error of the table, with its status if that differs from the table. */
export type DescribedError = ErrorName | readonly [error: ErrorName, status: number]

/**
 * An operation in the OpenAPI document. Its schemas are those with which the route parses requests. The errors that every route
 * of its kind has (spec/http-api.md#errors) are added to its own.
 */
export interface OperationDescription {
  /** At most one line. */
  summary: string
  /** Markdown. */
  description?: string
  tag: keyof typeof tags
  access: Access
  /** The parameters of the path. Parameters without a schema here are strings. */
  params?: z.ZodObject
  /** The name of the wildcard of the path. Default `path`. */
  wildcard?: string
  query?: z.ZodObject
  headers?: z.ZodObject
  body?: {
    json?: z.ZodType
    content?: Content
    /** Default true. */
    required?: boolean
  }
  /** By status, or by the class of the status, such as `2XX`. */
  responses: Readonly<Partial<Record<number | `${2 | 3 | 4 | 5}XX`, DescribedResponse>>>
  errors?: readonly DescribedError[]
  /** Replaces the JSON-RPC envelope as the form of errors; `none` if all responses are in `responses`. */
  errorContent?: Content | 'none'
  /** The name of this form, with which operations share their errors in the document. */
  errorName?: string
}

/** The operations of a route with a wildcard: by path, and by method in lower case. */
export interface CoveredOperations {
  covers: Readonly<Record<string, Readonly<Record<string, OperationDescription>>>>
}

/** Descriptions with many schemas are functions, which load them when the document is requested. */
export type RouteDescription = OperationDescription | (() => Described | Promise<Described>)

export type Described = OperationDescription | CoveredOperations

/** The description of a path on which calls are answered. Its schemas are those of the dialects. */
export const describedCall =
  ({ path, method }: RpcPath): RouteDescription =>
  async () =>
    (await import('./call-descriptions.ts')).rpcDescription(path, method)

/** The description of a path without a JSON-RPC envelope. */
export const describedRest =
  (codec: Codec, route: RestRoute): RouteDescription =>
  async () =>
    (await import('./call-descriptions.ts')).restDescription(codec, route)

/** A route of a server. Its path is a pattern of Fastify. */
export interface DescribedRoute {
  path: string
  methods: readonly string[]
  description: RouteDescription | undefined
}

const routesOf = new WeakMap<FastifyInstance, DescribedRoute[]>()

/** Records the routes that are added to the server and to its plugins. */
export function recordRoutes(app: FastifyInstance): void {
  const routes: DescribedRoute[] = []
  routesOf.set(app, routes)
  app.addHook('onRoute', ({ url, method, config }: RouteOptions) => {
    // The catch-all route of @fastify/cors handles preflights.
    if (url === '*') return
    // Fastify answers HEAD wherever it answers GET.
    const methods = [method].flat().filter((one) => one !== 'HEAD')
    if (methods.length > 0) routes.push({ path: url, methods, description: config?.api })
  })
}

export function recordedRoutes(app: FastifyInstance): readonly DescribedRoute[] {
  return routesOf.get(app) ?? []
}
