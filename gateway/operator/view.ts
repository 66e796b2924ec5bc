import {
  type AuthenticatedCaller,
  type Authenticator,
  requireNoDelegate,
  requireScope,
} from '@parley/kit/auth/authenticate'
import { type Caller, mayUse } from '@parley/kit/auth/caller'
import { bodyOf } from '@parley/kit/http/request-body'
import type { FastifyRequest } from 'fastify'

/** The part of the operator API that a caller may see (spec/operator.md#views). */
export interface View {
  /** If set, only the entries of this owner are visible. */
  owner?: string
  /** Whether the texts of all visible entries are shown. If not, the texts of the caller’s own entries are shown. */
  texts: boolean
}

/** The view of a caller, with its client ID. */
export interface CallerView extends View {
  caller: string
  credentials: AuthenticatedCaller['credentials']
}

/** The part of the configuration on which views depend. */
export interface ViewSettings {
  operatorReadsTexts: boolean
}

/**
 * An operator sees all entries, and their texts if the setting allows it. Another caller sees its own entries with their texts.
 * @throws ParleyError InsufficientPermissions
 */
export function viewOf(caller: Caller, { operatorReadsTexts }: ViewSettings): View {
  requireNoDelegate(caller)
  if (caller.scopes.has('agent:admin')) return { texts: operatorReadsTexts }
  if (!mayUse(caller, 'agent:read')) requireScope(caller, 'agent:read')
  return { owner: caller.id, texts: true }
}

/** Whether the texts of an entry of this owner are shown. */
export function showsTexts(view: Pick<CallerView, 'texts' | 'caller'>, owner: string | null): boolean {
  return view.texts || owner === view.caller
}

/** The parts that authenticate a request to the operator API. */
export interface ViewParts {
  authenticator: Authenticator
  config: ViewSettings
}

/** Authenticates a request and returns what its caller may see. */
export async function authenticateView(
  { authenticator, config }: ViewParts,
  request: FastifyRequest,
): Promise<CallerView> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  return { ...viewOf(caller, config), caller: caller.id, credentials: caller.credentials }
}

/** Authenticates a request of a route that only operators may call. */
export async function authenticateOperator(parts: ViewParts, request: FastifyRequest): Promise<CallerView> {
  const caller = await parts.authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  requireScope(caller, 'agent:admin')
  return { ...viewOf(caller, parts.config), caller: caller.id, credentials: caller.credentials }
}
