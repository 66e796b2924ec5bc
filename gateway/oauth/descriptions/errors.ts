import type { OperationDescription } from '@parley/kit/http/route-description'
import { z } from 'zod'

/** The form of OAuth errors (RFC 6749, section 5.2). */
export const oauthError = z
  .looseObject({ error: z.string(), error_description: z.string().optional() })
  .meta({ id: 'OAuthError' })

/** Errors that concern HTTP itself, such as a rate limit, have the form of the other routes of the gateway. */
const otherError = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.null(),
  error: z.object({ code: z.int(), message: z.string(), data: z.looseObject({}) }),
})

export const oauthErrors = {
  errorName: 'OAuth',
  errorContent: { 'application/json': z.union([oauthError, otherError]) },
} satisfies Partial<OperationDescription>

/** Pages for people. */
export const pageErrors = {
  errorName: 'OAuthPage',
  errorContent: { 'text/html': z.string(), 'application/json': z.union([oauthError, otherError]) },
} satisfies Partial<OperationDescription>
