import { createHash } from 'node:crypto'
import { type Adapter, type AdapterFactory, type AdapterPayload, errors, Provider } from 'oidc-provider'
import { findUsableClient } from '../clients/client-settings.ts'
import { provenanceOf, unusedSeconds } from '../clients/unverified-client.ts'
import type { OAuthEntry, OAuthStore } from '../oauth-store.ts'

/**
 * Models whose ids are credentials. Only the hash of such an id is stored, so a copy of the database grants no access.
 */
const bearerModels = new Set([
  'AccessToken',
  'AuthorizationCode',
  'ClientCredentials',
  'RefreshToken',
  'RegistrationAccessToken',
])

/** Stores oidc-provider's records in an `OAuthStore`. */
export function oidcAdapter(store: OAuthStore): AdapterFactory {
  return (model) => new StoreAdapter(model, store)
}

class StoreAdapter implements Adapter {
  readonly #model: string
  readonly #store: OAuthStore

  constructor(model: string, store: OAuthStore) {
    this.#model = model
    this.#store = store
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    const entry = this.#entry(id, payload, expiresIn)
    if (this.#model === 'ReplayDetection') return this.#rememberOnce(entry)
    if (this.#model !== 'Client' || Provider.ctx?.oidc.route !== 'registration') {
      return this.#store.upsert(entry)
    }
    // A registration never replaces an existing client, even if two registrations arrive concurrently.
    if (!(await this.#store.insert(entry))) throw new errors.InvalidClientMetadata('client_id is taken')
  }

  /** oidc-provider looks for the record first. Of two gateways that find none, one must refuse. */
  async #rememberOnce(entry: OAuthEntry): Promise<void> {
    if (await this.#store.insert(entry)) return
    throw new errors.InvalidRequest('the DPoP proof or client assertion has already been used')
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    if (this.#model === 'Client') return findUsableClient(this.#store, id)
    const payload = await this.#store.find(this.#model, this.#key(id))
    return payload && bearerModels.has(this.#model) ? { ...payload, jti: id } : payload
  }

  findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#store.findByUid(this.#model, uid)
  }

  findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    return this.#store.findByUserCode(this.#model, userCode)
  }

  /** Reuse of a code or refresh token indicates theft and revokes the grant. */
  async consume(id: string): Promise<void> {
    if (await this.#store.consume(this.#model, this.#key(id), now())) return
    const grantId = (await this.find(id))?.grantId
    if (grantId !== undefined) {
      await this.#store.revokeByGrantId(grantId)
      await this.#store.destroy('Grant', grantId)
    }
    throw new errors.InvalidGrant(`${this.#model} has already been used`)
  }

  async destroy(id: string): Promise<void> {
    await this.#store.destroy(this.#model, this.#key(id))
    if (this.#model === 'Client') await this.#store.revokeByClientId(id)
  }

  revokeByGrantId(grantId: string): Promise<void> {
    return this.#store.revokeByGrantId(grantId)
  }

  #key(id: string): string {
    return bearerModels.has(this.#model) ? createHash('sha256').update(id).digest('base64url') : id
  }

  #entry(id: string, payload: AdapterPayload, expiresIn: number | undefined): OAuthEntry {
    const entry: OAuthEntry = { model: this.#model, id: this.#key(id), payload: { ...payload } }
    if (bearerModels.has(this.#model)) delete entry.payload['jti']
    if (payload.clientId !== undefined) entry.clientId = payload.clientId
    if (payload.grantId !== undefined) entry.grantId = payload.grantId
    if (this.#model === 'Session' && payload.uid !== undefined) entry.uid = payload.uid
    if (payload.userCode !== undefined) entry.userCode = payload.userCode
    if (expiresIn !== undefined) entry.expiresAt = now() + expiresIn
    if (this.#model === 'Client' && provenanceOf(payload['provenance']) === 'open')
      entry.expiresAt = now() + unusedSeconds
    return entry
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}
