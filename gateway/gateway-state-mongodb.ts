import type { GatewayState } from './gateway-state.ts'
import { GatewayKeys, type KeysOptions } from './keys/open-keys.ts'
import { leaseRecords } from './oauth/leases/lease-records.ts'
import { oauthStore, unboundedOAuthMethods } from './oauth/oauth-store.ts'
import { agentChanges } from './records/agent-history.ts'
import { auditEntries } from './records/audit-entries.ts'
import { mongodbRegistryStore } from './registry/store/mongodb/registry.ts'
import { sharedGrants } from './routing/forwarding/grant-records.ts'
import { mongodbRoutingStore } from './routing/store/mongodb/routing.ts'
import { claimsIn } from './store/claims.ts'
import { openGatewayMongodb } from './store/mongodb/database.ts'

/** Opens the state that all gateways of a deployment share. @throws DatabaseRefused, KeysRefused, ExposedSecretFile */
export async function openSharedState(
  url: string,
  options: Omit<KeysOptions, 'documents'>,
): Promise<GatewayState> {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await openGatewayMongodb({ url }))
  const { documents } = database
  const keys = await GatewayKeys.open({ ...options, documents })
  const open = stack.move()
  return {
    registry: mongodbRegistryStore(database),
    oauth: database.guard(oauthStore(documents, keys.cipher), unboundedOAuthMethods),
    keys,
    routing: mongodbRoutingStore(database),
    backend: 'mongodb',
    claims: database.guard(claimsIn(documents, 'gateway_claims')),
    leases: database.guard(leaseRecords(documents)),
    grants: database.guard(sharedGrants(documents)),
    signatures: database.guard(claimsIn(documents, 'gateway_signatures')),
    audit: database.guard(auditEntries(documents)),
    history: database.guard(agentChanges(documents)),
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
