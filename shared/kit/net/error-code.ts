/** Returns the `code` of an error, which Node and most drivers set; undefined for values without a code. */
export function errorCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
