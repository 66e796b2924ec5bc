import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  accountAnswer,
  accountIn,
  accountListAnswer,
  consoleSessionListAnswer,
  createdAccountAnswer,
  sessionAnswer,
} from '@parley/wire/codecs/answers/operator/console'
import { z } from 'zod'

const html = { 'text/html': z.string() }
const bytes = { '*/*': z.string() }
const ofConsole = { tag: 'console' } as const

export const pageApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'The page of the console',
  responses: {
    200: { description: 'The page, which reads its data from /console/api', content: html },
    304: { description: 'The browser has the current version' },
    308: { description: 'The page is at /console/' },
  },
}

export const rootApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'Send browsers to the console',
  responses: { 302: { description: 'For clients that accept text/html' } },
  errors: [['InvalidRequest', 405]],
}

export const assetApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'A file of the console',
  responses: {
    200: { description: 'The file', content: bytes },
    304: { description: 'The browser has the current version' },
  },
}

export const moduleApi: OperationDescription = {
  ...assetApi,
  summary: 'A library that the pages of the console import',
}

export const signInQuery = z.object({
  return: z
    .string()
    .max(2048)
    .optional()
    .catch(undefined)
    .describe('The path of the console to which the browser returns'),
})

export const signInApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'Sign in to the console',
  query: signInQuery,
  responses: {
    200: { description: 'The page to sign in, if the gateway has an external OAuth server', content: html },
    303: { description: 'To the embedded OAuth server, or back to the console if a session is open' },
  },
  errorContent: html,
}

export const passwordApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'Send the password of an account',
  body: {
    content: {
      'application/x-www-form-urlencoded': z.object({
        token: z.string(),
        account: z.string(),
        password: z.string(),
      }),
    },
  },
  responses: {
    303: { description: 'Signed in; back to the console' },
    403: { description: 'The account or the password is wrong', content: html },
    429: { description: 'Too many attempts', content: html },
  },
  errorContent: html,
}

export const callbackApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'Redeem the authorization code of a sign-in',
  query: z.object({
    code: z.string().optional(),
    state: z.string().optional(),
    iss: z.string().optional(),
    error: z.string().optional(),
  }),
  responses: { 303: { description: 'Signed in; back to the console' } },
  errorContent: html,
}

export const sessionApi: OperationDescription = {
  ...ofConsole,
  access: 'session',
  summary: 'Read the session of the browser',
  responses: { 200: { description: 'The session', json: sessionAnswer } },
}

export const signOutApi: OperationDescription = {
  ...ofConsole,
  access: 'session',
  summary: 'End the session of the browser',
  responses: { 200: { description: 'Signed out', json: z.object({ success: z.literal(true) }) } },
}

export const bridgeApi: OperationDescription = {
  ...ofConsole,
  access: 'session',
  summary: 'Send a request to a route of the gateway for the person who has signed in',
  description:
    'The rest of the path is the path of the gateway, such as `/operator/tasks`. Requests that change something need the header `x-csrf-token` with the value that `GET /console/session` returns. Of the headers of the answer, only those about the content, its cache, the task, payments and limits are returned. Content other than JSON, plain text and event streams is a download.',
  responses: { '2XX': { description: 'The answer of the route', content: bytes } },
  errors: ['NotFound', ['InvalidAgentResponse', 502]],
}

export const artifactQuery = z.object({
  download: z.stringbool().optional().describe('Whether the browser stores the part as a file'),
})

export const artifactApi: OperationDescription = {
  ...ofConsole,
  access: 'session',
  query: artifactQuery,
  summary: 'Show a part of an artifact in a sandboxed frame',
  responses: { 200: { description: 'The part, as an image, plain text or a download', content: bytes } },
  errors: ['NotFound', ['InvalidRequest', 413]],
}

export const pdfFrameApi: OperationDescription = {
  ...ofConsole,
  access: 'public',
  summary: 'Return the page that draws PDF documents in a sandboxed frame',
  responses: { 200: { description: 'The page', content: html } },
}

const ofOperator = { tag: 'console', access: 'agent:admin' } satisfies Partial<OperationDescription>
export const accountParams = z.object({ name: z.string().describe('The name of the account') })
export const sessionParams = z.object({ id: z.string().describe('The ID of the session') })
export const accountChange = z.object({ disabled: z.boolean() })
const removed = { 200: { description: 'Removed', json: z.object({ success: z.literal(true) }) } }

export const accountListApi: OperationDescription = {
  ...ofOperator,
  summary: 'List the accounts of the console',
  responses: { 200: { description: 'The accounts', json: accountListAnswer } },
}
export const accountAddApi: OperationDescription = {
  ...ofOperator,
  summary: 'Add an account of the console',
  body: { json: accountIn },
  responses: { 200: { description: 'The account with its password', json: createdAccountAnswer } },
  errors: ['Conflict', 'NotFound'],
}
export const accountRemoveApi: OperationDescription = {
  ...ofOperator,
  summary: 'Remove an account of the console with its sessions',
  params: accountParams,
  responses: removed,
  errors: ['Conflict'],
}
export const accountChangeApi: OperationDescription = {
  ...ofOperator,
  summary: 'Disable or enable an account of the console',
  params: accountParams,
  body: { json: accountChange },
  responses: { 200: { description: 'The account', json: accountAnswer } },
  errors: ['Conflict'],
}
export const passwordResetApi: OperationDescription = {
  ...ofOperator,
  summary: 'Give an account of the console a new password',
  params: accountParams,
  responses: { 200: { description: 'The account with its new password', json: createdAccountAnswer } },
}
export const sessionListApi: OperationDescription = {
  ...ofOperator,
  summary: 'List the open sessions of the console',
  responses: { 200: { description: 'The sessions', json: consoleSessionListAnswer } },
}
export const sessionRevokeApi: OperationDescription = {
  ...ofOperator,
  summary: 'End a session of the console',
  params: sessionParams,
  responses: removed,
}
