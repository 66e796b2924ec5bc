import type { GatewayState } from './gateway-state.ts'
import { mongodbOAuthStore, oauthIndexes } from './oauth/oauth-mongodb.ts'
import { mongodbRegistryStore, registryIndexes } from './registry/store/mongodb/registry.ts'
import { mongodbRoutingStore, routingIndexes } from './routing/store/mongodb/routing.ts'
import { claimsIndexes, mongodbClaims } from './store/claims-mongodb.ts'
import { openGatewayMongodb } from './store/mongodb/database.ts'

/** State shared by all gateways of a deployment. @throws DatabaseRefused */
export async function openSharedState(url: string): Promise<GatewayState> {
  const indexes = { ...registryIndexes, ...oauthIndexes, ...routingIndexes, ...claimsIndexes }
  const database = await openGatewayMongodb({ url, indexes })
  return {
    registry: mongodbRegistryStore(database),
    oauth: mongodbOAuthStore(database),
    routing: mongodbRoutingStore(database),
    backend: 'mongodb',
    claims: mongodbClaims(database, 'gateway_claims'),
    signatures: mongodbClaims(database, 'gateway_signatures'),
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
