import { createHash } from 'node:crypto'
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** What a client sends back with the answer to a question. */
export interface RequestState {
  taskId: string
}

const state = z.strictObject({ t: z.string().min(1).max(256), c: z.string().length(43) })

/**
 * Returns the state of a paused call. It is not signed, because it grants nothing: only the owner of the task can read
 * and answer it. The checksum detects damaged states and those of other callers.
 */
export function requestStateOf({ taskId, callerId }: RequestState & { callerId: string }): string {
  return Buffer.from(JSON.stringify({ t: taskId, c: checksumOf(taskId, callerId) })).toString('base64url')
}

/** @throws ProtocolError InvalidParams for a state that this server did not return to the caller */
export function readRequestState(given: unknown, callerId: string): RequestState | undefined {
  if (given === undefined) return undefined
  const parsed = state.safeParse(typeof given === 'string' && given.length <= 1024 ? decoded(given) : given)
  if (parsed.success && parsed.data.c === checksumOf(parsed.data.t, callerId))
    return { taskId: parsed.data.t }
  throw new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    'Invalid requestState: send the request again without it',
    {
      reason: 'invalid_request_state',
    },
  )
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}

const checksumOf = (taskId: string, callerId: string): string =>
  createHash('sha256')
    .update(JSON.stringify(['mcp request state', taskId, callerId]))
    .digest('base64url')
