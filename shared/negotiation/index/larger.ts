/** A copy of the array with at least `length` elements, and at least twice as many as before. */
export function larger(values: Float64Array, length = 0): Float64Array<ArrayBuffer> {
  const all = new Float64Array(Math.max(length, 2 * values.length))
  all.set(values)
  return all
}
