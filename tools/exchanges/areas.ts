import { authentication } from './areas/authentication.ts'
import { discovery } from './areas/discovery.ts'
import { negotiation } from './areas/negotiation.ts'
import { oauth } from './areas/oauth.ts'
import { payments } from './areas/payments.ts'
import { production } from './areas/production.ts'
import { registry } from './areas/registry.ts'
import { rpcAt } from './areas/rpc.ts'
import { transport } from './areas/transport.ts'
import { webhooks } from './areas/webhooks.ts'
import type { Recorder } from './recorder.ts'
import type { World } from './world.ts'

/** The areas of the record. Each one is recorded in a separate file. */
export const areas: Record<string, (recorder: Recorder, world: World) => Promise<void>> = {
  discovery,
  // First, because the measured speed of the agents is part of each response.
  negotiation,
  'rpc-agent': rpcAt('agent', ({ deployment }) => `${deployment.agents['echo']}/`),
  'rpc-agent-through-gateway': rpcAt('proxy', ({ deployment }) => `${deployment.gateway}/agents/echo`),
  'rpc-gateway': rpcAt('gateway', ({ deployment }) => `${deployment.gateway}/`),
  authentication,
  oauth,
  transport,
  payments,
  webhooks,
  registry,
  production,
}
