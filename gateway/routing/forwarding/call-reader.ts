import { findRestCall, type RestCall, readRest } from '@parley/kit/http/rest-call'
import { type CallProgress, readCall } from '@parley/kit/http/rpc-call'
import type { Codec, RpcPath } from '@parley/wire/codecs/codec'
import { dialectOf, rpcPaths } from '@parley/wire/codecs/dialects'
import type { RequestId } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { Operation } from '@parley/wire/model/operation'
import type { FastifyRequest } from 'fastify'

/** A path that accepts calls: JSON-RPC or, with `rest`, without an envelope. */
export interface CallAddress extends RpcPath {
  rest?: RestCall
}

/** A call in the dialect of its sender. */
export interface ReadCall {
  id: RequestId
  codec: Codec
  /** Set for a call without a JSON-RPC envelope. Its answers have no envelope either. */
  rest: RestCall | undefined
  method: string
  /** Undefined for an unknown method. */
  operation: Operation | undefined
  params: Record<string, unknown>
}

const addresses = new Map(rpcPaths().map((one) => [one.path, one]))

/** @param path the path on the agent, without the query. Returns undefined if agents accept no calls there. */
export function callAddress(verb: string, path: string, query: string | undefined): CallAddress | undefined {
  const rpc = verb === 'POST' ? addresses.get(path) : undefined
  if (rpc !== undefined) return rpc
  const rest = findRestCall(verb, path, query)
  return rest && { path, rest }
}

/** @throws ParleyError if the body is not a call of the dialect that the address and the headers select */
export function readCallAt(
  { path, method: pathMethod, rest }: CallAddress,
  request: Pick<FastifyRequest, 'headers' | 'method' | 'url'> & { query: string | undefined },
  bytes: Buffer,
  progress: CallProgress = { id: null },
): ReadCall {
  const { headers, method: verb, url, query } = request
  if (rest !== undefined) {
    const { codec, route } = rest
    return { ...readRest(bytes, rest), codec, rest, operation: route.operation }
  }
  const wire = { path, query, headers }
  const call = readCall({ headers, method: verb, url, bytes, pathMethod }, progress, dialectOf(wire))
  const codec = dialectOf({ ...wire, method: call.method })
  return { ...call, codec, rest, operation: codec.methods.get(call.method)?.operation }
}

/** Returns the result of a response, which has a JSON-RPC envelope if the call had one. */
export function resultOf({ rest }: Pick<ReadCall, 'rest'>, bytes: Buffer): unknown {
  const answer = jsonOf(bytes.toString('utf8'))
  if (rest !== undefined) return answer
  return typeof answer === 'object' && answer !== null && 'result' in answer ? answer.result : undefined
}
