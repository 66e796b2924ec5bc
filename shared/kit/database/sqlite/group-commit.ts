/** The operations of one connection. Each throws when the storage fails. */
export interface Transactions {
  /**
   * @param soon the commit does not wait for the disk
   */
  begin(soon: boolean): void
  commit(): void
  isOpen(): boolean
  /** Rolls back the open transaction, if there is one. */
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

/**
 * Limits of one transaction: its writes, and the time after which it accepts no more. Further writes go into the next
 * transaction.
 */
const writesMax = 1000
const transactionMaxMs = 25
/** Maximum number of turns of the event loop that a transaction waits for more writes. */
const turnsMax = 8

/**
 * All writes of one turn of the event loop share one transaction and one wait for the disk. Savepoints would slow down every
 * write; so if a write throws, the transaction is rolled back and repeated with savepoints, and only the failing write
 * rejects. `run` may therefore be called twice and must have no other side effects.
 */
export class GroupCommit {
  readonly #transactions: Transactions
  readonly #queue: Write[] = []
  #scheduled = false

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  /**
   * Settles after the commit. Rejects with the error of `run` or of the commit.
   * @param soon a transaction with only such writes does not wait for the disk
   */
  write<T>(run: () => T, soon = false): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#queue.push({ run, soon, resolve: resolve as (value: unknown) => void, reject })
    this.#schedule()
    return promise
  }

  /** Runs the pending writes immediately. */
  drain(): void {
    while (this.#queue.length > 0) this.#commitSome()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#gather(0, 0))
  }

  /**
   * Waits while each turn of the event loop adds writes: a transaction of ten costs nearly the same as a transaction of one.
   */
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
      // The transaction could not begin: every pending write fails.
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
      // The next transaction shows whether the storage works again.
    }
  }

  /** Runs the pending writes in one transaction. False when a write threw; without savepoints nothing has changed then. */
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

  /**
   * A full or failing disk rolled back the whole transaction during this write: it rejects, and the others wait for the next
   * turn.
   */
  #dropLost(outcomes: Outcome[], error: unknown): true {
    const [lost] = this.#queue.splice(outcomes.length, 1)
    lost?.reject(error)
    outcomes.length = 0
    return true
  }
}
