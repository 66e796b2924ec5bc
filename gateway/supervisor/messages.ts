import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'

/** What an agent's process tells its supervisor over the IPC channel. */
const message = z.discriminatedUnion('type', [
  /** Who it is, before it starts: the answer is its OAuth client, `{type: 'client', client_id, client_secret}`. */
  z.object({
    type: z.literal('identity'),
    did: z.string().startsWith('did:').max(512),
    /** The DID document: how its key of now follows from the one that the DID was made of. */
    document: z.unknown(),
  }),
  /** It listens. */
  z.object({
    type: z.literal('ready'),
    url: z.url({ protocol: /^https?$/ }),
    /** Id of the process, where it is one of several of its agent. */
    replica: z.uuid().optional(),
    card: z.custom<JsonObject>(
      (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    ),
  }),
])

export type AgentMessage = z.infer<typeof message>
export type IdentityMessage = Extract<AgentMessage, { type: 'identity' }>
export type ReadyMessage = Extract<AgentMessage, { type: 'ready' }>

/** Undefined for whatever else a process sends. */
export function readAgentMessage(value: unknown): AgentMessage | undefined {
  return message.safeParse(value).data
}
