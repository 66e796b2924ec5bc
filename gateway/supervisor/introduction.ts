import { randomBytes } from 'node:crypto'
import type { AgentProcess } from './agent-process.ts'
import type { AgentMessage, IdentityMessage, ProvenIdentity } from './messages.ts'

export interface ClientCredentials {
  clientId: string
  clientSecret: string
}

/** What the gateway sends to an agent that has proven its identity. */
export interface Supplies {
  /** Undefined if the gateway cannot create a client. */
  client: ClientCredentials | undefined
  /** STORE_URL with the user of the agent. Undefined if the store is not a MongoDB database. */
  storeUrl: string | undefined
}

/** Lets a process prove its identity once, and sends it what an agent with this identity needs. */
export class Introduction {
  /** Undefined until the process has proven its identity. */
  identity: { did: string; owner: string } | undefined
  readonly #supply: (identity: ProvenIdentity) => Promise<Supplies>
  #claimed: { message: IdentityMessage; nonce: string } | undefined
  #isAnswered = false

  /** @param supply called with a signature that is not verified yet */
  constructor(supply: (identity: ProvenIdentity) => Promise<Supplies>) {
    this.#supply = supply
  }

  async receive(message: Exclude<AgentMessage, { type: 'ready' }>, from: AgentProcess): Promise<void> {
    if (message.type === 'identity') {
      if (this.#claimed !== undefined) return
      this.#claimed = { message, nonce: randomBytes(32).toString('base64url') }
      from.send({ type: 'challenge', nonce: this.#claimed.nonce })
      return
    }
    if (this.#claimed === undefined || this.#isAnswered) return
    this.#isAnswered = true
    const { message: claim, nonce } = this.#claimed
    const { client, storeUrl } = await this.#supply({ ...claim, nonce, signature: message.signature })
    const credentials = { client_id: client?.clientId, client_secret: client?.clientSecret }
    from.send({ type: 'client', ...credentials, store_url: storeUrl })
    this.identity = { did: claim.did, owner: client?.clientId ?? claim.did }
  }
}
