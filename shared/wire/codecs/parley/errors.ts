import { type ErrorName, errorTable, type ParleyError } from '../../errors.ts'
import type { WireError } from '../codec.ts'
import { errorReader } from '../error-answer.ts'

/** The HTTP status corresponds to the error code (spec/json-rpc.md#errors). */
export function writeError({ status, code, message, data }: ParleyError): WireError {
  return { status, code, message, data }
}

/** A code that is not in the table counts as an internal error of the other server. */
export const readError = errorReader((code) => namesByCode.get(code), { keepsData: true })

const namesByCode = new Map<number, ErrorName>()
let name: ErrorName
for (name in errorTable) namesByCode.set(errorTable[name].code, name)
