import type { ParleyError } from '../../errors.ts'
import type { WireError } from '../codec.ts'

/** The HTTP status corresponds to the error code (spec/json-rpc.md#errors). */
export function writeError({ status, code, message, data }: ParleyError): WireError {
  return { status, code, message, data }
}
