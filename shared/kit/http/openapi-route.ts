import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { DocumentOptions } from './openapi-document.ts'
import { type OperationDescription, recordedRoutes } from './route-description.ts'
import { sendCacheable } from './send-cacheable.ts'

export const openApiPath = '/openapi.json'

export interface OpenApiRoute extends DocumentOptions {
  /** Returns the address at which the client reaches the server. */
  address: (request: FastifyRequest) => string
}

const api: OperationDescription = {
  summary: 'This document',
  tag: 'discovery',
  access: 'public',
  responses: {
    200: {
      description: 'An OpenAPI 3.1 document',
      json: z.looseObject({ openapi: z.string(), info: z.looseObject({}), paths: z.looseObject({}) }),
      headers: { etag: 'The version of the document' },
    },
    304: { description: 'The client has the current version' },
  },
}

/** Adds `GET /openapi.json`, which describes every route of the server (spec/http-api.md#openapi-document). It is public. */
export function addOpenApiRoute(app: FastifyInstance, { address, ...info }: OpenApiRoute): void {
  let document: Promise<string> | undefined
  app.get(openApiPath, { config: { api } }, async (request, reply) => {
    // The document is made when it is requested for the first time, because many processes never send it.
    document ??= documentText(app, info).catch((error: unknown) => {
      document = undefined
      throw error
    })
    const servers = JSON.stringify([{ url: address(request) }])
    return sendCacheable(request, reply, `${(await document).slice(0, -1)},"servers":${servers}}`)
  })
}

async function documentText(app: FastifyInstance, info: DocumentOptions): Promise<string> {
  const { openApiDocument } = await import('./openapi-document.ts')
  return JSON.stringify(await openApiDocument(recordedRoutes(app), info))
}
