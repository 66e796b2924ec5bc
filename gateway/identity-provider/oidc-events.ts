import type { EventEmitter } from 'node:events'
import type { errors, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Log } from '../../shared/process/log.ts'

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

/**
 * The server's events go to the log and nowhere else. `error_detail` stays out: it may quote the request, secrets
 * included.
 */
export function logEvents(provider: Provider, log: Log): void {
  const emitter: EventEmitter = provider
  emitter.on('error', (error: Error) => log.error({ err: error }, 'OAuth server failed'))
  emitter.on('server_error', (_ctx, error: Error) => log.error({ err: error }, 'OAuth server failed'))
  const refused = (event: string) => (ctx: KoaContextWithOIDC, error: errors.OIDCProviderError) => {
    const { error: code, error_description: description } = error
    log.warn({ event, error: code, description, client_id: ctx.oidc?.client?.clientId }, 'OAuth refused')
  }
  for (const event of refusals) emitter.on(event, refused(event))
}
