/** One record of the OAuth server: a client, a token, a code, a grant, a session, an interaction. */
export interface OAuthEntry {
  /** Kind of record, for example `Client`, `AccessToken`. */
  model: string
  id: string
  payload: Record<string, unknown>
  /** Client that the record belongs to; not set on the client's own record. */
  clientId?: string
  /** Approval that the record hangs on. */
  grantId?: string
  /** Second key of a session. */
  uid?: string
  userCode?: string
  /** Seconds since 1970; absent = never. */
  expiresAt?: number
}

/**
 * State of the OAuth server that outlives the process. A resolved promise means that the change is durable. Expired
 * records may still be found: the reader compares `exp`. Absence is `undefined`.
 */
export interface OAuthStore {
  /** Writes the record over the one that is there; a record that was used up stays used up. */
  upsert(entry: OAuthEntry): Promise<void>
  /** Writes a new record; false when the id is taken, and nothing changes then. */
  insert(entry: OAuthEntry): Promise<boolean>
  /** Writes the payload where still `was` stands, as `find` gave it; false when not, and nothing changes then. */
  exchange(
    model: string,
    id: string,
    was: Record<string, unknown>,
    payload: Record<string, unknown>,
  ): Promise<boolean>
  /** The payload; `consumed` (seconds since 1970) stands in it once the record was used up. */
  find(model: string, id: string): Promise<Record<string, unknown> | undefined>
  findByUid(model: string, uid: string): Promise<Record<string, unknown> | undefined>
  findByUserCode(model: string, userCode: string): Promise<Record<string, unknown> | undefined>
  /** Uses the record up. True for exactly one caller; false when it was used up before or is not there. */
  consume(model: string, id: string, at: number): Promise<boolean>
  destroy(model: string, id: string): Promise<void>
  /** Removes every token and code of the approval. */
  revokeByGrantId(grantId: string): Promise<void>
  /** Removes every token, code, approval and management token of the client; the client itself stays. */
  revokeByClientId(clientId: string): Promise<void>
  /** Removes records that expired before `before` (seconds since 1970), at most `limit`. Returns how many. */
  sweepExpired(before: number, limit: number): Promise<number>
}
