/** Width of the longest word and of the unbroken text of a column. */
export interface Extent {
  least: number
  most: number
}

/**
 * Computes the column widths. If possible, the full text of all columns fits. Otherwise, each column gets the width of
 * its longest word plus a part of the rest. If not even the words fit, all columns shrink and words are split.
 */
export function columnWidths(extents: Extent[], available: number): number[] {
  const most = sum(extents.map((extent) => extent.most))
  if (most <= available) return extents.map((extent) => extent.most)
  // A very long word such as a URL must not take the space of other columns.
  const cap = available / Math.max(2, extents.length * 0.6)
  const least = extents.map((extent) => Math.min(extent.least, cap))
  const words = sum(least)
  if (words >= available) return least.map((width) => (width * available) / words)
  const wishes = extents.map((extent, column) => Math.sqrt(Math.max(0, extent.most - (least[column] ?? 0))))
  return share(extents, least, wishes, available - words)
}

/** Distributes the remaining width in proportion to demand, with no more than a column can use. */
function share(extents: Extent[], least: number[], wishes: number[], left: number): number[] {
  const widths = [...least]
  const open = new Set(extents.keys())
  let rest = left
  while (rest > 0.01 && open.size > 0) {
    const wished = sum([...open].map((column) => wishes[column] ?? 0))
    if (wished === 0) break
    const round = rest
    for (const column of open) {
      const room = (extents[column]?.most ?? 0) - (widths[column] ?? 0)
      const given = Math.min(room, (round * (wishes[column] ?? 0)) / wished)
      widths[column] = (widths[column] ?? 0) + given
      rest -= given
      if (given === room) open.delete(column)
    }
    if (round - rest < 0.01) break
  }
  return widths
}

const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0)
