import { isJsonObject } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import { agentCredential } from './agent-credential.ts'

/** A foreign A2A agent or an MCP server, as the supervisor describes it to the relay. */
const relayedAgent = z.object({
  /** The ID of the registry entry, under which the relay keeps the tasks. A later agent with the same slug has another one. */
  id: z.string().regex(/^[\w-]{1,64}$/),
  name: z.string(),
  description: z.string(),
  version: z.string().default('1.0.0'),
  /** The JSON-RPC interface of the agent, or the endpoint of the MCP server. */
  url: z.string(),
  /** The name of the dialect that the interface speaks, or `mcp`. */
  dialect: z.string(),
  streaming: z.boolean(),
  skills: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      description: z.string(),
      tags: z.array(z.string()),
      inputModes: z.array(z.string()),
      outputModes: z.array(z.string()),
      /** The schema of the data of messages. */
      inputSchema: z.custom<JsonObject>(isJsonObject).optional(),
      /** The tool of an MCP server that is this skill. */
      tool: z.object({ name: z.string(), isRepeatable: z.boolean(), isDestructive: z.boolean() }).optional(),
    }),
  ),
  /** The address of the agent at the gateway. */
  publicUrl: z.string(),
  /** The names of the agent in a token's audience. */
  audiences: z.array(z.string()),
  credential: agentCredential.optional(),
})
export type RelayedAgent = z.infer<typeof relayedAgent>

/** From the supervisor to the relay: a foreign agent, or its slug alone if it is no longer registered. */
export const relayedAgentMessage = z.object({
  type: z.literal('relayed-agent'),
  slug: z.string().regex(/^[a-z0-9-]{1,63}$/),
  agent: relayedAgent.optional(),
})
export type RelayedAgentMessage = z.infer<typeof relayedAgentMessage>
