import type { EventEmitter } from 'node:events'
import type { Audit, Decision } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { errors, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { addressOf } from '../request-address.ts'

const refusals = [
  'authorization.error',
  'grant.error',
  'introspection.error',
  'revocation.error',
  'registration_create.error',
  'registration_read.error',
  'registration_update.error',
  'registration_delete.error',
] as const

const changes = {
  'registration_create.success': 'oauth.register',
  'registration_update.success': 'oauth.update-client',
  'registration_delete.success': 'oauth.remove-client',
} as const

/**
 * Writes server errors to the log, and refusals and client changes to the audit log. `error_detail` is omitted because
 * it may contain secrets from the request.
 */
export function logEvents(provider: Provider, log: Log, audit: Audit): void {
  const emitter: EventEmitter = provider
  emitter.on('error', (error: Error, ctx?: KoaContextWithOIDC) => {
    // The client closed its connection, which is not a server error.
    if (ctx?.req.socket.errored === error)
      log.debug({ err: error }, 'a client of the OAuth server disconnected')
    else log.error({ err: error }, 'OAuth server failed')
  })
  emitter.on('server_error', (_ctx, error: Error) => log.error({ err: error }, 'OAuth server failed'))
  const refused = (event: string) => (ctx: KoaContextWithOIDC, error: errors.OIDCProviderError) => {
    const { error: code, error_description: description } = error
    const action = `oauth.${event.slice(0, -'.error'.length)}`
    audit.record({
      ...actorOf(ctx),
      action,
      allowed: false,
      reason: [code, description].filter(Boolean).join(': '),
    })
  }
  for (const event of refusals) emitter.on(event, refused(event))
  for (const [event, action] of Object.entries(changes)) {
    emitter.on(event, (ctx: KoaContextWithOIDC, { clientId, scope }: { clientId: string; scope?: string }) =>
      audit.record({ ...actorOf(ctx), action, target: clientId, allowed: true, reason: scope }),
    )
  }
}

/** Identifies registering clients by their address, because they share the initial access token. */
function actorOf(ctx: KoaContextWithOIDC): Pick<Decision, 'who' | 'address'> {
  return { who: ctx.oidc?.client?.clientId, address: addressOf(ctx.req) }
}
