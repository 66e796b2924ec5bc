import type { Codec } from '@parley/wire/codecs/codec'
import { ParleyError } from '@parley/wire/errors'
import { isObject, type RequestId, type RpcRequest, readId, readRequest } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { type Operation, operations, type Target } from '@parley/wire/model/operation'
import {
  type AuthenticatedCaller,
  type Authenticator,
  type RequestHead,
  requireNoDelegate,
  requireScope,
} from '../auth/authenticate.ts'
import type { Caller } from '../auth/caller.ts'

/** Fields of a JSON-RPC call that its error response and log line need, filled in as the checks pass. */
export interface CallProgress {
  id: RequestId
  /** The method in the body, which may be unknown. It selects the dialect of an error at a path of several dialects. */
  namedMethod?: string | undefined
  caller?: string | undefined
}

export interface CallBytes extends RequestHead {
  bytes: Buffer
  /** The method that the path names (`POST /tasks/get`); undefined for `POST /`. */
  pathMethod: string | undefined
}

/** Larger bodies are not parsed just to return the id of a rejected call. */
const peekMaxBytes = 64 * 1024

/** Performs the first check of a JSON-RPC call (spec/authentication.md#order-of-checks). @throws ParleyError */
export async function authenticateCall(
  authenticator: Authenticator,
  call: CallBytes,
  progress: CallProgress,
): Promise<AuthenticatedCaller> {
  try {
    const caller = await authenticator.authenticate(call, call.bytes)
    progress.caller = caller.id
    return caller
  } catch (error) {
    peek(call.bytes, progress)
    throw error
  }
}

/**
 * Parses the envelope; the method and its scope are checked afterwards.
 * @param codec the dialect that the path and the headers select
 * @throws ParleyError
 */
export function readCall(
  { bytes, pathMethod }: CallBytes,
  progress: CallProgress,
  { lenientRequests }: Pick<Codec, 'lenientRequests'>,
): RpcRequest {
  const body = parseJson(bytes)
  nameCall(body, progress)
  const request = readRequest(body, lenientRequests)
  if (pathMethod !== undefined && pathMethod !== request.method)
    throw new ParleyError('InvalidRequest', { message: 'The method differs from the path' })
  return request
}

/** Targets of the operations that an agent may use for a client (spec/authentication.md#delegated-tokens). */
const ofDelegates: readonly Target[] = ['message', 'task', 'tasks']

/** Checks that the token covers the operation. @throws ParleyError InsufficientPermissions */
export function requireOperation(caller: Caller, operation: Operation): void {
  const { scope, target } = operations[operation]
  if (!ofDelegates.includes(target)) requireNoDelegate(caller)
  requireScope(caller, scope)
}

/** Returns the id of a call that was rejected before its body was read; null if the body is large or not JSON. */
export function peekId(bytes: Buffer): RequestId {
  const progress: CallProgress = { id: null }
  peek(bytes, progress)
  return progress.id
}

/** Reads the id and the method of a rejected call, unless the body is large or not JSON. */
function peek(bytes: Buffer, progress: CallProgress): void {
  if (bytes.byteLength > peekMaxBytes) return
  try {
    nameCall(parseJson(bytes), progress)
  } catch {
    progress.id = null
  }
}

function nameCall(body: unknown, progress: CallProgress): void {
  progress.id = readId(body)
  const method = isObject(body) ? body['method'] : undefined
  progress.namedMethod = typeof method === 'string' ? method : undefined
}
