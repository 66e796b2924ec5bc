import type { IncomingHttpHeaders } from 'node:http'
import type { Codec, RestBinding, RestRequest, RestRoute } from '@parley/wire/codecs/codec'
import { dialects } from '@parley/wire/codecs/dialects'
import { jsonType } from '@parley/wire/codecs/error-answer'
import { ParleyError } from '@parley/wire/errors'
import type { RpcRequest } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { type Operation, operations } from '@parley/wire/model/operation'
import type { Caller } from '../auth/caller.ts'
import { escaped, segmentsOf } from './path-pattern.ts'

/** A request without a JSON-RPC envelope. The body has not been parsed. */
export interface RestCall extends Omit<RestRequest, 'body'> {
  codec: Codec
  binding: RestBinding
  route: RestRoute
}

/** Returns the call as in JSON-RPC. @throws ParleyError ParseError, InvalidParams */
export function readRest(bytes: Buffer, { codec, route, path, query }: RestCall): RpcRequest {
  const body = bytes.byteLength === 0 ? undefined : parseJson(bytes)
  return { id: null, method: codec.methodOf(route.operation), params: route.params({ path, query, body }) }
}

/** A client that sends JSON without the media type of the binding receives the same. */
export function restType(
  headers: IncomingHttpHeaders,
  { mediaType }: Pick<RestBinding, 'mediaType'>,
): string {
  const given = headers['content-type'] ?? headers.accept ?? ''
  return given.startsWith('application/json') ? jsonType : mediaType
}

/**
 * The signature of a request covers its body but not its path, so that it could be used for another task.
 * @throws ParleyError InvalidTokenSignature
 */
export function requireSignedTarget(
  caller: Pick<Caller, 'signature'>,
  operation: Operation,
  { path }: Pick<RestCall, 'path'>,
): void {
  const namesTarget = Object.keys(path).some((name) => name !== 'tenant')
  if (caller.signature === undefined || !namesTarget || operations[operation].scope === 'agent:read') return
  throw new ParleyError('InvalidTokenSignature', {
    message: 'The DID signature does not cover the path: send this call as JSON-RPC',
    data: { reason: 'path_not_covered' },
  })
}

/** The group of a regular expression for `*` in a path pattern. */
const wildcard = 'wildcard'

interface Pattern extends Pick<RestCall, 'codec' | 'binding' | 'route'> {
  path: RegExp
  /** The number of characters that are not parameters. */
  literals: number
}

/** The patterns of all dialects, those with the longest fixed text first, as in a router. */
const patterns: readonly Pattern[] = dialects
  .flatMap((codec) => {
    const { rest: binding } = codec
    return binding === undefined ? [] : binding.routes.map((route) => patternOf({ codec, binding, route }))
  })
  .sort((a, b) => b.literals - a.literals)

/**
 * Finds the route of a request that a gateway forwards below another path. Returns undefined if there is none.
 * @param path the path on the agent, without its query
 */
export function findRestCall(verb: string, path: string, query: string | undefined): RestCall | undefined {
  // A percent sign stays encoded until the fields are decoded, so that nothing is decoded twice.
  const decoded = decodedOr(decodeURI, path.replaceAll('%25', '%2525'))
  if (decoded === undefined) return undefined
  for (const { path: pattern, ...found } of patterns) {
    const match = found.route.verb === verb ? pattern.exec(decoded) : null
    if (match === null) continue
    const fields = Object.entries(match.groups ?? {}).map(([name, value]) => [
      name === wildcard ? '*' : name,
      decodedOr(decodeURIComponent, value),
    ])
    const { codec, binding, route } = found
    return {
      codec,
      binding,
      route,
      path: Object.fromEntries(fields),
      query: Object.fromEntries(new URLSearchParams(query)),
    }
  }
  return undefined
}

function decodedOr(decode: (text: string) => string, text: string): string | undefined {
  try {
    return decode(text)
  } catch {
    return undefined
  }
}

function patternOf(found: Pick<RestCall, 'codec' | 'binding' | 'route'>): Pattern {
  const segments = segmentsOf(found.route.path)
  const parts = segments.map(({ isWildcard, parameter, expression, literal }) => {
    if (isWildcard) return `(?<${wildcard}>.*)`
    // A parameter before a literal colon must not contain colons.
    const characters = expression === undefined ? '[^/]' : '[^/:]'
    return (parameter === undefined ? '' : `(?<${parameter}>${characters}+)`) + escaped(literal)
  })
  const literals = segments.reduce((sum, { literal }) => sum + literal.length, 0)
  return { ...found, path: new RegExp(`^${parts.join('/')}$`), literals }
}
