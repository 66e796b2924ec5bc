/** The operations of one connection. Each of them throws if the storage fails. */
export interface Transactions {
  /**
   * @param soon whether the commit does not wait for the disk
   */
  begin(soon: boolean): void
  commit(): void
  isOpen(): boolean
  /** Rolls back the open transaction if there is one. */
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
 * Limits on the number of writes in one transaction and on the time during which it accepts them. Further writes go
 * into the next transaction.
 */
const writesMax = 1000
const transactionMaxMs = 25
/** Maximum number of event loop turns for which a transaction waits for more writes. */
const turnsMax = 8

/**
 * Combines all writes of one event loop turn into one transaction with one wait for the disk. Savepoints would slow
 * down every write, so they are used only if a write throws: the transaction is then rolled back and repeated with
 * savepoints, and only the failing write rejects. `run` may therefore be called twice and must have no other side
 * effects.
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
   * @param soon whether the write need not reach the disk; a transaction with only such writes does not wait for it
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
   * Waits while each event loop turn adds writes, because a transaction of ten writes costs hardly more than one of a
   * single write.
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
      // The transaction could not begin, so every pending write fails.
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

  /**
   * Runs the pending writes in one transaction. Returns false if one threw; without savepoints, nothing has changed.
   */
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
   * Handles a full or failing disk that rolled back the whole transaction: this write rejects, and the others wait
   * for the next turn.
   */
  #dropLost(outcomes: Outcome[], error: unknown): true {
    const [lost] = this.#queue.splice(outcomes.length, 1)
    lost?.reject(error)
    outcomes.length = 0
    return true
  }
}
