import { wireForms } from '@parley/wire/codecs/wire-form'
import { type ErrorName, errorTable } from '@parley/wire/errors'
import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiContentObject,
  type ZodOpenApiHeadersObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { templateOf } from './path-pattern.ts'
import {
  type Access,
  type Content,
  type DescribedError,
  type DescribedResponse,
  type DescribedRoute,
  type OperationDescription,
  tags,
} from './route-description.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

export interface DocumentOptions {
  title: string
  description: string
  version: string
}

/** Creates the OpenAPI document of the routes, without the addresses of the server. */
export async function openApiDocument(
  routes: readonly DescribedRoute[],
  info: DocumentOptions,
): Promise<OpenApiDocument> {
  const paths: ZodOpenApiPathsObject = {}
  const used = new Set<string>()
  const build = operationBuilder()
  const add = (path: string, method: string, operation: OperationDescription) => {
    used.add(operation.tag)
    const described = { operationId: operationId(method, path), ...build(path, operation) }
    paths[path] = { ...paths[path], [method]: described }
  }
  for (const { path, methods, description } of routes) {
    if (description === undefined) continue
    const described = typeof description === 'function' ? await description() : description
    if ('covers' in described)
      for (const [covered, operations] of Object.entries(described.covers))
        for (const [method, operation] of Object.entries(operations)) add(covered, method, operation)
    else
      for (const method of methods) add(templateOf(path, described.wildcard), method.toLowerCase(), described)
  }
  return createDocument(
    {
      openapi: '3.1.1',
      info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
      tags: Object.entries(tags)
        .filter(([name]) => used.has(name))
        .map(([name, text]) => ({ name, description: text })),
      paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
      components: { securitySchemes },
    },
    { override, allowEmptySchema: { custom: true, transform: true, pipe: true } },
  )
}

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An OAuth 2.0 access token or a long-lived key' },
  dpop: {
    type: 'http',
    scheme: 'dpop',
    description: 'An access token that is bound to a key, with a proof in the header DPoP (RFC 9449)',
  },
  basic: { type: 'http', scheme: 'basic', description: 'The credentials of an OAuth client' },
  statement: {
    type: 'http',
    scheme: 'bearer',
    description: 'An operator statement of the gateway of the agent',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-parley_console',
    description: 'A session of the console; without TLS, the name has no prefix',
  },
} as const

function securityOf(access: Access) {
  if (access === 'public') return []
  if (['basic', 'session', 'statement'].includes(access)) return [{ [access]: [] }]
  const scopes = access === 'optional' || access === 'token' ? [] : [access]
  const withoutToken: Record<string, string[]>[] = access === 'optional' ? [{}] : []
  return [...withoutToken, { bearer: scopes }, { dpop: scopes }]
}

/** Errors with equal names have one response in the components of the document. */
function operationBuilder() {
  const shared = new Map<string, ZodOpenApiResponseObject>()
  return (path: string, operation: OperationDescription): ZodOpenApiOperationObject => {
    const { summary, description, tag, access, query, headers, body } = operation
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    const params = {
      ...Object.fromEntries(names.map((name) => [name, z.string()])),
      ...operation.params?.shape,
    }
    const bodyContent = body && contentOf(body)
    return {
      summary,
      ...(description !== undefined && { description }),
      tags: [tag],
      security: securityOf(access),
      requestParams: {
        ...(names.length > 0 && { path: z.object(params) }),
        ...(query && { query }),
        ...(headers && { header: headers }),
      },
      ...(bodyContent && { requestBody: { required: body?.required ?? true, content: bodyContent } }),
      responses: responsesOf(operation, names.length > 0, shared),
    }
  }
}

function responsesOf(
  operation: OperationDescription,
  hasParams: boolean,
  shared: Map<string, ZodOpenApiResponseObject>,
): ZodOpenApiResponsesObject {
  const responses: ZodOpenApiResponsesObject = {}
  const { errorContent, errorName = '' } = operation
  if (errorContent !== 'none')
    for (const [status, names] of errorsByStatus(operation, hasParams)) {
      const id = `${errorName}Error${status}.${names.join('.')}`
      const isShared = errorContent === undefined || errorName !== ''
      const response = (isShared && shared.get(id)) || {
        ...(isShared && { id }),
        description: names.map((name) => `${errorTable[name].message} (${errorTable[name].code})`).join('; '),
        content: contentOf(errorContent ? { content: errorContent } : { json: errorEnvelope(names) }),
      }
      if (isShared) shared.set(id, response)
      responses[statusKey(String(status))] = response
    }
  for (const [status, response] of Object.entries(operation.responses))
    if (response !== undefined) responses[statusKey(status)] = responseOf(response)
  return responses
}

