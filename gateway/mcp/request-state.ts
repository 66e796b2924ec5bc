import { createHash } from 'node:crypto'
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** What a client sends back with the answer to a question. */
export interface RequestState {
  taskId: string
  /** The time of the pause, which identifies its question. */
  pausedAt: string
}

const state = z.strictObject({
  t: z.string().min(1).max(256),
  q: z.string().max(64),
  c: z.string().length(43),
})

/**
 * Returns the state of a paused call. It is not signed, because it grants nothing: only the owner of the task can read
 * and answer it. The checksum detects damaged states and those of other callers.
 */
export function requestStateOf(given: RequestState, callerId: string): string {
  const { taskId: t, pausedAt: q } = given
  return Buffer.from(JSON.stringify({ t, q, c: checksumOf(given, callerId) })).toString('base64url')
}

/** @throws ProtocolError InvalidParams for a state that this server did not return to the caller */
export function readRequestState(given: unknown, callerId: string): RequestState | undefined {
  if (given === undefined) return undefined
  const parsed = state.safeParse(typeof given === 'string' && given.length <= 1024 ? decoded(given) : given)
  if (parsed.success) {
    const found = { taskId: parsed.data.t, pausedAt: parsed.data.q }
    if (parsed.data.c === checksumOf(found, callerId)) return found
  }
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

const checksumOf = ({ taskId, pausedAt }: RequestState, callerId: string): string =>
  createHash('sha256')
    .update(JSON.stringify(['mcp request state', taskId, pausedAt, callerId]))
    .digest('base64url')
