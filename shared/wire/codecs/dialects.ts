import type { Codec, RpcPath, WireRequest } from './codec.ts'
import { parley } from './parley/dialect.ts'

/** Every dialect that this deployment speaks, the default one first. A new dialect is a folder and a line here. */
export const dialects: readonly [Codec, ...Codec[]] = [parley]

export const defaultDialect = dialects[0]

/** Every path that accepts JSON-RPC, once. */
export function rpcPaths(): RpcPath[] {
  const paths = dialects.flatMap((dialect) => dialect.rpcPaths)
  return [...new Map(paths.map((path) => [path.path, path])).values()]
}

export function cardPaths(): string[] {
  return [...new Set(dialects.flatMap((dialect) => dialect.cardPaths))]
}

/**
 * The dialect of a request: the first that accepts its path, headers and, once the body has been read, its method. A method
 * that no dialect knows is for the dialect of the path to refuse.
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
