import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'
import type { AuthenticatedCaller, RequestHead } from './authenticate.ts'

/** A request that a server sends to a route in the same process, for the caller of a request that it answers. */
export interface InnerCall {
  /** Authenticated with the outer request. */
  caller: AuthenticatedCaller
  /** Set when the route receives the request. Destroying it has the effect of a client that disconnects. */
  response?: ServerResponse
}

/**
 * Passes the callers of inner requests to the routes. The caller is in the asynchronous context of the request, which no
 * request from a connection is in, and not in a header, which a client could send.
 */
export class InnerCalls {
  readonly #running = new AsyncLocalStorage<InnerCall>()

  run<T>(call: InnerCall, send: () => T): T {
    return this.#running.run(call, send)
  }

  /** The inner call of the current context. */
  get current(): InnerCall | undefined {
    return this.#running.getStore()
  }

  /** Returns the caller of an inner request. A request with another token, sent in the same context, is none. */
  callerOf({ headers }: Pick<RequestHead, 'headers'>): AuthenticatedCaller | undefined {
    const caller = this.current?.caller
    return headers.authorization === `Bearer ${caller?.credentials.token}` ? caller : undefined
  }
}
