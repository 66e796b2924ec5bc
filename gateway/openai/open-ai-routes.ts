import {
  type AuthenticatedCaller,
  type Authenticator,
  requireNoDelegate,
  requireScope,
  type TokenRecipient,
} from '@parley/kit/auth/authenticate'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { CallerAccess } from '../registry/caller-access.ts'
import { completeChat } from './chat-routes.ts'
import { apiPath } from './error-answer.ts'
import { sendFile } from './file-route.ts'
import { findModel, modelList, requireModel } from './models.ts'
import { cancelResponse, createResponse, getResponse } from './response-routes.ts'
import { chatApi, fileApi, modelApi, modelsApi, responseApi, responseIdApi } from './route-descriptions.ts'
import { negotiatedModel } from './turn.ts'
import type { TurnParts } from './turn-run.ts'

export interface OpenAiRoutes extends TurnParts {
  authenticator: Authenticator
  access: CallerAccess
  /** The address of the API, with its path. */
  apiUrl: string
}

/** An authenticated request to the API. */
export interface ApiRequest {
  options: OpenAiRoutes
  request: FastifyRequest
  reply: FastifyReply
  caller: AuthenticatedCaller
  /** Parses the body. */
  json: () => unknown
  /** @throws ParleyError NotFound if the caller may not use the model */
  requireModel: (model: string) => Promise<void>
}

type Handler = (api: ApiRequest) => Promise<unknown>

/** Adds the OpenAI-compatible API (spec/openai.md#routes). */
export function addOpenAiRoutes(app: FastifyInstance, options: OpenAiRoutes): void {
  const startedAt = Math.floor(Date.now() / 1000)
  const handle = (handler: Handler) => async (request: FastifyRequest, reply: FastifyReply) => {
    try {
      return await handler(await apiRequest(options, request, reply))
    } catch (error) {
      // The client has disconnected.
      if (reply.raw.destroyed) return reply.hijack()
      throw error
    }
  }
  const models = async ({ caller, reply }: ApiRequest) => {
    requireNoDelegate(caller)
    requireScope(caller, 'agent:read')
    void reply.header('cache-control', 'no-store')
    return options.access.agentsFor(caller)
  }
  const at = (path: string) => `${apiPath}${path}`
  app.get(
    at('/models'),
    { config: { api: modelsApi } },
    handle(async (api) => modelList(await models(api), startedAt)),
  )
  app.get(
    at('/models/:model'),
    { config: { api: modelApi } },
    handle(async (api) => findModel(await models(api), paramOf(api, 'model'), startedAt)),
  )
  app.post(at('/chat/completions'), { config: { api: chatApi } }, handle(completeChat))
  app.post(at('/responses'), { config: { api: responseApi } }, handle(createResponse))
  app.get(
    at('/responses/:id'),
    { config: { api: responseIdApi } },
    handle((api) => getResponse(api, paramOf(api, 'id'))),
  )
  app.post(
    at('/responses/:id/cancel'),
    { config: { api: responseIdApi } },
    handle((api) => cancelResponse(api, paramOf(api, 'id'))),
  )
  app.get(
    at('/files/:id/content'),
    { config: { api: fileApi } },
    handle((api) => sendFile(api, paramOf(api, 'id'))),
  )
}

async function apiRequest(
  options: OpenAiRoutes,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ApiRequest> {
  const bytes = bodyOf(request)
  const recipient = { names: [options.apiUrl], requiresAudience: false } satisfies TokenRecipient
  const caller = await options.authenticator.authenticateAt(recipient, request, bytes)
  request.callerId = caller.id
  return {
    options,
    request,
    reply,
    caller,
    json: () => {
      requireJson(request)
      return parseJson(bytes)
    },
    requireModel: async (model) => {
      if (model === negotiatedModel) return
      const agents = await options.access.agentsFor(caller)
      if (agents.bySlug(model) === undefined)
        await options.access.auditHidden('agents.call', model, caller, request)
      requireModel(agents, model)
    },
  }
}

function paramOf({ request: { params } }: ApiRequest, name: string): string {
  const value: unknown = typeof params === 'object' && params !== null ? Reflect.get(params, name) : undefined
  if (typeof value === 'string') return value
  throw new ParleyError('NotFound')
}
