const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' })

/** The first `most` words of a text in lower case, in any script. */
export function wordsOf(text: string, most = 400): string[] {
  const words: string[] = []
  for (const { segment, isWordLike } of segmenter.segment(text)) {
    if (!isWordLike) continue
    words.push(segment.toLowerCase())
    if (words.length === most) break
  }
  return words
}

/**
 * Returns the stop words of the text's language: the list that covers most of its frequent words or, if two lists cover
 * the same number, the shorter one.
 */
export async function stopWordsFor(frequency: ReadonlyMap<string, number>): Promise<ReadonlySet<string>> {
  const lists: Record<string, unknown> = await import('stopword')
  const frequent = [...frequency].sort((a, b) => b[1] - a[1]).slice(0, 150)
  let best: { words: ReadonlySet<string>; covered: number } = { words: new Set(), covered: 0 }
  for (const [code, list] of Object.entries(lists)) {
    if (!/^[a-z]{3}(?:[A-Z]\w+)?$/.test(code) || !Array.isArray(list)) continue
    const words = new Set<string>(list)
    const covered = frequent.reduce((sum, [word, times]) => sum + (words.has(word) ? times : 0), 0)
    const better = covered > best.covered || (covered === best.covered && words.size < best.words.size)
    if (better) best = { words, covered }
  }
  return best.words
}
