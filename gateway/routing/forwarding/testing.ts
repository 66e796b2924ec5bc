import type { NamedAgentTokens } from './agent-tokens.ts'

/** The token that agents receive in tests that do not concern tokens. */
export const exchangedToken = 'exchanged'

/** For tests that do not concern tokens. Exchanges every token for the same one. */
export const acceptsAnyToken: Pick<NamedAgentTokens, 'authorize'> = {
  authorize: async ({ headers }, target) => ({
    ...target,
    authorization: headers.authorization === undefined ? undefined : `Bearer ${exchangedToken}`,
  }),
}

/** For tests without extended cards. */
export const noCards = () => {
  throw new Error('no card is expected')
}
