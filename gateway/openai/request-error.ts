import { ParleyError } from '@parley/wire/errors'

/** Refuses a request because of one of its parameters. `code` is the one of the OpenAI API. */
export function refused(param: string, message: string, code = 'invalid_value'): ParleyError {
  return new ParleyError('InvalidParams', { message, data: { reason: code, param } })
}

export const unsupported = (param: string, message: string) => refused(param, message, 'unsupported_value')
