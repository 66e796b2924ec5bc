import {
  type Operator,
  type OperatorGroup,
  OperatorStatementVerifier,
} from '@parley/kit/auth/operator-statement'
import type { RequestLimits } from '@parley/kit/http/request-limits'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyRequest } from 'fastify'

/**
 * Returns the person for whom the gateway sends the request, if its statement is valid for the group. Every operator route
 * calls it first (spec/operator.md#statements).
 * @throws ParleyError AuthenticationRequired, InvalidToken, TokenExpired, InsufficientPermissions, NotFound without a gateway,
 * Unavailable
 */
export type OperatorOf = (request: Pick<FastifyRequest, 'headers'>, group: OperatorGroup) => Promise<Operator>

export interface OperatorAccessOptions {
  /** Undefined for an agent without a gateway, which has no operator API. */
  gatewayUrl: string | undefined
  /** The names of this agent that no other agent has. */
  names: () => readonly string[]
  store: { takeSignature(did: string, signature: Uint8Array, until: number): Promise<boolean> }
  limits: RequestLimits | undefined
}

/** The part of the description that all operator routes of an agent share. */
export const byStatement = { tag: 'operator', access: 'statement' } satisfies Partial<OperationDescription>

/** Separates the used statements from the used signatures of DIDs. */
const usedStatements = 'operator'

export function operatorAccess({ gatewayUrl, names, store, limits }: OperatorAccessOptions): OperatorOf {
  if (gatewayUrl === undefined) {
    return async () => {
      throw new ParleyError('NotFound', {
        message: 'This agent has no operator API, because it has not joined a gateway',
        data: { reason: 'operator_api' },
      })
    }
  }
  const takeOnce = (id: Uint8Array, until: number) => store.takeSignature(usedStatements, id, until)
  const verifier = new OperatorStatementVerifier({ gatewayUrl, names, takeOnce })
  return async ({ headers }, group) => {
    const statement = /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
    if (statement === undefined) throw new ParleyError('AuthenticationRequired')
    const operator = await verifier.verify(statement, group)
    // Further requests with this statement are not counted for the address of the gateway, which all callers share.
    limits?.trust(statement, true)
    return operator
  }
}
