import { type RequestId, readId } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'

/** Bodies up to this size are read for their id when the call is refused before the body was looked at. */
const maxBytes = 64 * 1024

/** Null where it cannot be read. */
export function idOfRefused(bytes: Buffer): RequestId {
  if (bytes.byteLength > maxBytes) return null
  try {
    return readId(parseJson(bytes))
  } catch {
    return null
  }
}
