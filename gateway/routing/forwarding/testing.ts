import type { TokenReader } from './token-reader.ts'

/** For tests that do not concern tokens. Accepts every token as a caller's token without an audience. */
export const acceptsAnyToken: Pick<TokenReader, 'check'> = {
  check: async (request) => {
    request.token = { audience: [], isOperator: false, gatewayUrl: 'http://gateway.example' }
  },
}
