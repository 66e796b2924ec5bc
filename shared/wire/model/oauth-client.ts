import type { Timestamp } from './timestamp.ts'

/** The limits that an operator has set for a client. Absent fields do not limit it. */
export interface ClientLimits {
  /** The only scopes that the client may use, separated by spaces. */
  scope?: string | undefined
  requestsPerMinute?: number | undefined
  expiresAt?: Timestamp | undefined
  /** The only servers for which the client gets tokens. */
  resources?: string[] | undefined
}

/** A client of the OAuth server as an operator sees it, without secrets. */
export interface OAuthClient {
  id: string
  name: string
  /** The scopes that the client has registered. */
  scope: string
  /**
   * `managed` clients were created by the gateway, and `agent` clients own an agent in the registry. `self-registered` clients
   * registered without a token, and the id of a `document` client is the address of its metadata.
   */
  kind: 'managed' | 'agent' | 'registered' | 'self-registered' | 'document'
  enabled: boolean
  tags: readonly string[]
  limits: ClientLimits
  createdAt?: Timestamp | undefined
  /** Rounded down to the hour, as `lastUsedAt`. */
  lastTokenAt?: Timestamp | undefined
  lastUsedAt?: Timestamp | undefined
}

/** The lifetimes of long-lived keys, in seconds. Keys with agent:admin have a lower maximum. */
export const keyLifetime = { default: 90 * 86_400, max: 365 * 86_400, maxOfOperator: 90 * 86_400 } as const

/** A long-lived key, without the key itself. */
export interface OAuthKey {
  id: string
  /** Id of the client to which the key belongs. */
  client: string
  name: string
  scope: string
  /** The only server that accepts the key. */
  resource?: string | undefined
  createdAt: Timestamp
  expiresAt: Timestamp
  /** Id of the operator's client, if an operator created the key. */
  createdBy?: string | undefined
}
