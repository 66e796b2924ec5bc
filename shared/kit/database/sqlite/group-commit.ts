/** The verbs of one connection. Each throws when the storage refuses. */
export interface Transactions {
  /** @param soon nobody waits for the disk */
  begin(soon: boolean): void
  commit(): void
  isOpen(): boolean
  /** Undoes what is open, if anything is. */
  rollback(): void
  savepoint(): void
  release(): void
  rollbackToSavepoint(): void
}

interface Write {
  run: () => unknown
  soon: boolean
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown }

/** One transaction holds at most so many writes and takes no further one after so long: the others wait one turn. */
const writesMax = 1000
const transactionMaxMs = 25
/** A transaction waits for at most so many turns of the event loop, and only while each brings more writes. */
const turnsMax = 8

/**
 * All writes asked for in one turn of the event loop share one transaction, so one wait for the disk serves them all.
 * A write that throws fails alone. Savepoints would cost every write; so a transaction in which one throws is undone and
 * run again with them. A write may therefore run twice, and only its last run counts: it must change the database alone.
 */
export class GroupCommit {
  readonly #transactions: Transactions
  readonly #queue: Write[] = []
  #scheduled = false

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  /**
   * Settles after the commit. Rejects with what `run` threw, or with what the storage said at the commit.
   * @param soon a transaction of such writes alone does not wait for the disk
   */
  write<T>(run: () => T, soon = false): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#queue.push({ run, soon, resolve: resolve as (value: unknown) => void, reject })
    this.#schedule()
    return promise
  }

  /** Runs what still waits, at once. */
  drain(): void {
    while (this.#queue.length > 0) this.#commitSome()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#gather(0, 0))
  }

  /** Waits while each turn of the event loop brings more writes: a transaction costs nearly the same for one as for ten. */
  #gather(seen: number, turns: number): void {
    const waiting = this.#queue.length
    if (waiting > seen && turns < turnsMax) {
      setImmediate(() => this.#gather(waiting, turns + 1))
      return
    }
    this.#scheduled = false
    if (waiting > 0) this.#commitSome()
    if (this.#queue.length > 0) this.#schedule()
  }

  #commitSome(): void {
    const outcomes: Outcome[] = []
    try {
      if (!this.#attempt(outcomes, false)) this.#attempt(outcomes, true)
    } catch (error) {
      this.#undo()
      // Without any outcome it could not even begin: all that waits fails, rather than one after the other.
      const failed = outcomes.length === 0 ? this.#queue.length : outcomes.length
      for (const write of this.#queue.splice(0, failed)) write.reject(error)
      return
    }
    for (const [index, write] of this.#queue.splice(0, outcomes.length).entries()) {
      const outcome = outcomes[index]
      if (outcome?.ok === true) write.resolve(outcome.value)
      else write.reject(outcome?.error)
    }
  }

  #undo(): void {
    try {
      this.#transactions.rollback()
    } catch {
      // The next transaction finds out whether the storage works again.
    }
  }

  /** One transaction of what waits. False when a write threw: nothing is changed then, unless each has its savepoint. */
  #attempt(outcomes: Outcome[], isolated: boolean): boolean {
    const transactions = this.#transactions
    outcomes.length = 0
    transactions.begin(this.#queue.every(({ soon }) => soon))
    const endsAt = performance.now() + transactionMaxMs
    for (const write of this.#queue) {
      if (outcomes.length >= writesMax || (outcomes.length > 0 && performance.now() > endsAt)) break
      if (isolated) transactions.savepoint()
      try {
        outcomes.push({ ok: true, value: write.run() })
      } catch (error) {
        if (!isolated) {
          transactions.rollback()
          return false
        }
        if (!transactions.isOpen()) return this.#dropLost(outcomes, error)
        outcomes.push({ ok: false, error })
        transactions.rollbackToSavepoint()
      }
      if (isolated) transactions.release()
    }
    transactions.commit()
    return true
  }

  /** A full or failing disk undid the whole transaction at this write: it fails, the others wait for the next turn. */
  #dropLost(outcomes: Outcome[], error: unknown): true {
    const [lost] = this.#queue.splice(outcomes.length, 1)
    lost?.reject(error)
    outcomes.length = 0
    return true
  }
}
