/** Cosine of each vector with the wanted one, all of length 1; other lengths of vectors are another model's: 0. */
export function nearnessOf(vectors: readonly Float32Array[], wanted: Float32Array): number[] {
  return vectors.map((vector) => {
    if (vector.length !== wanted.length) return 0
    let sum = 0
    for (let at = 0; at < vector.length; at += 1) sum += (vector[at] as number) * (wanted[at] as number)
    return sum
  })
}
