import { discovery } from './areas/discovery.ts'
import { rpcAt } from './areas/rpc.ts'
import type { Recorder } from './recorder.ts'
import type { World } from './world.ts'

/** Each area is one file of the record. */
export const areas: Record<string, (recorder: Recorder, world: World) => Promise<void>> = {
  discovery,
  'rpc-agent': rpcAt('agent', ({ deployment }) => `${deployment.agents['echo']}/`),
  'rpc-agent-through-gateway': rpcAt('proxy', ({ deployment }) => `${deployment.gateway}/agents/echo`),
  'rpc-gateway': rpcAt('gateway', ({ deployment }) => `${deployment.gateway}/`),
}
