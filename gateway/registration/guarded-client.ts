import type { IncomingHttpHeaders } from 'node:http'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import { PinnedConnections } from '@parley/kit/net/pinned-connections'
import { guardedFetch } from '@parley/kit/net/pinned-fetch'
import type { Resolver } from '@parley/kit/net/resolve-public'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { isJsonObject } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { registrationError, toRegistrationError } from './registration-errors.ts'

export interface GuardedClientOptions {
  /** Hosts that are exempt from the guard (REGISTRY_ALLOWED_HOSTS). */
  allowed: AllowedHosts
  resolver?: Resolver
  /** Time limit per request. Defaults to 5 s. */
  timeoutMs?: number
  /** Maximum size of a response body. Defaults to 256 KiB. */
  answerMaxBytes?: number
  /** CA certificates (PEM) to use instead of the default ones. */
  ca?: string
}

export interface GuardedResponse {
  status: number
  /** Undefined if the body is not a JSON object. */
  json: JsonObject | undefined
}

/**
 * An HTTP client for addresses from untrusted sources. It refuses private addresses, limits time and size, and does not
 * follow redirects.
 */
export class GuardedClient implements AsyncDisposable {
  readonly allowed: AllowedHosts
  readonly resolver: Resolver | undefined
  readonly ca: string | undefined
  readonly #options: GuardedClientOptions
  readonly #connections: PinnedConnections

  constructor(options: GuardedClientOptions) {
    this.#options = options
    this.allowed = options.allowed
    this.resolver = options.resolver
    this.ca = options.ca
    this.#connections = new PinnedConnections({ perHostMax: 4, ca: options.ca })
  }

  /** @throws ParleyError InvalidParams if there is no response */
  get(url: string, what: string): Promise<GuardedResponse> {
    return this.#request(url, what, { method: 'GET' })
  }

  /** @throws ParleyError InvalidParams if there is no response */
  post(url: string, body: object, what: string): Promise<GuardedResponse> {
    return this.#request(url, what, { method: 'POST', body: JSON.stringify(body) })
  }

  /** @throws ParleyError InvalidParams if the response is not a 200 that contains an object */
  async getObject(url: string, what: string): Promise<JsonObject> {
    const { status, json } = await this.get(url, what)
    if (status === 200 && json !== undefined) return json
    const how = status === 200 ? 'is not a JSON object' : `returned HTTP ${status}`
    throw registrationError(status === 200 ? 'not_json' : 'status', `${what} ${how}`)
  }

  /**
   * Reads a document of any type.
   * @throws OutgoingRefused, OutgoingFailed if there is no response
   */
  async getDocument(
    url: string,
    { maxBytes, signal }: { maxBytes: number; signal?: AbortSignal | undefined },
  ): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
    const { status, headers, body } = await guardedFetch(url, {
      headers: { accept: 'application/json' },
      ...this.#bounds,
      maxBytes,
      ...(signal !== undefined && { signal }),
    })
    return { status, headers, text: body.toString('utf8') }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections[Symbol.asyncDispose]()
  }

  get #bounds() {
    const { allowed, resolver, timeoutMs = 5000, answerMaxBytes = 256 * 1024 } = this.#options
    const connections = this.#connections
    return { allowed, timeoutMs, maxBytes: answerMaxBytes, connections, ...(resolver && { resolver }) }
  }

  async #request(url: string, what: string, init: { method: 'GET' | 'POST'; body?: string }) {
    const headers = {
      accept: 'application/json, application/did+json',
      ...(init.body !== undefined && { 'content-type': 'application/json' }),
    }
    try {
      const { status, body } = await guardedFetch(url, {
        ...init,
        headers,
        ...this.#bounds,
      })
      return { status, json: objectIn(body) }
    } catch (error) {
      throw toRegistrationError(error, what)
    }
  }
}

function objectIn(body: Buffer): JsonObject | undefined {
  try {
    const value = parseJson(body)
    return isJsonObject(value) ? value : undefined
  } catch (error) {
    if (error instanceof ParleyError) return undefined
    throw error
  }
}