/** @throws Error if the description of a route has a status that is none of HTTP */
function statusKey(status: string): `${1 | 2 | 3 | 4 | 5}${string}` {
  const [first, ...others] = status
  if (first === '1' || first === '2' || first === '3' || first === '4' || first === '5')
    return `${first}${others.join('')}`
  throw new Error(`${status} is not an HTTP status`)
}

function responseOf({ description, headers, ...content }: DescribedResponse): ZodOpenApiResponseObject {
  const described: ZodOpenApiHeadersObject = Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, text]) => [
      name,
      { description: text, schema: { type: 'string' as const } },
    ]),
  )
  const has = content.json !== undefined || content.content !== undefined
  return {
    description,
    ...(headers && { headers: described }),
    ...(has && { content: contentOf(content) }),
  }
}

function contentOf({ json, content }: { json?: z.ZodType; content?: Content }): ZodOpenApiContentObject {
  return Object.fromEntries([
    ...(json ? [['application/json', { schema: json }] as const] : []),
    ...Object.entries(content ?? {}).map(([type, schema]) => [type, { schema }] as const),
  ])
}

/** The errors of a route and those that every route of its kind has, by status. */
function errorsByStatus(
  { access, body, errors = [] }: OperationDescription,
  hasParams: boolean,
): [number, ErrorName[]][] {
  const needsToken = access !== 'public' && access !== 'basic'
  const all: DescribedError[] = [
    'InvalidRequest',
    ...(body ? (['ParseError', ['InvalidRequest', 415]] as const) : []),
    'InvalidParams',
    ...(needsToken ? (['AuthenticationRequired', 'InvalidToken', 'TokenExpired'] as const) : []),
    ...(needsToken ? (['InvalidTokenSignature', 'InsufficientPermissions'] as const) : []),
    ...(hasParams ? (['NotFound'] as const) : []),
    ['InvalidRequest', 413],
    ['InvalidRequest', 431],
    'TooManyRequests',
    'InternalError',
    'Unavailable',
    ...errors,
  ]
  const byStatus = new Map<number, Set<ErrorName>>()
  for (const error of all) {
    const [name, status] = typeof error === 'string' ? [error, errorTable[error].status] : error
    byStatus.set(status, (byStatus.get(status) ?? new Set()).add(name))
  }
  return [...byStatus].sort(([a], [b]) => a - b).map(([status, names]) => [status, [...names].sort()])
}

/** The form of errors outside the dialects of A2A (spec/json-rpc.md#errors). */
function errorEnvelope(names: readonly ErrorName[]) {
  return z.object({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.int(), z.null()]),
    error: z.object({
      code: z.literal(names.map((name) => errorTable[name].code)),
      message: z.string(),
      data: z.looseObject({ reason: z.unknown().optional() }),
    }),
  })
}

/** Adds what zod cannot derive. Objects in responses may have more fields in later versions. */
const override: ZodOpenApiOverride = ({ jsonSchema, zodSchema }) => {
  const form = wireForms.get(zodSchema)
  if (form?.schema !== undefined) {
    for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key)
    Object.assign(jsonSchema, form.schema)
  }
  if (form?.names !== undefined) rename(jsonSchema, form.names)
  const { def } = zodSchema._zod
  if (def.type === 'object' && (!('catchall' in def) || def.catchall === undefined))
    delete jsonSchema.additionalProperties
}

function rename(
  jsonSchema: Parameters<typeof override>[0]['jsonSchema'],
  names: Readonly<Record<string, string>>,
) {
  const { properties = {}, required } = jsonSchema
  jsonSchema.properties = Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [names[name] ?? name, schema]),
  )
  if (required !== undefined) jsonSchema.required = required.map((name) => names[name] ?? name)
}

/** Paths that differ in punctuation only have different IDs. */
function operationId(method: string, path: string): string {
  const words = path.replaceAll(/\{(\w+)\}/g, 'by_$1').replaceAll(':', '__')
  return method + words.replaceAll(/[^a-zA-Z0-9]/g, '_')
}
