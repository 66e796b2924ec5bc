import type { Introspection } from '@parley/kit/auth/introspection'
import { errors } from 'oidc-provider'
import { z } from 'zod'
import type { OAuthStore } from '../oauth-store.ts'

/** The model of the records that hold operators' decisions about a client, with the client's id. */
export const settingsModel = 'ClientSettings'

const clientSettings = z.object({
  /** The client gets no tokens, and its tokens and keys are not active. */
  disabled: z.literal(true).optional(),
  /** The only scopes that the client may use, separated by spaces. */
  scope: z.string().optional(),
  requestsPerMinute: z.number().optional(),
  /** Seconds since 1970. */
  expiresAt: z.number().optional(),
  /** The only servers for which the client gets tokens (RFC 8707). */
  resources: z.array(z.string()).optional(),
  /** Labels to which policies refer. */
  tags: z.array(z.string()).optional(),
})
/** What an operator has decided about a client. The client's own metadata stays as registered. */
export type ClientSettings = z.infer<typeof clientSettings>

export async function findSettings(
  store: Pick<OAuthStore, 'find'>,
  clientId: string,
): Promise<ClientSettings | undefined> {
  const found = await store.find(settingsModel, clientId)
  return found === undefined ? undefined : readSettings(found)
}

/** @throws ZodError for a record that this version cannot read, because a limit must not be ignored */
export function readSettings(payload: Record<string, unknown>): ClientSettings {
  return clientSettings.parse(payload)
}

/** Returns the client as its settings allow, or undefined if it may not be used. */
export async function findUsableClient(
  store: Pick<OAuthStore, 'find'>,
  clientId: string,
): Promise<Record<string, unknown> | undefined> {
  const client = await store.find('Client', clientId)
  if (client === undefined) return undefined
  const settings = await findSettings(store, clientId)
  if (settings === undefined) return client
  if (isDisabled(settings)) return undefined
  if (settings.scope === undefined) return client
  const scope = commonScope(String(client['scope']), settings.scope)
  return scope === '' ? undefined : { ...client, scope }
}

/**
 * Restricts the answer about a token to what its client may do. Returns undefined if the token may not be used.
 * @param audience the audience of the stored token
 */
export function restricted(
  answer: Introspection,
  settings: ClientSettings,
  audience: string | string[] | undefined,
): Introspection | undefined {
  if (isDisabled(settings)) return undefined
  if (!answer.active) return answer
  if (!allowsAudience(settings, audience)) return undefined
  const { scope, expiresAt, requestsPerMinute } = settings
  return {
    ...answer,
    ...(scope !== undefined && { scope: commonScope(answer.scope ?? '', scope) }),
    ...(expiresAt !== undefined && { exp: Math.min(expiresAt, answer.exp ?? expiresAt) }),
    ...(requestsPerMinute !== undefined && { requests_per_minute: requestsPerMinute }),
  }
}

/** @throws InvalidTarget if the client may not get tokens for this server, or for all servers if it is undefined */
export async function requireAllowedResource(
  store: Pick<OAuthStore, 'find'>,
  clientId: string,
  resource: string | undefined,
): Promise<void> {
  const settings = await findSettings(store, clientId)
  if (settings === undefined || allowsAudience(settings, resource)) return
  throw new errors.InvalidTarget(
    `the operator allows this client tokens for these resources only: ${settings.resources?.join(' ')}`,
  )
}

/** The scopes of the first text that the second one has too. `agent:execute` implies reading and writing. */
export function commonScope(one: string, other: string): string {
  const allowed = scopesOf(other)
  const names =
    one.split(' ').includes('agent:execute') && !allowed.has('agent:execute') ? scopesOf(one) : one.split(' ')
  return [...names].filter((name) => allowed.has(name)).join(' ')
}

function scopesOf(text: string): Set<string> {
  const names = new Set(text.split(' '))
  return names.has('agent:execute') ? names.add('agent:read').add('agent:write') : names
}

/** Whether the client gets no tokens. */
export function isDisabled({ disabled, expiresAt }: ClientSettings): boolean {
  return disabled === true || (expiresAt !== undefined && expiresAt * 1000 <= Date.now())
}

/** Whether the client may use a token for these servers, or a token without an audience if it is undefined. */
export function allowsAudience(
  { resources }: ClientSettings,
  audience: string | string[] | undefined,
): boolean {
  if (resources === undefined) return true
  const allowed = new Set(resources.map(withoutSlash))
  const names = [audience ?? []].flat()
  return names.length > 0 && names.every((name) => allowed.has(withoutSlash(name)))
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '')
}
