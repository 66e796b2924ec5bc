const wordCharsMax = 100
/** Each Chinese character is a word (the ranges of BERT's tokenizer). */
const chinese =
  /[\u4E00-\u9FFF\u3400-\u4DBF\u{20000}-\u{2A6DF}\u{2A700}-\u{2B81F}\u{2B820}-\u{2CEAF}\uF900-\uFAFF\u{2F800}-\u{2FA1F}]/gu
const punctuation = /[\p{P}$+<=>^`|~]|[^\p{P}\s$+<=>^`|~]+/gu

/** The tokenizer of BERT models without upper case: words without accents, split into the longest known pieces. */
export class WordPiece {
  readonly #ids: ReadonlyMap<string, number>
  readonly #start: number
  readonly #end: number
  readonly #unknown: number

  /** @param vocabulary the pieces in the order of their ids; continuations begin with `##` */
  constructor(vocabulary: readonly string[]) {
    this.#ids = new Map(vocabulary.map((piece, id) => [piece, id]))
    const special = (piece: string) => {
      const id = this.#ids.get(piece)
      if (id === undefined) throw new Error(`The vocabulary of the encoder has no ${piece}.`)
      return id
    }
    this.#start = special('[CLS]')
    this.#end = special('[SEP]')
    this.#unknown = special('[UNK]')
  }

  /** Returns the ids of a text's pieces between the marks for start and end, at most `max` ids. */
  idsOf(text: string, max: number): number[] {
    const ids = [this.#start]
    for (const word of wordsOf(text)) {
      if (ids.length >= max - 1) break
      this.#addPieces(word, ids)
    }
    ids.length = Math.min(ids.length, max - 1)
    ids.push(this.#end)
    return ids
  }

  #addPieces(word: string, ids: number[]): void {
    const before = ids.length
    const letters = Array.from(word)
    for (let from = 0; from < letters.length; ) {
      const piece = letters.length > wordCharsMax ? undefined : this.#longest(letters, from)
      if (piece === undefined) {
        ids.length = before
        ids.push(this.#unknown)
        return
      }
      ids.push(piece.id)
      from = piece.end
    }
  }

  #longest(letters: readonly string[], from: number): { id: number; end: number } | undefined {
    for (let end = letters.length; end > from; end -= 1) {
      const id = this.#ids.get(`${from === 0 ? '' : '##'}${letters.slice(from, end).join('')}`)
      if (id !== undefined) return { id, end }
    }
    return undefined
  }
}

function wordsOf(text: string): string[] {
  const plain = text
    .replace(/[\0\uFFFD]|(?![\t\n\r])\p{C}/gu, '')
    .replace(chinese, ' $& ')
    .toLowerCase()
    .normalize('NFD')
    .replace(/\p{Mn}/gu, '')
  return plain.match(punctuation) ?? []
}
