import { type AnyBulkWriteOperation, type Collection, MongoBulkWriteError, MongoServerError } from 'mongodb'
import { insertUnlessThere, isDuplicate } from './database.ts'

/** Limits of one command. A larger item is sent by itself, and immediately. */
const [itemsMax, charsMax] = [32, 512 * 1024]
/** Maximum number of concurrent commands. Further items wait for a response. */
const commandsMax = 2
/** A command that has waited this long for its response no longer delays the next one. */
const patienceMs = 1000

/** The result of one item of a batch. An item may fail although others of its batch succeed. */
export type Outcome<R> = { value: R } | { error: unknown }

interface Waiting<T, R> {
  item: T
  chars: number
  settle: PromiseWithResolvers<R>
}

export interface BatchesOptions<T, R> {
  /** Approximate size of an item. */
  charsOf: (item: T) => number
  /** Returns the outcome of each item. If it throws, this is the outcome of all items. */
  write: (items: T[]) => Promise<Outcome<R>[]>
}

/**
 * Sends concurrent writes in common commands: the items of one turn of the event loop share a command, and while the
 * maximum number of commands is in progress, further items wait for the next one. An item resolves with its own outcome
 * once the server has acknowledged it. A command contains its items in the order of `_id`, because a server may lock
 * them until the end of the command: in different orders, the commands of two processes would block each other.
 */
export class Batches<T extends { _id: string }, R> {
  readonly #options: BatchesOptions<T, R>
  #waiting: Waiting<T, R>[] = []
  /** Number of commands whose response is awaited. */
  #commands = 0
  /** Whether a command is sent at the end of this turn. */
  #isDue = false

  constructor(options: BatchesOptions<T, R>) {
    this.#options = options
  }

  add(item: T): Promise<R> {
    const settle = Promise.withResolvers<R>()
    const waiting = { item, chars: this.#options.charsOf(item), settle }
    if (waiting.chars > charsMax) {
      void this.#write([waiting])
    } else {
      this.#waiting.push(waiting)
      this.#plan()
    }
    return settle.promise
  }

  #plan(): void {
    if (this.#isDue || this.#waiting.length === 0 || this.#commands >= commandsMax) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#send()
      this.#plan()
    })
  }

  #send(): void {
    let [count, chars] = [1, this.#waiting[0]?.chars ?? 0]
    for (; count < Math.min(itemsMax, this.#waiting.length); count += 1) {
      chars += this.#waiting[count]?.chars ?? 0
      if (chars > charsMax) break
    }
    const batch = this.#waiting.splice(0, count)
    batch.sort(({ item: a }, { item: b }) => (a._id < b._id ? -1 : Number(a._id > b._id)))
    this.#commands += 1
    let isCounted = true
    const ended = () => {
      clearTimeout(timer)
      if (!isCounted) return
      isCounted = false
      this.#commands -= 1
      this.#plan()
    }
    const timer = setTimeout(ended, patienceMs)
    void this.#write(batch).then(ended)
  }

  async #write(batch: Waiting<T, R>[]): Promise<void> {
    try {
      const outcomes = await this.#options.write(batch.map(({ item }) => item))
      for (const [index, { settle }] of batch.entries()) {
        const outcome = outcomes[index] ?? { error: new Error('The outcome of a write is missing') }
        if ('value' in outcome) settle.resolve(outcome.value)
        else settle.reject(outcome.error)
      }
    } catch (error) {
      for (const { settle } of batch) settle.reject(error)
    }
  }
}

/** Inserts documents in batches. Each resolves with false if its key is taken. */
export function insertBatches<T extends { _id: string; body: string }>(
  collection: Collection<T>,
): Batches<T, boolean> {
  const write = async (documents: T[]): Promise<Outcome<boolean>[]> => {
    const [only] = documents
    if (documents.length === 1 && only !== undefined)
      return [{ value: await insertUnlessThere(collection, only) }]
    const operations = documents.map((document) => ({ insertOne: { document } }))
    const { errors } = await unorderedWrite(collection, operations as never)
    return documents.map((_, index): Outcome<boolean> => {
      const error = errors.get(index)
      if (error === undefined) return { value: true }
      return isDuplicate(error) ? { value: false } : { error }
    })
  }
  return new Batches({ charsOf: ({ body }) => body.length, write })
}

/**
 * Sends independent operations in one command. Returns the number of matched documents, and the errors of single operations.
 * @throws the driver's error if any operation may be unacknowledged
 */
export async function unorderedWrite<T extends { _id: string }>(
  collection: Collection<T>,
  operations: AnyBulkWriteOperation<T>[],
): Promise<{ matched: number; errors: Map<number, unknown> }> {
  try {
    const { matchedCount } = await collection.bulkWrite(operations, { ordered: false })
    return { matched: matchedCount, errors: new Map() }
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError)) throw error
    const failed = [error.writeErrors].flat()
    if (failed.length === 0 || error.result.getWriteConcernError() !== undefined) throw error
    const errors = failed.map(
      ({ index, errmsg = '', code }) => [index, new MongoServerError({ message: errmsg, code })] as const,
    )
    return { matched: error.matchedCount, errors: new Map(errors) }
  }
}
