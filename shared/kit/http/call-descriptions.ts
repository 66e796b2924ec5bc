import { answersOf, callHeaders } from '@parley/wire/codecs/answers/calls'
import { paymentRequiredAnswer } from '@parley/wire/codecs/answers/payments'
import type { Codec, RestRoute } from '@parley/wire/codecs/codec'
import { dialects } from '@parley/wire/codecs/dialects'
import { type ErrorName, errorTable } from '@parley/wire/errors'
import { type Operation, operations } from '@parley/wire/model/operation'
import { z } from 'zod'
import { templateOf } from './path-pattern.ts'
import { type DescribedError, eventStream, type OperationDescription } from './route-description.ts'

/** Descriptions of the paths on which an agent and the gateway answer calls, from the schemas of each dialect. */

const summaries: Readonly<Record<Operation, string>> = {
  sendMessage: 'Send a message',
  streamMessage: 'Send a message and follow its task',
  getTask: 'Read a task',
  listTasks: 'List tasks',
  cancelTask: 'Cancel a task',
  giveFeedback: 'Rate the result of a task',
  listTaskEvents: 'List the events of a task',
  resubscribe: 'Follow a task',
  setPushConfig: 'Register a webhook for a task',
  getPushConfig: 'Read a webhook of a task',
  listPushConfigs: 'List the webhooks of a task',
  deletePushConfig: 'Remove a webhook of a task',
  listContexts: 'List contexts',
  clearContext: 'Remove a context with its tasks',
  getExtendedCard: 'Read the extended agent card',
}

const requestId = z.union([z.string(), z.int()])

/** A call may fail with each error of the table. */
const errors: readonly DescribedError[] = Object.keys(errorTable).filter(
  (name): name is ErrorName => name in errorTable,
)

const errorBody = z
  .object({
    jsonrpc: z.literal('2.0'),
    id: requestId.nullable(),
    error: z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() }),
  })
  .meta({ id: 'RpcError' })

const rpcErrors = { errorName: 'Rpc', errorContent: { 'application/json': errorBody } }

const methodRows = (codec: Codec) =>
  [...codec.methods].map(([method, { operation }]) => ({ codec, method, operation }))
type MethodRow = ReturnType<typeof methodRows>[number]

function requestOf({ codec, method, operation }: MethodRow): z.ZodType {
  return z.object({
    jsonrpc: z.literal('2.0'),
    id: requestId,
    method: z.literal(method),
    params: codec.paramsSchema(operation),
  })
}

function answerOf({ codec, operation }: MethodRow): z.ZodType | undefined {
  const result = answersOf(codec).results[operation]
  return result && z.object({ jsonrpc: z.literal('2.0'), id: requestId, result })
}

/** @param method the method that the path names */
export function rpcDescription(path: string, method?: string): OperationDescription {
  const spoken = dialects.filter(({ rpcPaths }) => rpcPaths.some((one) => one.path === path))
  const rows = spoken.flatMap(methodRows).filter((row) => method === undefined || row.method === method)
  const names = spoken.map(({ title }) => title).join(' and ')
  const [only] = rows
  const summary = method === undefined || only === undefined ? 'JSON-RPC' : summaries[only.operation]
  const results = rows.flatMap((row) => answerOf(row) ?? [])
  const streams = rows.some((row) => isStream(row.operation))
  const json = z.union([...results, errorBody])
  return {
    summary: method === undefined ? `${summary} of ${names}` : `${summary} (JSON-RPC)`,
    description: `Methods: ${rows.map((row) => row.method).join(', ')}.`,
    tag: 'tasks',
    access: 'token',
    headers: callHeaders,
    body: { json: z.union(rows.map(requestOf)) },
    responses: {
      200: {
        description: 'The result, or an error of a dialect that reports errors with this status',
        json,
        ...(streams && { content: eventStream }),
      },
      402: { description: 'The message has to be paid', json: paymentRequiredAnswer },
    },
    errors: [...errors, ['InvalidRequest', 415]],
    ...rpcErrors,
  }
}

const isStream = (operation: Operation) => operation === 'streamMessage' || operation === 'resubscribe'

/** The codec reads the wildcard of a path as this param. */
const wildcard = 'id'

export function restDescription(codec: Codec, { verb, path, operation }: RestRoute): OperationDescription {
  const { results, restError = z.unknown() } = answersOf(codec)
  const mediaType = codec.rest?.mediaType ?? 'application/json'
  const schema = codec.paramsSchema(operation)
  const result = results[operation]
  const types = [...new Set([mediaType, 'application/json'])]
  const content = (one: z.ZodType) => Object.fromEntries(types.map((type) => [type, one]))
  const template = templateOf(path, wildcard)
  const named = new Set([...template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
  const fields = fieldsOf(schema, named)
  return {
    summary: `${summaries[operation]} (${codec.title})`,
    tag: 'tasks',
    access: operations[operation].scope,
    headers: callHeaders,
    wildcard,
    ...(verb === 'POST'
      ? { body: { content: content(fields), required: named.size === 0 } }
      : { query: fields }),
    responses: {
      200: {
        description: 'The result',
        content: {
          ...(result && content(result)),
          ...(isStream(operation) && eventStream),
        },
      },
    },
    errors,
    errorName: codec.name,
    errorContent: content(restError),
  }
}

/** The fields of the params that the path does not have. */
function fieldsOf(schema: z.ZodType, inPath: ReadonlySet<string | undefined>) {
  const object = schema instanceof z.ZodPipe ? schema.out : schema
  if (!(object instanceof z.ZodObject)) return z.object({})
  return z.object(Object.fromEntries(Object.entries(object.shape).filter(([name]) => !inPath.has(name))))
}
