import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanText } from '@parley/wire/model/clean-text'
import { isJsonObject } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { InvalidAgentAnswer } from '../client/agent-errors.ts'
import { argumentsFor, fieldsText } from './arguments.ts'
import { propertiesOf } from './tools.ts'

/** What a server requests from the caller of a tool: the fields of a form, or the visit of a page. */
export interface InputRequest {
  key: string
  message: string
  /** The schema of the form. */
  schema?: JsonObject | undefined
  /** The page. */
  url?: string | undefined
}

/** The answers to requests of a server, by key. */
export type InputResponses = Record<string, { action: 'accept' | 'decline' | 'cancel'; content?: JsonObject }>

const [requestsMax, messageMax, urlMax, schemaMaxChars] = [20, 4000, 2048, 64 * 1024]

/** Reads requests of a server (elicitation/create). @throws InvalidAgentAnswer for one that callers cannot answer */
export function readInputRequests(given: unknown): InputRequest[] {
  const entries = isObject(given) ? Object.entries(given) : []
  if (entries.length > requestsMax)
    throw new InvalidAgentAnswer(`The server requests more than ${requestsMax} inputs at a time`)
  return entries.map(([key, request]) => {
    if (!isObject(request) || request['method'] !== 'elicitation/create' || !isObject(request['params']))
      throw new InvalidAgentAnswer(
        'The server requests something other than input of the caller, which this gateway does not offer',
      )
    return readElicitation(key, request['params'])
  })
}

/** @throws InvalidAgentAnswer */
export function readElicitation(key: string, params: Record<string, unknown>): InputRequest {
  const { message, requestedSchema, url, mode } = params
  const text = cleanText(typeof message === 'string' ? message.slice(0, messageMax) : '').trim()
  if (mode === 'url') {
    const page = typeof url === 'string' && url.length <= urlMax ? URL.parse(url) : null
    if (page?.protocol !== 'https:' && page?.protocol !== 'http:')
      throw new InvalidAgentAnswer('The server names a page without a valid address')
    return { key, message: text || 'The tool requires a visit of this page.', url: page.href }
  }
  if (!isJsonObject(requestedSchema) || JSON.stringify(requestedSchema).length > schemaMaxChars)
    throw new InvalidAgentAnswer('The server requests input without a usable schema')
  return { key, message: text || 'The tool requires more input.', schema: requestedSchema }
}

/** Returns the question to the caller: a text with the fields, and the requests as data. */
export function questionOf(requests: readonly InputRequest[]): { text: string; data: JsonObject } {
  const texts = requests.map(({ message, schema, url }) => {
    if (url !== undefined) return `${message}\nOpen ${url}, then continue.`
    const names = schema === undefined ? [] : Object.keys(propertiesOf(schema))
    return schema === undefined || names.length === 0 ? message : `${message}\n${fieldsText(schema, names)}`
  })
  const shown = requests.map(({ key, message, schema, url }) => ({
    key,
    message,
    ...(schema !== undefined && { schema }),
    ...(url !== undefined && { url }),
  }))
  return { text: texts.join('\n\n'), data: { input_requests: shown } }
}

/**
 * Reads the caller's message as answers. Data is the content of the form, or an object per key if there are several requests; a text
 * answers a form with one required field. `{"action": "decline"}` declines.
 * @returns a sentence if something is missing or wrong
 */
export function responsesTo(
  requests: readonly InputRequest[],
  { data, text }: { data: JsonObject; text: string },
): InputResponses | string {
  const word = text.trim().toLowerCase()
  const action = data['action'] ?? (['decline', 'cancel'].includes(word) ? word : undefined)
  if (action === 'decline' || action === 'cancel')
    return Object.fromEntries(requests.map(({ key }) => [key, { action }]))
  const responses: InputResponses = {}
  for (const { key, schema } of requests) {
    if (schema === undefined) {
      responses[key] = { action: 'accept' }
      continue
    }
    const own = data[key]
    const given = requests.length > 1 && isJsonObject(own) ? own : withoutAction(data, schema)
    const read = argumentsFor(schema, { data: given, text })
    if ('faults' in read) return `The answer does not fit: ${read.faults.join('; ')}.`
    if ('missing' in read) return `These fields are missing:\n${fieldsText(schema, read.missing)}`
    responses[key] = { action: 'accept', content: read.values }
  }
  return responses
}

function withoutAction(data: JsonObject, schema: JsonObject): JsonObject {
  const { action, ...rest } = data
  return action === undefined || 'action' in propertiesOf(schema) ? data : rest
}
