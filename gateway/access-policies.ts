import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { FastifyInstance } from 'fastify'
import type { GatewayConfig } from './config.ts'
import type { GatewayState } from './gateway-state.ts'
import { clientFacts } from './oauth/client-facts.ts'
import type { OAuth, OAuthOptions } from './oauth/start-oauth.ts'
import { mayActForCallers } from './registry/admission.ts'
import { CallerAccess } from './registry/caller-access.ts'
import { audienceNamesOf } from './registry/entry.ts'
import type { Registry } from './registry/registry.ts'
import { OpenStreams } from './routing/forwarding/open-streams.ts'

interface AccessOptions {
  config: GatewayConfig
  state: Pick<GatewayState, 'oauth'>
  registry: Registry
  gatewayUrl: string
  log: Log
}

/** Creates the part that applies policies to callers. Clients of another OAuth server have no tags here. */
export function callerAccess({ config, state, registry, gatewayUrl, log }: AccessOptions): CallerAccess {
  const factsOf = (clientId: string) => clientFacts(state.oauth, clientId)
  return new CallerAccess({
    registry,
    gatewayUrl,
    factsOf: config.embeddedOAuth ? factsOf : undefined,
    audit: new Audit(log),
  })
}

/** The agents as clients of the OAuth server. */
export function agentClients(registry: Registry, gatewayUrl: string): OAuthOptions['agents'] {
  const ownedBy = (clientId: string) => registry.all().filter(({ owner }) => owner === clientId)
  return {
    isTrusted: (clientId) => registry.isTrusted(clientId),
    namesOf: (clientId) => {
      const entry = registry.find(clientId)
      return entry?.owner === clientId ? audienceNamesOf(entry, gatewayUrl) : []
    },
    isBarred: (clientId) => {
      const entry = registry.findIncludingLeft(clientId)
      return entry?.owner === clientId && (!entry.admitted || entry.quarantine?.by !== undefined)
    },
    mayAct: (clientId, audience) =>
      ownedBy(clientId).some(
        (entry) =>
          (audience === undefined || audienceNamesOf(entry, gatewayUrl).includes(audience)) &&
          mayActForCallers(entry),
      ),
    isQuarantined: (clientId) => {
      const left = registry.left().filter(({ owner }) => owner === clientId)
      const entries = [...ownedBy(clientId), ...left]
      return entries.some(({ quarantine }) => quarantine?.by !== undefined) && !entries.some(mayActForCallers)
    },
  }
}

interface EnforcementOptions {
  registry: Registry
  access: CallerAccess
  oauth: OAuth
  log: Log
}

/** Cuts event streams and invalidates the agents' introspection responses after a change of a policy. */
export function enforceChangedPolicies(
  app: FastifyInstance,
  { registry, access, oauth, log }: EnforcementOptions,
): void {
  const openStreams = new OpenStreams({
    find: (id) => registry.find(id),
    isAllowed: async (caller, entry) => (await access.decide(caller, entry)).allowed,
    log,
  })
  app.decorate('openStreams', openStreams)
  registry.policies.changed = (id) => {
    const ended = Promise.all([openStreams.check(id), oauth.provider?.invalidate(['policy'])])
    ended.catch((error: unknown) => log.error({ err: error }, 'a changed policy could not be applied'))
  }
}
