import { ParleyError } from '../errors.ts'
import { versionHeader } from './a2a-headers.ts'
import { a2aV1 } from './a2a-v1/dialect.ts'
import { a2aV03 } from './a2a-v03/dialect.ts'
import type { Codec, RestBinding, RpcPath, WireRequest } from './codec.ts'
import { parley } from './parley/dialect.ts'

/**
 * Every dialect that this deployment speaks. The first one that accepts a request answers it, so a dialect that shares a
 * path and requires a header there precedes the one that does not. To add a dialect, add a folder and a line here.
 */
export const dialects: readonly Codec[] = [a2aV1, a2aV03, parley]

/** The dialect of requests that no dialect accepts. */
export const defaultDialect: Codec = parley

/** Returns the dialect that a stored record names; the default one if it names none or an unknown one. */
export function dialectNamed(name: string | undefined): Codec {
  return dialects.find((dialect) => dialect.name === name) ?? defaultDialect
}

/** The error for a method that the dialect lacks. It names another dialect that has the method. */
export function methodNotFound(method: string, codec: Codec): ParleyError {
  const other = dialects.find((dialect) => dialect !== codec && dialect.methods.has(method))
  const path = other?.rpcPaths[0]?.path
  if (other === undefined || path === undefined) return new ParleyError('MethodNotFound')
  return new ParleyError('MethodNotFound', {
    message: `Method not found: ${method} is a method of ${other.title}, which is served at ${path}`,
  })
}

/** The names of the headers of all dialects, which servers and gateways pass on. */
export const dialectHeaders = {
  request: [...new Set(dialects.flatMap(({ headers }) => headers.request))],
  answer: [...new Set(dialects.flatMap(({ headers }) => headers.answer))],
}

/** Returns the headers with which a client states the version of the dialect. */
export function versionHeaders({ version }: Pick<Codec, 'version'>): Record<string, string> {
  return version === undefined ? {} : { [versionHeader.toLowerCase()]: version }
}

/** Returns the name of the header that selects one of the cards at the path; undefined for a path with one card. */
export function cardVary(path: string): string | undefined {
  return dialects.filter(({ cardPaths: own }) => own.includes(path)).length > 1 ? versionHeader : undefined
}

/** Splits the target of a request into the parts that may determine the dialect. */
export function partsOf(url: string): { path: string; query: string | undefined } {
  const at = url.indexOf('?')
  return at === -1 ? { path: url, query: undefined } : { path: url.slice(0, at), query: url.slice(at + 1) }
}

/** Returns the REST binding whose form an error has at a path without a route; undefined for JSON-RPC. */
export function restOf(request: WireRequest): RestBinding | undefined {
  return dialects.find(({ rest }) => rest?.covers(request))?.rest
}

/** Returns every path that accepts JSON-RPC, without duplicates. */
export function rpcPaths(): RpcPath[] {
  const paths = dialects.flatMap((dialect) => dialect.rpcPaths)
  return [...new Map(paths.map((path) => [path.path, path])).values()]
}

export function cardPaths(): string[] {
  return [...new Set(dialects.flatMap((dialect) => dialect.cardPaths))]
}

/**
 * Returns the first dialect that accepts the path, the headers and, once the body has been read, the method. A method
 * that no dialect knows is refused by the dialect that the path selects.
 */
export function dialectOf(request: WireRequest): Codec {
  const { method } = request
  let ofPath: Codec | undefined
  for (const dialect of dialects) {
    if (!dialect.accepts(request)) continue
    if (method === undefined || dialect.methods.has(method)) return dialect
    ofPath ??= dialect
  }
  return ofPath ?? defaultDialect
}
