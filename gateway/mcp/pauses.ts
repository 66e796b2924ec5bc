import type { InputRequests } from '@modelcontextprotocol/server'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine, cleanObject, clipped } from '@parley/wire/model/clean-text'
import type { JsonObject, Part, Task } from '@parley/wire/model/task'
import { z } from 'zod'
import { textOf } from './task-results.ts'

/** What a client can do with the question of a paused task. */
export interface ElicitationSupport {
  form: boolean
  url: boolean
}

/** The question of a paused task. */
export interface Question {
  text: string
  /** The requests to the client, by key. Empty if the client can answer none of them. */
  requests: InputRequests
}

const questionMaxChars = 8192
const schemaMaxChars = 16 * 1024

/** The flat forms that MCP defines for questions; clients check the properties. */
const form = z.looseObject({
  type: z.literal('object'),
  properties: z
    .record(z.string().min(1).max(128), z.looseObject({ type: z.string().max(32) }))
    .refine((properties) => Object.keys(properties).length <= 50),
  required: z.array(z.string().max(128)).max(50).optional(),
})

/** The typed questions that an agent may add to a pause as data: `ask(prompt, { inputs: { key: { message, schema } } })`. */
const inputs = z
  .record(
    z.string().regex(/^[\w.-]{1,64}$/),
    z.object({ message: z.string().max(questionMaxChars), schema: form }),
  )
  .refine((all) => Object.keys(all).length > 0 && Object.keys(all).length <= 16)

const answerKey = 'answer'

/** Returns the support that a client's capabilities declare. An empty object means forms. */
export function elicitationSupport(capabilities: unknown): ElicitationSupport {
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined
  if (!isObject(elicitation)) return { form: false, url: false }
  const isPlain = elicitation['form'] === undefined && elicitation['url'] === undefined
  return { form: isPlain || isObject(elicitation['form']), url: isObject(elicitation['url']) }
}

/** Returns the question of a paused task as requests to the client. */
export function questionOf({ id, status }: Task, support: ElicitationSupport): Question {
  const parts = status.message?.parts ?? []
  const data = dataIn(parts)
  const text = clipped(textOf(parts), questionMaxChars) || defaultQuestion(status.state)
  if (status.state === 'negotiation-bid-submitted')
    return { text: `${text} ${bidText(data)}`.trim(), requests: support.form ? bidRequest(text, data) : {} }
  if (status.state === 'payment-required') return { text, requests: {} }
  const address = status.state === 'auth-required' ? addressIn(data) : undefined
  if (address !== undefined) {
    const params = { mode: 'url' as const, message: text, url: address, elicitationId: id }
    const requests = support.url ? { [answerKey]: { method: 'elicitation/create' as const, params } } : {}
    return { text: `${text}\n${address}`, requests }
  }
  return { text, requests: support.form ? formRequests(text, data) : {} }
}

function formRequests(text: string, data: JsonObject): InputRequests {
  const parsed = inputs.safeParse(data['inputs'])
  if (parsed.success && JSON.stringify(parsed.data).length <= schemaMaxChars)
    return Object.fromEntries(
      Object.entries(parsed.data).map(([key, { message, schema }]) => [
        key,
        formRequest(cleanLine(message, questionMaxChars), cleanObject(schema as JsonObject)),
      ]),
    )
  const answer = { type: 'string', title: 'Answer' }
  return { [answerKey]: formRequest(text, objectSchema({ answer }, ['answer'])) }
}

function bidRequest(text: string, data: JsonObject): InputRequests {
  const accept = { type: 'boolean', title: 'Accept the offer' }
  return { [answerKey]: formRequest(`${text} ${bidText(data)}`.trim(), objectSchema({ accept }, ['accept'])) }
}

const objectSchema = (properties: JsonObject, required: string[]): JsonObject => ({
  type: 'object',
  properties,
  required,
})

function formRequest(message: string, requestedSchema: JsonObject): InputRequests[string] {
  // The schema was parsed as a form; the types of the library list each kind of property.
  return {
    method: 'elicitation/create',
    params: { mode: 'form', message, requestedSchema },
  } as InputRequests[string]
}

/**
 * Returns the message that answers the pause with the responses of the client; undefined if there is none for the open
 * requests, or the person dismissed them.
 */
export function answerOf(task: Task, responses: Readonly<Record<string, unknown>>): Part[] | undefined {
  const { requests } = questionOf(task, { form: true, url: true })
  const given = Object.keys(requests).flatMap((key) => {
    const response = responseIn(responses[key])
    return response === undefined || response.action === 'cancel' ? [] : [{ key, response }]
  })
  const [first] = given
  if (first === undefined) return undefined
  const { action, content } = first.response
  if (task.status.state === 'negotiation-bid-submitted')
    return [{ kind: 'data', data: { accept: action === 'accept' && content['accept'] === true } }]
  if (first.key === answerKey && isSingleAnswer(requests)) {
    if (action === 'decline') return [{ kind: 'text', text: 'The user declined to answer.' }]
    const { answer } = content
    return [{ kind: 'text', text: typeof answer === 'string' ? answer : 'Done.' }]
  }
  const data = given.map(({ key, response }) => [
    key,
    response.action === 'accept' ? response.content : { action: response.action },
  ])
  return [{ kind: 'data', data: Object.fromEntries(data) as JsonObject }]
}

const isSingleAnswer = (requests: InputRequests): boolean => {
  const [first, ...others] = Object.values(requests)
  const params = first?.params
  if (others.length > 0 || params === undefined) return false
  return !('requestedSchema' in params) || isAnswerForm(params.requestedSchema)
}

function isAnswerForm(schema: unknown): boolean {
  const properties = isObject(schema) ? schema['properties'] : undefined
  return isObject(properties) && Object.keys(properties).join() === 'answer'
}

const response = z.object({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.json()).optional(),
})

function responseIn(value: unknown) {
  const parsed = response.safeParse(value)
  return parsed.success ? { action: parsed.data.action, content: parsed.data.content ?? {} } : undefined
}

function dataIn(parts: readonly Part[]): JsonObject {
  return Object.assign({}, ...parts.flatMap((part) => (part.kind === 'data' ? [part.data] : [])))
}

/** The address at which a person grants the authorization that an agent requires. */
function addressIn(data: JsonObject): string | undefined {
  const url = data['url'] ?? data['auth_url'] ?? data['authorization_url']
  return typeof url === 'string' &&
    url.length <= 2048 &&
    /^https:\/\/|^http:\/\/(localhost|127\.0\.0\.1)[:/]/.test(url)
    ? cleanLine(url, 2048)
    : undefined
}

function bidText(data: JsonObject): string {
  const { amount, note } = data
  const price = typeof amount === 'string' ? `The agent offers to do this for ${cleanLine(amount, 80)}.` : ''
  return `${price} ${typeof note === 'string' ? cleanLine(note, 1000) : ''}`.trim()
}

const defaultQuestion = (state: Task['status']['state']): string =>
  state === 'auth-required'
    ? 'The agent requires an authorization that you grant outside of this conversation.'
    : 'The agent requests further input.'
