import { type ErrorName, errorTable, ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { WireError } from '../codec.ts'

/** The HTTP status corresponds to the error code (spec/json-rpc.md#errors). */
export function writeError({ status, code, message, data }: ParleyError): WireError {
  return { status, code, message, data }
}

/** The length to which another server's message is cut. */
const messageMaxChars = 1000

/** A code that is not in the table counts as an internal error of the other server. */
export function readError(answer: unknown): ParleyError | undefined {
  const error = isObject(answer) ? answer['error'] : undefined
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined
  const { code, message } = error
  const text = typeof message === 'string' ? { message: message.slice(0, messageMaxChars) } : {}
  return new ParleyError(namesByCode.get(code) ?? 'InternalError', text)
}

const namesByCode = new Map<number, ErrorName>()
let name: ErrorName
for (name in errorTable) namesByCode.set(errorTable[name].code, name)
