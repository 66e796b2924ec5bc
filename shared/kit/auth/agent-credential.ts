import { z } from 'zod'

/** The credential with which an agent is called. It never appears in errors or log lines. */
export const agentCredential = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('bearer'), token: z.string().min(1).max(16_384) }),
  z.object({
    kind: z.literal('apiKey'),
    in: z.enum(['header', 'query', 'cookie']),
    name: z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,256}$/),
    value: z
      .string()
      .min(1)
      .max(16_384)
      .regex(/^[\x21-\x7e]+$/),
  }),
  z.object({
    kind: z.literal('oauth2'),
    tokenUrl: z.url({ protocol: /^https?$/ }).max(2048),
    clientId: z.string().min(1).max(1024),
    clientSecret: z.string().min(1).max(16_384),
    scope: z.string().max(4096).optional(),
  }),
])
export type AgentCredential = z.infer<typeof agentCredential>
