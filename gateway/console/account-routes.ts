import {
  type AuthenticatedCaller,
  type Authenticator,
  requireNoDelegate,
  requireScope,
} from '@parley/kit/auth/authenticate'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import { accountIn } from '@parley/wire/codecs/answers/operator/console'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Account } from '../oauth/accounts/accounts.ts'
import type { ConsoleAccess } from '../oauth/accounts/console-access.ts'
import type { Session } from '../oauth/accounts/sessions.ts'
import { sessionHeader } from './api-bridge.ts'
import {
  accountAddApi,
  accountChange,
  accountChangeApi,
  accountListApi,
  accountRemoveApi,
  passwordResetApi,
  sessionListApi,
  sessionRevokeApi,
} from './descriptions.ts'

interface AccountRoutes {
  access: ConsoleAccess
  authenticator: Authenticator
}

function jsonOf(request: FastifyRequest): unknown {
  requireJson(request)
  return parseJson(bodyOf(request))
}

type OfAccount = { Params: { name: string } }

/** Adds `/operator/accounts` and `/operator/sessions` (spec/operator.md#accounts). Changes are written to the audit log. */
export function addAccountRoutes(app: FastifyInstance, { access, authenticator }: AccountRoutes): void {
  const { accounts } = access
  const operate: Operate = async (request) => {
    const caller = await authenticator.authenticate(request, bodyOf(request))
    request.callerId = caller.id
    requireNoDelegate(caller)
    requireScope(caller, 'agent:admin')
    return caller
  }
  app.get('/operator/accounts', { config: { api: accountListApi } }, async (request) => {
    await operate(request)
    return { accounts: (await accounts.list()).map(accountOut) }
  })
  app.post(
    '/operator/accounts',
    { config: { api: accountAddApi, audit: 'accounts.add' } },
    async (request, reply) => {
      await operate(request)
      const { name, role, client_id } = parseParams(accountIn, jsonOf(request))
      request.auditTarget = `${name} as ${role}`
      if (role === 'operator' && client_id !== undefined) throw ownClientOnly()
      const { account, password } = await accounts.add({ name, role }, client_id)
      request.auditTarget += ` with client ${account.clientId}`
      void reply.header('cache-control', 'no-store')
      return { ...accountOut(account), password }
    },
  )
  addAccountChanges(app, access, operate)
  addSessionRoutes(app, access, operate)
}

function addAccountChanges(app: FastifyInstance, { accounts }: ConsoleAccess, operate: Operate): void {
  app.delete<OfAccount>(
    '/operator/accounts/:name',
    { config: { api: accountRemoveApi, audit: 'accounts.remove' } },
    async (request) => {
      const { subject } = await operate(request)
      requireOther(await accounts.find(request.params.name), subject)
      found(await accounts.remove(request.params.name))
      return { success: true }
    },
  )
  app.post<OfAccount>(
    '/operator/accounts/:name',
    { config: { api: accountChangeApi, audit: 'accounts.change' } },
    async (request) => {
      const { subject } = await operate(request)
      const { disabled } = parseParams(accountChange, jsonOf(request))
      request.auditTarget = `${request.params.name} ${disabled ? 'disabled' : 'enabled'}`
      if (disabled) requireOther(await accounts.find(request.params.name), subject)
      return accountOut(found(await accounts.setDisabled(request.params.name, disabled)))
    },
  )
  app.post<OfAccount>(
    '/operator/accounts/:name/password',
    { config: { api: passwordResetApi, audit: 'accounts.reset_password' } },
    async (request, reply) => {
      await operate(request)
      const { account, password } = found(await accounts.resetPassword(request.params.name))
      void reply.header('cache-control', 'no-store')
      return { ...accountOut(account), password }
    },
  )
}

type Operate = (request: FastifyRequest) => Promise<AuthenticatedCaller>

function addSessionRoutes(app: FastifyInstance, { sessions }: ConsoleAccess, operate: Operate): void {
  app.get('/operator/sessions', { config: { api: sessionListApi } }, async (request) => {
    await operate(request)
    const current = request.headers[sessionHeader]
    return { sessions: (await sessions.list()).map((session) => sessionOut(session, current)) }
  })
  app.delete<{ Params: { id: string } }>(
    '/operator/sessions/:id',
    { config: { api: sessionRevokeApi, audit: 'sessions.revoke' } },
    async (request) => {
      await operate(request)
      if (!(await sessions.revoke(request.params.id))) throw noSession()
      return { success: true }
    },
  )
}

const timeOf = (seconds: number) => timestampOf(seconds * 1_000_000)

function accountOut({ name, role, clientId, createdAt, lastSignIn, disabled }: Account) {
  return {
    name,
    role,
    client_id: clientId,
    created_at: timeOf(createdAt),
    last_sign_in: lastSignIn === undefined ? null : timeOf(lastSignIn),
    disabled,
  }
}

function sessionOut(session: Session, current: unknown) {
  const { id, person, createdAt, lastSeen, address, userAgent } = session
  return {
    id,
    name: person.name,
    role: person.role,
    created_at: timeOf(createdAt),
    last_seen: timeOf(lastSeen),
    address: address ?? null,
    user_agent: userAgent ?? null,
    current: id === current,
  }
}

function found<T>(account: T | undefined): T {
  if (account !== undefined) return account
  throw new ParleyError('NotFound', {
    message: 'Account not found: npx parley operators lists the names',
    data: { reason: 'account' },
  })
}

const noSession = () =>
  new ParleyError('NotFound', {
    message: 'Session not found: npx parley operators sessions lists the ids',
    data: { reason: 'session' },
  })

const ownClientOnly = () =>
  new ParleyError('InvalidParams', {
    message: 'An operator has a client of its own: leave out client_id, or add the account as a caller',
    data: { issues: [{ path: 'client_id', message: 'only for the role caller' }] },
  })

/** An operator must not lock itself out. */
function requireOther(account: Account | undefined, subject: string): void {
  if (account?.clientId !== subject) return
  throw new ParleyError('Conflict', {
    message: 'This is your own account: use another operator account, or npx parley operators',
    data: { reason: 'own_account' },
  })
}
