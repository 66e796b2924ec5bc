/** The `code` of an error, as set by Node and most drivers; undefined for values without one. */
export function errorCode(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}
