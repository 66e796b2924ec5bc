import { type Introspection, introspectionClaims, nestedActors } from '@parley/kit/auth/introspection'
import { statementAlgorithm, statementType } from '@parley/kit/auth/statement'
import { createLocalJWKSet, errors, jwtVerify } from 'jose'
import { z } from 'zod'
import type { StatementKeys } from './statement-keys.ts'

/** Tolerated difference between the clocks of gateways. */
const clockSeconds = 5

export interface Statement {
  introspection: Introspection
  /** The only agent that may accept the statement. */
  audience: string
  actors: readonly string[]
  lifetimeSeconds: number
  /** The caller's token, sealed. Absent if the agent must not exchange the statement. */
  sealedSubject?: string | undefined
}

/** The content of a statement that a gateway of this deployment has signed, and that may have expired. */
export type ReadStatement = z.infer<typeof statementClaims>

const statementClaims = introspectionClaims.pick({ sub: true, scope: true, act: true }).extend({
  client_id: z.string(),
  aud: z.string(),
  iat: z.number(),
  exp: z.number(),
  sealed_subject: z.string().optional(),
})

/** Signs and reads statements about callers. */
export class StatementSigner {
  readonly keys: Pick<StatementKeys, 'issuer' | 'sign' | 'keySet'>

  constructor(keys: StatementSigner['keys']) {
    this.keys = keys
  }

  sign({ introspection, audience, actors, lifetimeSeconds, sealedSubject }: Statement): Promise<string> {
    const { client_id, sub, scope } = introspection
    const act = nestedActors(actors)
    return this.keys.sign({
      type: statementType,
      claims: {
        client_id: client_id ?? sub,
        ...(sub !== undefined && { sub }),
        scope,
        act,
        ...(sealedSubject !== undefined && { sealed_subject: sealedSubject }),
      },
      audience,
      lifetimeSeconds,
    })
  }

  /**
   * Returns the content of a statement of any gateway on the database, or undefined for any other text. Its audience is not
   * checked, and neither is its expiry within the tolerance.
   */
  async read(statement: string, expiryToleranceSeconds: number): Promise<ReadStatement | undefined> {
    const { issuer, keys } = await this.keys.keySet()
    try {
      const { payload } = await jwtVerify(statement, createLocalJWKSet({ keys }), {
        algorithms: [statementAlgorithm],
        typ: statementType,
        issuer,
        clockTolerance: expiryToleranceSeconds,
      })
      const claims = statementClaims.safeParse(payload).data
      return claims !== undefined && claims.iat <= Date.now() / 1000 + clockSeconds ? claims : undefined
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
      throw error
    }
  }
}
