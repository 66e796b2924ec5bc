import { setImmediate as nextTurn } from 'node:timers/promises'

/** The operations of one connection. Each of them throws if the storage fails. */
export interface Transactions {
  /** Returns a promise while transactions must wait, and undefined when one may begin in the same turn. */
  ready(): Promise<void> | undefined
  begin(): void
  commit(): void
  /**
   * Called after `commit`. Resolves, or returns undefined, once the transaction is as durable as its writes require.
   * @param soon whether no write of the transaction waits for the disk
   */
  settle(soon: boolean): Promise<void> | undefined
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
 * Combines all writes of one event loop turn into one transaction with one wait for the disk. The event loop runs during
 * the wait, and the writes that arrive in the meantime form the next transaction. Savepoints would slow
 * down every write, so they are used only if a write throws: the transaction is then rolled back and repeated with
 * savepoints, and only the failing write rejects. `run` may therefore be called twice and must have no other side
 * effects.
 */
export class GroupCommit {
  readonly #transactions: Transactions
  readonly #queue: Write[] = []
  /** The current transaction, from the first write that waits for it until the disk has it. */
  #current: Promise<void> | undefined

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  /**
   * Settles after the commit. Rejects with the error of `run` or of the commit. After a failed sync, a rejected write
   * may have been stored.
   * @param soon whether the write need not reach the disk; a transaction with only such writes does not wait for it
   */
  write<T>(run: () => T, soon = false): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#queue.push({ run, soon, resolve: resolve as (value: unknown) => void, reject })
    this.#current ??= this.#commitAll()
    return promise
  }

  /** Resolves when all writes so far have settled. */
  async drained(): Promise<void> {
    await this.#current
  }

  async #commitAll(): Promise<void> {
    while (this.#queue.length > 0) {
      await gathered(this.#queue)
      for (let wait = this.#transactions.ready(); wait !== undefined; wait = this.#transactions.ready())
        await wait
      const settled = this.#commitSome()
      if (settled !== undefined) await settled
    }
    this.#current = undefined
  }

  /** Never rejects. Returns undefined if nothing waits for the disk. */
  #commitSome(): Promise<void> | undefined {
    const outcomes: Outcome[] = []
    try {
      if (!this.#attempt(outcomes, false)) this.#attempt(outcomes, true)
    } catch (error) {
      this.#undo()
      // The transaction could not begin, so every pending write fails.
      const failed = outcomes.length === 0 ? this.#queue.length : outcomes.length
      for (const write of this.#queue.splice(0, failed)) write.reject(error)
      return undefined
    }
    const writes = this.#queue.splice(0, outcomes.length)
    const settle = () => {
      for (const [index, write] of writes.entries()) {
        const outcome = outcomes[index]
        if (outcome?.ok === true) write.resolve(outcome.value)
        else write.reject(outcome?.error)
      }
    }
    // A full or failing disk may have rolled back the transaction without a write.
    const wait = writes.length > 0 ? this.#transactions.settle(writes.every(({ soon }) => soon)) : undefined
    if (wait === undefined) {
      settle()
      return undefined
    }
    return wait.then(settle, (error: unknown) => {
      for (const write of writes) write.reject(error)
    })
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
    transactions.begin()
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

/**
 * Waits while each event loop turn adds writes to the queue, because a commit of ten writes costs hardly more than one of
 * a single write.
 */
export async function gathered(queue: readonly unknown[]): Promise<void> {
  let count = 0
  for (let turns = 0; queue.length > count && turns <= turnsMax; turns += 1) {
    count = queue.length
    await nextTurn()
  }
}
