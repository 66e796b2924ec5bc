import type { GatewayState } from './gateway-state.ts'
import { oauthStore, unboundedOAuthMethods } from './oauth/oauth-store.ts'
import { mongodbRegistryStore } from './registry/store/mongodb/registry.ts'
import { mongodbRoutingStore } from './routing/store/mongodb/routing.ts'
import { claimsIn } from './store/claims.ts'
import { openGatewayMongodb } from './store/mongodb/database.ts'

/** Opens the state that all gateways of a deployment share. @throws DatabaseRefused */
export async function openSharedState(url: string): Promise<GatewayState> {
  const database = await openGatewayMongodb({ url })
  const { documents } = database
  return {
    registry: mongodbRegistryStore(database),
    oauth: database.guard(oauthStore(documents), unboundedOAuthMethods),
    routing: mongodbRoutingStore(database),
    backend: 'mongodb',
    claims: database.guard(claimsIn(documents, 'gateway_claims')),
    signatures: database.guard(claimsIn(documents, 'gateway_signatures')),
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
