import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'

/** Messages from an agent's process to the supervisor over the IPC channel. */
const message = z.discriminatedUnion('type', [
  /** Sent before the agent starts. The reply is a challenge, `{type: 'challenge', nonce}`. */
  z.object({
    type: z.literal('identity'),
    did: z.string().startsWith('did:').max(512),
    /** The DID document, which proves that the current key descends from the key in the DID. */
    document: z.unknown(),
  }),
  /**
   * The signature of the challenge. The reply is the OAuth client and the store of the agent,
   * `{type: 'client', client_id, client_secret, store_url}`.
   */
  z.object({ type: z.literal('proof'), signature: z.string().max(256) }),
  /** Sent once the agent listens. */
  z.object({
    type: z.literal('ready'),
    url: z.url({ protocol: /^https?$/ }),
    /** The id of the process if the agent runs in several. */
    replica: z.uuid().optional(),
    card: z.custom<JsonObject>(
      (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    ),
  }),
])

export type AgentMessage = z.infer<typeof message>
export type IdentityMessage = Extract<AgentMessage, { type: 'identity' }>
/** An identity with the answer to the supervisor's challenge. */
export interface ProvenIdentity extends IdentityMessage {
  nonce: string
  signature: string
}
export type ReadyMessage = Extract<AgentMessage, { type: 'ready' }>

/** Returns the message, or undefined if the value is not one of these messages. */
export function readAgentMessage(value: unknown): AgentMessage | undefined {
  return message.safeParse(value).data
}
