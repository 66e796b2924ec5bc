export const delimiters = [',', ';', '\t', '|'] as const

/** Splits one line into fields, respecting quotes. */
export function fieldsOf(line: string, delimiter: string): number {
  let count = 1
  let quoted = false
  for (const sign of line) {
    if (sign === '"') quoted = !quoted
    else if (sign === delimiter && !quoted) count += 1
  }
  return count
}

/** Finds the delimiter that gives the most regular table. For a single column, returns a comma. */
export function detectDelimiter(csv: string): string {
  const lines = csv
    .slice(0, 64 * 1024)
    .split(/\r\n|\r|\n/)
    .filter((line) => line.trim())
    .slice(0, 50)
  let best: string = ','
  let bestScore = 0
  for (const delimiter of delimiters) {
    const counts = lines.map((line) => fieldsOf(line, delimiter))
    const header = counts[0] ?? 1
    if (header < 2) continue
    const even = counts.filter((count) => count === header).length / counts.length
    // Prefers the more regular table, then the one with more columns.
    const score = even * even * 100 + Math.min(header, 50)
    if (score > bestScore) [best, bestScore] = [delimiter, score]
  }
  return best
}
