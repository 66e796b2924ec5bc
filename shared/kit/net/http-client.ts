/**
 * The part of undici that agents use. Its entry point also loads `fetch`, WebSocket, caches and mocks, which cost each
 * process 12 MB of memory and a tenth of a second of its start.
 */
import { createRequire } from 'node:module'
import type { Dispatcher, Client as UndiciClient, Pool as UndiciPool } from 'undici'

type Send = (this: Dispatcher, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>

const load = createRequire(import.meta.url)
const dispatcher = load('undici/lib/dispatcher/dispatcher.js') as { prototype: object }
const { getGlobalDispatcher } = load('undici/lib/global.js') as { getGlobalDispatcher: () => Dispatcher }
const calls = load('undici/lib/api/index.js') as { request: Send }

// The entry point of undici adds its calls to every dispatcher in the same way.
Object.assign(dispatcher.prototype, calls)

export type Client = UndiciClient
export type Pool = UndiciPool
export const Client = load('undici/lib/dispatcher/client.js') as typeof UndiciClient
export const Pool = load('undici/lib/dispatcher/pool.js') as typeof UndiciPool

type RequestOptions = Omit<Dispatcher.RequestOptions, 'origin' | 'path' | 'method'> & {
  method?: Dispatcher.HttpMethod
}

/** Sends a request over the connections that all calls of the process share. */
export async function request(
  address: string | URL,
  options: RequestOptions = {},
): Promise<Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(address)
  // The dispatcher may be that of the `fetch` of Node.js, which contains another version of undici.
  return calls.request.call(getGlobalDispatcher(), {
    method: 'GET',
    ...options,
    origin,
    path: `${pathname}${search}`,
  })
}
