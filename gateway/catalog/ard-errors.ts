import type { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'

/** The error codes of ARD (appendix B) by HTTP status. */
const codes: Record<number, string> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RATE_LIMIT_EXCEEDED',
  503: 'UNAVAILABLE',
}

/** Writes an error as ARD does: `{errorCode, message}`. The message names the fields that are wrong. */
export const ardErrors = {
  writeError(error: ParleyError) {
    const { status, message, data } = error
    const errorCode = codes[status] ?? (status >= 500 ? 'INTERNAL_ERROR' : 'INVALID_ARGUMENT')
    const faults = issuesIn(data['issues'])
    return {
      status,
      body: { errorCode, message: faults.length === 0 ? message : `${message}: ${faults.join('; ')}` },
    }
  },
}

function issuesIn(issues: unknown): string[] {
  if (!Array.isArray(issues)) return []
  return issues
    .filter(isObject)
    .map(({ path, message }) => [path, message].filter((part) => part !== '').join(' '))
}
