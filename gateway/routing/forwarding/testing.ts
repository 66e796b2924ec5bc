import type { TokenReader } from './token-reader.ts'

/** For tests of what else a proxy does: every token is one of a caller, without audience. */
export const acceptsAnyToken: Pick<TokenReader, 'check'> = {
  check: async (request) => {
    request.token = { audience: [], isOperator: false, gatewayUrl: 'http://gateway.example' }
  },
}
