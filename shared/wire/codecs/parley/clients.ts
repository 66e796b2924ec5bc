import { z } from 'zod'
import type { ClientLimits, OAuthClient, OAuthKey } from '../../model/oauth-client.ts'
import { tagForm } from './policy.ts'
import { wireObject } from './spelling.ts'

const clientId = z.string().min(1).max(512)
const scope = z
  .string()
  .max(256)
  .regex(/^[a-z:]+( [a-z:]+)*$/, 'scopes, separated by single spaces')
const resource = z.string().min(1).max(2048)
const server = resource.regex(/^(https?:\/\/|did:)./, 'must be an http, https or did address')
const time = z.iso.datetime({ offset: true })
const tag = z.string().regex(tagForm, '1 to 64 lower-case letters, digits, ".", "_" or "-"')

/** The query of `GET /clients`. */
export const clientListIn = z.object({
  q: z.string().max(256).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().max(1024).optional(),
})

/** The body of `POST /clients/revoke` and `/enable`. */
export const clientIn = wireObject({ id: clientId })

/** The body of `POST /clients/limit`, which replaces all limits of the client. */
export const clientLimitIn = wireObject({
  id: clientId,
  scope: scope.optional(),
  perMinute: z.int().min(1).max(1_000_000).optional(),
  expiresAt: time.optional(),
  resources: z.array(server).min(1).max(20).optional(),
})

/** The body of `POST /clients/tag`, which replaces all tags of the client. */
export const clientTagsIn = wireObject({ id: clientId, tags: z.array(tag).max(50) })

/** The query of `GET /client-keys`. */
export const keyListIn = z.object({ client: clientId.optional() })

/** The body of `POST /client-keys`. */
export const keyIn = wireObject({
  client: clientId.optional(),
  name: z
    .string()
    .max(120)
    .regex(/^[^\p{C}]*$/u, 'printable characters')
    .default(''),
  scope: scope.optional(),
  resource: resource.optional(),
  lifetimeSeconds: z.int().min(60).optional(),
  /** Must be set for a key with agent:admin. */
  admin: z.boolean().default(false),
})

/** Writes the body of `POST /client-keys`. */
export function newKeyOut(request: {
  name?: string | undefined
  client?: string | undefined
  scope?: string | undefined
  resource?: string | undefined
  lifetimeSeconds?: number | undefined
  admin?: boolean | undefined
}) {
  const { lifetimeSeconds, ...same } = request
  return { ...same, lifetime_seconds: lifetimeSeconds }
}

/** Writes the body of `POST /clients/limit`. */
export function clientLimitOut(id: string, limits: ClientLimits) {
  return { id, ...limitsOut(limits) }
}

function limitsOut({ scope: scopes, requestsPerMinute, expiresAt, resources }: ClientLimits) {
  return { scope: scopes, per_minute: requestsPerMinute, expires_at: expiresAt, resources }
}

export function clientOut({ createdAt, lastTokenAt, lastUsedAt, limits, ...client }: OAuthClient) {
  return {
    ...client,
    limits: limitsOut(limits),
    created_at: createdAt ?? null,
    last_token_at: lastTokenAt ?? null,
    last_used_at: lastUsedAt ?? null,
  }
}

export function clientListOut(clients: readonly OAuthClient[], nextCursor: string | undefined) {
  return { clients: clients.map(clientOut), next_cursor: nextCursor ?? null }
}

export function keyOut({ createdAt, expiresAt, createdBy, ...key }: OAuthKey) {
  return { ...key, created_at: createdAt, expires_at: expiresAt, created_by: createdBy }
}

const written = z.iso.datetime({ offset: true })

/** The answer to the routes of one client. */
export const clientAnswer = z
  .object({
    id: z.string(),
    name: z.string(),
    scope: z.string(),
    kind: z.enum(['managed', 'agent', 'registered']),
    enabled: z.boolean(),
    tags: z.array(z.string()),
    limits: z.object({
      scope: z.string().optional(),
      per_minute: z.int().optional(),
      expires_at: written.optional(),
      resources: z.array(z.string()).optional(),
    }),
    created_at: written.nullable(),
    last_token_at: written.nullable(),
    last_used_at: written.nullable(),
  })
  .meta({ id: 'Client' })

/** The answer to `GET /clients`. */
export const clientListAnswer = z.object({
  clients: z.array(clientAnswer),
  next_cursor: z.string().nullable(),
})

/** The answer to `DELETE /clients/{id}` and `DELETE /client-keys/{id}`. */
export const removedAnswer = z.object({ success: z.literal(true), id: z.string() })

const keyAnswer = z
  .object({
    id: z.string(),
    client: z.string(),
    name: z.string(),
    scope: z.string(),
    resource: z.string().optional(),
    created_at: written,
    expires_at: written,
    created_by: z.string().optional(),
  })
  .meta({ id: 'Key' })

/** The answer to `GET /client-keys`. */
export const keyListAnswer = z.object({ keys: z.array(keyAnswer) })

/** The answer to `POST /client-keys`, which is the only one with the key itself. */
export const newKeyAnswer = z.object({ key: z.string(), details: keyAnswer })

const text = z.string().optional().catch(undefined)
const texts = z.array(z.string()).catch([])
const client = wireObject({
  id: z.string(),
  name: z.string().catch(''),
  scope: z.string().catch(''),
  kind: z.string().catch(''),
  enabled: z.boolean().catch(true),
  tags: texts,
  limits: wireObject({
    scope: text,
    perMinute: z.number().optional().catch(undefined),
    expiresAt: text,
    resources: z.array(z.string()).optional().catch(undefined),
  }).catch({}),
  createdAt: text,
  lastTokenAt: text,
  lastUsedAt: text,
})
const key = wireObject({
  id: z.string(),
  client: z.string(),
  name: z.string().catch(''),
  scope: z.string().catch(''),
  resource: text,
  createdAt: text,
  expiresAt: text,
  createdBy: text,
})
export type ReadClient = z.output<typeof client>
export type ReadKey = z.output<typeof key>

/** Readers for clients of these routes. @throws ZodError if the answer has another form */
export const readClient = (json: unknown): ReadClient => client.parse(json)
export const readClientPage = (json: unknown) =>
  wireObject({ clients: z.array(client), nextCursor: text }).parse(json)
export const readKeys = (json: unknown): ReadKey[] => z.object({ keys: z.array(key) }).parse(json).keys
export const readNewKey = (json: unknown) => z.object({ key: z.string(), details: key }).parse(json)
