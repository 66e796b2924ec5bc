import cookie from '@fastify/cookie'
import type { Authenticator } from '@parley/kit/auth/authenticate'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import type { AgentCalls } from '../calls/agent-calls.ts'
import type { InnerRequests } from '../calls/inner-requests.ts'
import type { GatewayConfig } from '../config.ts'
import type { ConsoleAccess } from '../oauth/accounts/console-access.ts'
import { addAccountRoutes } from './account-routes.ts'
import { addApiBridge } from './api-bridge.ts'
import { addArtifactFrames } from './artifact-frames.ts'
import { BrowserSessions } from './browser-sessions.ts'
import { rootApi } from './descriptions.ts'
import { addPdfFrame } from './pdf-frame.ts'
import { addSignInRoutes } from './sign-in-routes.ts'
import { addStaticFiles } from './static-files.ts'

/** The parts of the gateway that the console uses. */
interface GatewayParts {
  config: GatewayConfig
  oauth: { console: ConsoleAccess }
  requests: InnerRequests
  calls: AgentCalls
  authenticator: Authenticator
  /** The public URL of the gateway. */
  gatewayUrl: string
  limits: RequestLimits | undefined
  trust: { identity: { did: string } | undefined }
  log: Log
}

/** The parts that the sign-in of the console uses. */
export interface ConsoleParts {
  config: GatewayConfig
  access: ConsoleAccess
  gatewayUrl: string
  /** The DID of the gateway. Undefined if it has no identity. */
  did: string | undefined
  audit: Audit
  sessions: BrowserSessions
  app: FastifyInstance
}

/** Adds `/console`, and sends browsers there from `/`. With CONSOLE=no, there are only the routes for accounts. */
export function addConsole(app: FastifyInstance, parts: GatewayParts): void {
  const { config, oauth, trust, authenticator, gatewayUrl, log } = parts
  const access = oauth.console
  addAccountRoutes(app, { access, authenticator })
  if (!config.console) return
  app.get('/', { config: { api: rootApi } }, (request, reply) => {
    if (/\btext\/html\b/.test(request.headers.accept ?? '')) return reply.redirect('/console/', 302)
    throw new ParleyError('InvalidRequest', {
      status: 405,
      message: 'HTTP method not allowed here',
      headers: { allow: 'POST' },
    })
  })
  const sessions = new BrowserSessions({ ...parts, access })
  void app.register(async (scope) => {
    await scope.register(cookie)
    await addStaticFiles(scope, gatewayUrl)
    const signIn = { config, access, gatewayUrl, did: trust.identity?.did, sessions, app }
    addSignInRoutes(scope, { ...signIn, audit: new Audit(log) })
    addApiBridge(scope, { ...parts, sessions })
    addArtifactFrames(scope, { ...parts, sessions })
    addPdfFrame(scope)
  })
}
