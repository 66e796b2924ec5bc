import { ParleyError } from '@parley/wire/errors'
import { jsonOf } from '@parley/wire/model/json-text'
import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { boundedText } from '../net/bounded-text.ts'
import { request } from '../net/http-client.ts'

const keysMax = 64
/** The keys that sign a gateway's statements (RFC 7517), and the gateway's issuer. */
const keySet = z.object({
  issuer: z.string(),
  keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })).max(keysMax),
})

/** The answer of a gateway that signs no statements. A proxy in front of a gateway that starts may return 404 as well. */
const signsNone = z.object({ error: z.object({ data: z.object({ reason: z.literal('statement_keys') }) }) })

const timeoutMs = 2000
/** Keys are fetched again after this time, so that a removed key is no longer accepted. */
const keysMaxAgeMs = 300_000
/** An unknown key or a failure does not cause requests to the gateway more often than this. */
const refetchMs = 3000

export interface Keys {
  /** Empty if the gateway signs no statements. */
  issuer: string
  keyFor: JWTVerifyGetKey
  ids: ReadonlySet<string>
  fetchedAt: number
}

/** The public keys of a gateway, read from the gateway when they are needed. */
export class PublishedKeys {
  readonly #url: string
  #keys: Keys | undefined
  #fetching: Promise<Keys> | undefined
  #attemptedAt = Number.NEGATIVE_INFINITY

  /**
   * @param gatewayUrl the address of the gateway that the agent has joined
   * @param path the path of the keys below this address
   */
  constructor(gatewayUrl: string, path: string) {
    this.#url = gatewayUrl.replace(/\/+$/, '') + path
  }

  /** The keys of any age, or undefined if none have been fetched. */
  get known(): Keys | undefined {
    return this.#keys
  }

  /**
   * Returns the current keys. Fetches them if they are old, or do not contain the key.
   * @throws ParleyError Unavailable if the keys are needed and cannot be fetched
   */
  async with(kid: string | undefined): Promise<Keys> {
    const now = performance.now()
    const known = this.#keys
    const isFresh = known !== undefined && now - known.fetchedAt < keysMaxAgeMs
    if (isFresh && (kid === undefined || known.ids.has(kid))) return known
    if (now - this.#attemptedAt < refetchMs && this.#fetching === undefined) {
      if (isFresh) return known
      throw gatewayUnavailable(undefined)
    }
    this.#attemptedAt = this.#fetching === undefined ? now : this.#attemptedAt
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching.catch((error: unknown) => {
      if (isFresh) return known
      throw gatewayUnavailable(error)
    })
  }

  async #fetch(): Promise<Keys> {
    const fetchedAt = performance.now()
    const response = await request(this.#url, {
      signal: AbortSignal.timeout(timeoutMs),
      headers: { accept: 'application/json' },
    })
    const text = await boundedText(response.body)
    if (response.statusCode === 404 && signsNone.safeParse(jsonOf(text)).success)
      return this.#use({ issuer: '', keys: [] }, fetchedAt)
    if (response.statusCode !== 200) throw new Error(`${this.#url} returned ${response.statusCode}`)
    return this.#use(keySet.parse(JSON.parse(text)), fetchedAt)
  }

  #use({ issuer, keys }: z.infer<typeof keySet>, fetchedAt: number): Keys {
    this.#keys = {
      issuer,
      keyFor: createLocalJWKSet({ keys }),
      ids: new Set(keys.map(({ kid }) => kid)),
      fetchedAt,
    }
    return this.#keys
  }
}

function gatewayUnavailable(cause: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'The gateway’s keys cannot be read, so its statement cannot be verified',
    data: { reason: 'gateway_keys' },
    headers: { 'retry-after': '3' },
    cause,
  })
}
