import { eventStream, type OperationDescription } from '@parley/kit/http/route-description'
import { z } from 'zod'
import { chatBody } from './chat-request.ts'
import { responseBody } from './response-request.ts'

const errorAnswer = z.object({
  error: z.looseObject({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
})
const model = z.looseObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
})
const completion = z.looseObject({ id: z.string(), object: z.literal('chat.completion'), model: z.string() })
const response = z.looseObject({ id: z.string(), object: z.literal('response'), model: z.string() })

const shared = {
  tag: 'openai',
  errorContent: { 'application/json': errorAnswer },
} satisfies Partial<OperationDescription>

const notAnswered = {
  402: { description: 'The message must be paid first', json: errorAnswer },
  409: { description: 'The task was canceled, or a payment is in progress', json: errorAnswer },
  502: { description: 'The agent could not complete the task', json: errorAnswer },
  504: { description: 'The agent is still working on the task', json: errorAnswer },
}

export const modelsApi: OperationDescription = {
  ...shared,
  summary: 'The agents that the caller may use, as models',
  access: 'agent:read',
  responses: {
    200: { description: 'The models', json: z.object({ object: z.literal('list'), data: z.array(model) }) },
  },
}

export const modelApi: OperationDescription = {
  ...shared,
  summary: 'One agent as a model',
  access: 'agent:read',
  responses: { 200: { description: 'The model', json: model } },
}

export const chatApi: OperationDescription = {
  ...shared,
  summary: 'Send a message to an agent, or to the best one',
  access: 'agent:write',
  body: { json: chatBody },
  responses: { 200: { description: 'The answer', json: completion, content: eventStream }, ...notAnswered },
  errors: ['NotFound'],
}

export const responseApi: OperationDescription = {
  ...shared,
  summary: 'Send a message to an agent, or to the best one, as a response',
  access: 'agent:write',
  body: { json: responseBody },
  responses: { 200: { description: 'The response', json: response, content: eventStream }, ...notAnswered },
  errors: ['NotFound'],
}

export const responseIdApi: OperationDescription = {
  ...shared,
  summary: 'A response of the caller',
  access: 'agent:read',
  responses: { 200: { description: 'The response', json: response } },
  errors: ['TaskNotCancelable'],
}

export const fileApi: OperationDescription = {
  ...shared,
  summary: 'A file in the result of a task of the caller',
  access: 'agent:read',
  responses: { 200: { description: 'The content', content: { '*/*': z.string() } } },
}
