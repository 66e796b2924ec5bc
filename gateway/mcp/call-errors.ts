import { type CallToolResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { type ErrorName, ParleyError } from '@parley/wire/errors'
import { cleanLine, cleanText, clipped } from '@parley/wire/model/clean-text'
import { z } from 'zod'

/** What a model can do about an error. */
const nextSteps: Partial<Record<ErrorName, string>> = {
  InvalidParams: 'Correct the arguments and call the tool again.',
  ContentTypeNotSupported: 'Send the content in another format.',
  TaskNotFound: 'Check the task_id, or send the request again without it.',
  ContextNotFound: 'Send the request again without context_id.',
  TaskImmutable: 'The task has ended: send a new request, with context_id to continue the conversation.',
  TaskNotCancelable: 'Use get_task to read its result.',
  SkillNotFound: 'Request tools/list again: the agent no longer has this skill.',
  NotFound: 'Request tools/list again, or use find_agent to find another agent.',
  Conflict: 'Wait a few seconds and call the tool again.',
  Unavailable: 'Try again later, or use find_agent to find another agent.',
  InvalidAgentResponse: 'Try again later, or use find_agent to find another agent.',
  InsufficientPermissions: 'The user has to grant this permission; do not try again without it.',
  AuthenticationRequired: 'The user has to sign in again.',
  TokenExpired: 'The user has to sign in again.',
  InvalidToken: 'The user has to sign in again.',
}

/**
 * Returns the result for a call that the agent or the gateway refused, so that the model can act on it.
 * @throws ProtocolError for errors of the gateway itself
 */
export function refusalResult(error: ParleyError): CallToolResult {
  if (error.error === 'InternalError')
    throw new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error', { code: error.code })
  const text = `${cleanText(error.message)}${faultsIn(error)}. ${nextStepFor(error)}`.replace(
    /([.!?])\.\s/,
    '$1 ',
  )
  const { reason } = error.data
  return {
    content: [{ type: 'text', text: clipped(text.trim(), 8192) }],
    isError: true,
    _meta: { 'parley/error': { code: error.code, ...(typeof reason === 'string' && { reason }) } },
  }
}

const issues = z.array(z.object({ path: z.string(), message: z.string() })).max(20)

/** The fields of the arguments that are wrong. */
function faultsIn({ data }: ParleyError): string {
  const parsed = issues.safeParse(data['issues'])
  if (!parsed.success || parsed.data.length === 0) return ''
  const faults = parsed.data.map(({ path, message }) => cleanLine(`${path} ${message}`.trim(), 300))
  return `: ${faults.join('; ')}`
}

function nextStepFor({ error, headers }: ParleyError): string {
  if (error !== 'TooManyRequests') return nextSteps[error] ?? ''
  const seconds = Object.entries(headers).find(([name]) => name.toLowerCase() === 'retry-after')?.[1]
  return `Wait ${seconds ?? 'a few'} seconds and call the tool again.`
}

/** Converts an error of a request that is not a tool call. */
export function protocolError(thrown: unknown): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown
  const error = ParleyError.from(thrown)
  if (error.error === 'InternalError')
    return new ProtocolError(ProtocolErrorCode.InternalError, 'Internal error')
  const isParams = error.status < 500 && error.status !== 429
  const code = isParams ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
  const { reason } = error.data
  return new ProtocolError(code, cleanText(error.message), {
    code: error.code,
    ...(typeof reason === 'string' && { reason }),
  })
}
